//! What an engine is told when it starts, and what it can be told later.

use crate::mesh::{FleetKeys, Versions};
use mainstay_core::{
    fleet::{RunId, Term},
    name::Name,
};
use std::{collections::BTreeSet, net::SocketAddr, time::Duration};

#[derive(Debug, Clone)]
pub struct MeshConfig {
    /// The name of the fleet: other fleets are foreign, even with the same key.
    pub fleet: String,
    pub me: Name,
    /// The same for every agent of one run.
    pub run: RunId,
    /// UDP for the mesh, TCP for peers.
    pub listen: SocketAddr,
    pub roster: Roster,
    /// The highest term that any run of this node has seen.
    pub highest_term: Option<Term>,
    /// A lost node is seen within two.
    pub tick: Duration,
    pub keys: FleetKeys,
    pub versions: Versions,
}

/// The nodes of the fleet that are written down: whom to look for. May change while the engine runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roster {
    /// Each with its `host:port`.
    pub nodes: Vec<(Name, String)>,
    /// `host:port` of some who know the others.
    pub join: Vec<String>,
    /// Those that are master before others.
    pub core: BTreeSet<Name>,
}
