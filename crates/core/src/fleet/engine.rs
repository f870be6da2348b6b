//! What a fleet stands on: the only way from its machines to other nodes.
//!
//! An engine is a pair, a half without I/O and a driver. [`super::Fleet`] knows nothing of it but
//! these types. An engine loses, delays and repeats; it never invents, and never gives one
//! [`MemberId`] twice.
//!
//! On the mesh `Campaign` and `Leader` are answered by [`super::Election`]: its driver hands it what
//! the other nodes claim. Engines with a log or a store answer by themselves; leases and keys come
//! with them.

use super::{Message, NodeFacts, RunId, Term};
use crate::name::Name;
use std::{collections::BTreeSet, sync::Arc};

/// What one node of a group may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    Master,
}

/// Given once, to one run of one node, and never again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(pub u64);

/// A node that the engine can reach.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FleetMember {
    pub node: Name,
    pub run: RunId,
    pub id: MemberId,
}

/// What core wants of an engine.
#[derive(Debug, Clone, PartialEq)]
pub enum EngineCommand {
    /// Have this role filled, by one of these as this node sees them. A node that is not among them
    /// itself follows whoever has it, and does not claim it.
    Campaign {
        role: Role,
        among: BTreeSet<Name>,
    },
    /// Whatever this node has to say of itself: all of it, in place of what it said before.
    Say(Arc<NodeFacts>),
    Send {
        to: Name,
        message: Message,
    },
}

/// What an engine says to core.
#[derive(Debug, Clone, PartialEq)]
pub enum EngineEvent {
    /// All that can be reached, this node among them.
    Members(Vec<FleetMember>),
    Leader {
        role: Role,
        term: Term,
    },
    Said {
        node: Name,
        facts: Arc<NodeFacts>,
    },
    Sent {
        from: Name,
        message: Message,
    },
}
