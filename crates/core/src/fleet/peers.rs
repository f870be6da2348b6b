//! The other nodes, as one node sees them.
//!
//! ```text
//!  UNKNOWN ──reached──► CHECKING ──its facts──► RUNNING ──gone──► SILENT ──reached──► CHECKING
//!     │                    │ it isolates us                 └─ with auto_fence ─► ISOLATED
//!     └─ sync_timeout ─► SILENT (ISOLATED with auto_fence)
//! ```
//!
//! A node is its name. A new run under a known name is first the loss of the old run, then a join.
//! While the earlier run can still be reached, a second one of its name is refused, and tries again.
//! Two take part with each other only while each accepts the run of the other: whoever is refused, or
//! is heard but does not hear, has no part.
//!
//! Isolation that was decided here stays, over boots, until it is taken back. Isolation that only
//! mirrors that of the other goes when the other's is gone. Of an isolated node nothing is taken but
//! that.

use super::{FleetMember, NodeFacts, RunId, Shared};
use crate::{clock::Mono, name::Name};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum PeerState {
    Unknown,
    Checking,
    Running,
    Silent,
    Isolated,
}

/// What has become of a peer.
#[derive(Debug, Clone, PartialEq)]
pub enum PeerChange {
    Joined {
        node: Name,
    },
    /// Its last facts say what ran there.
    Lost {
        node: Name,
        facts: Arc<NodeFacts>,
    },
    Isolated {
        node: Name,
    },
    /// A second run of its name wants in while the first is there.
    Refused {
        node: Name,
        run: RunId,
    },
}

#[derive(Debug, Clone, PartialEq)]
enum Peer {
    Unknown,
    Checking { run: RunId },
    Running { facts: Arc<NodeFacts>, heard: Mono },
    Silent,
    Isolated { mirrored: bool },
}

#[derive(Debug, Clone)]
pub struct Peers {
    me: Name,
    run: RunId,
    auto_fence: bool,
    peers: BTreeMap<Name, Peer>,
    /// Those that can be reached, and by which run.
    reached: BTreeMap<Name, FleetMember>,
    /// The runs of those.
    accepts: Shared<BTreeMap<Name, RunId>>,
    /// The names of those that take part, and of those that this node has decided to isolate.
    taking_part: Shared<BTreeSet<Name>>,
    isolates: Shared<BTreeSet<Name>>,
    refused: BTreeSet<RunId>,
    /// Nodes that take part with another run of this one.
    refused_by: BTreeSet<Name>,
}

impl Peers {
    /// `isolated`: by this node, in an earlier run.
    #[must_use]
    pub fn new(
        (me, run): (Name, RunId),
        nodes: &[Name],
        auto_fence: bool,
        isolated: &BTreeSet<Name>,
    ) -> Peers {
        let known = nodes.iter().chain(isolated).filter(|node| **node != me);
        let peer = |node: &Name| match isolated.contains(node) {
            true => Peer::Isolated { mirrored: false },
            false => Peer::Unknown,
        };
        let peers = known.map(|node| (node.clone(), peer(node))).collect();
        let mut peers = Peers {
            me,
            run,
            auto_fence,
            peers,
            reached: BTreeMap::new(),
            accepts: Shared::default(),
            taking_part: Shared::default(),
            isolates: Shared::default(),
            refused: BTreeSet::new(),
            refused_by: BTreeSet::new(),
        };
        peers.count();
        peers
    }

    /// Other nodes are expected from now on. Those that are not any more go when they are not there.
    pub fn expect(&mut self, nodes: &[Name], auto_fence: bool) {
        self.auto_fence = auto_fence;
        self.peers.retain(|node, peer| match peer {
            Peer::Unknown | Peer::Silent => nodes.contains(node),
            Peer::Checking { .. } | Peer::Running { .. } | Peer::Isolated { .. } => true,
        });
        for node in nodes.iter().filter(|node| **node != self.me) {
            self.peers.entry(node.clone()).or_insert(Peer::Unknown);
        }
        self.count();
    }

    /// Some peer is not what it was.
    fn count(&mut self) {
        let named = |is: fn(&Peer) -> bool| {
            let peers = self.peers.iter().filter(move |(_, peer)| is(peer));
            peers.map(|(node, _)| node.clone()).collect::<BTreeSet<Name>>()
        };
        let taking_part = named(|peer| matches!(peer, Peer::Running { .. }));
        let isolates = named(|peer| *peer == Peer::Isolated { mirrored: false });
        self.taking_part.set(taking_part);
        self.isolates.set(isolates);
    }

    /// The names of those that take part, without this node.
    pub(super) fn taking_part(&self) -> &Shared<BTreeSet<Name>> {
        &self.taking_part
    }

    /// Nothing in these facts is news: the peer has said the same or more.
    pub(super) fn has_heard(&self, node: &Name, facts: &NodeFacts) -> bool {
        let known = self.facts(node).filter(|_| !self.refused_by.contains(node));
        known.is_some_and(|it| it.run == facts.run && it.version >= facts.version)
    }

    #[must_use]
    pub fn state(&self, node: &Name) -> PeerState {
        match self.peers.get(node) {
            None | Some(Peer::Unknown) => PeerState::Unknown,
            Some(Peer::Checking { .. }) => PeerState::Checking,
            Some(Peer::Running { .. }) => PeerState::Running,
            Some(Peer::Silent) => PeerState::Silent,
            Some(Peer::Isolated { .. }) => PeerState::Isolated,
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Name, PeerState)> {
        self.peers.keys().map(|node| (node, self.state(node)))
    }

    /// Those that take part, and what they say.
    pub fn running(&self) -> impl Iterator<Item = (&Name, &Arc<NodeFacts>)> + Clone {
        self.peers.iter().filter_map(|(node, peer)| match peer {
            Peer::Running { facts, .. } => Some((node, facts)),
            Peer::Unknown | Peer::Checking { .. } | Peer::Silent | Peer::Isolated { .. } => None,
        })
    }

    /// The facts of one that takes part.
    #[must_use]
    pub fn facts(&self, node: &Name) -> Option<&Arc<NodeFacts>> {
        match self.peers.get(node)? {
            Peer::Running { facts, .. } => Some(facts),
            Peer::Unknown | Peer::Checking { .. } | Peer::Silent | Peer::Isolated { .. } => None,
        }
    }

    /// Somebody who can be reached takes part with another run of this node.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        !self.refused_by.is_empty()
    }

    /// The runs that can be reached and are not refused.
    #[must_use]
    pub fn accepts(&self) -> &Shared<BTreeMap<Name, RunId>> {
        &self.accepts
    }

    /// How long ago a node has said its last facts.
    #[must_use]
    pub fn age(&self, node: &Name, now: Mono) -> Duration {
        match self.peers.get(node) {
            Some(Peer::Running { heard, .. }) => now.since(*heard),
            None
            | Some(Peer::Unknown | Peer::Checking { .. } | Peer::Silent | Peer::Isolated { .. }) => {
                Duration::ZERO
            }
        }
    }

    /// Those that this node has decided to isolate.
    #[must_use]
    pub fn isolates(&self) -> &Shared<BTreeSet<Name>> {
        &self.isolates
    }

    /// The engine can reach these, this node among them.
    pub fn members_are(&mut self, members: &[FleetMember]) -> Vec<PeerChange> {
        let mut changes = Vec::new();
        let mut now: BTreeMap<Name, FleetMember> = BTreeMap::new();
        for member in members.iter().filter(|it| it.node != self.me) {
            // The earlier run of a name goes before a later one, as long as it is there.
            let earlier = |it: &FleetMember| it.id < member.id;
            if now.get(&member.node).is_none_or(|known| !earlier(known)) {
                now.insert(member.node.clone(), member.clone());
            }
        }
        let refused = members
            .iter()
            .filter(|it| now.get(&it.node).is_some_and(|accepted| accepted.run != it.run));
        let refused: BTreeMap<RunId, Name> =
            refused.map(|it| (it.run.clone(), it.node.clone())).collect();
        for (run, node) in &refused {
            if self.refused.insert(run.clone()) {
                changes.push(PeerChange::Refused { node: node.clone(), run: run.clone() });
            }
        }
        self.refused.retain(|run| refused.contains_key(run));
        let names: BTreeSet<Name> = self.peers.keys().chain(now.keys()).cloned().collect();
        for node in names {
            let run = now.get(&node).map(|member| member.run.clone());
            self.reached_by(&mut changes, &node, run);
        }
        self.refused_by.retain(|node| now.contains_key(node));
        let runs = now.iter().map(|(node, member)| (node.clone(), member.run.clone()));
        self.accepts.set(runs.collect());
        self.reached = now;
        self.count();
        changes
    }

    fn reached_by(&mut self, changes: &mut Vec<PeerChange>, node: &Name, run: Option<RunId>) {
        let peer = self.peers.entry(node.clone()).or_insert(Peer::Unknown);
        let next = match (&*peer, run) {
            (Peer::Unknown | Peer::Silent, Some(run)) => Some(Peer::Checking { run }),
            (Peer::Checking { run: known }, Some(run)) if *known != run => {
                Some(Peer::Checking { run })
            }
            (Peer::Checking { .. }, None) => Some(Peer::Silent),
            (Peer::Running { facts, .. }, run) if run.as_ref() != Some(&facts.run) => {
                changes.push(PeerChange::Lost { node: node.clone(), facts: facts.clone() });
                let ended = facts.ending;
                Some(match (self.auto_fence && !ended, run) {
                    (true, _) => {
                        changes.push(PeerChange::Isolated { node: node.clone() });
                        Peer::Isolated { mirrored: false }
                    }
                    (false, Some(run)) => Peer::Checking { run },
                    (false, None) => Peer::Silent,
                })
            }
            (Peer::Unknown | Peer::Silent, None)
            | (Peer::Checking { .. } | Peer::Running { .. }, _)
            | (Peer::Isolated { .. }, _) => None,
        };
        if let Some(next) = next {
            *peer = next;
        }
    }

    /// A node has said what it is.
    pub fn heard(&mut self, now: Mono, node: &Name, facts: &Arc<NodeFacts>) -> Vec<PeerChange> {
        let isolates_us = facts.isolates.contains(&self.me);
        let accepts_us = facts.accepts.get(&self.me) == Some(&self.run);
        let is_reached = self.reached.get(node).is_some_and(|member| member.run == facts.run);
        let refuses = facts.in_sync && !accepts_us && facts.accepts.contains_key(&self.me);
        match is_reached && refuses && !isolates_us {
            true => drop(self.refused_by.insert(node.clone())),
            false => drop(self.refused_by.remove(node)),
        }
        let Some(peer) = self.peers.get_mut(node) else { return Vec::new() };
        let (next, change) = match peer {
            Peer::Isolated { mirrored: true } if !isolates_us && is_reached => {
                (Peer::Checking { run: facts.run.clone() }, None)
            }
            Peer::Checking { run } if *run != facts.run => return Vec::new(),
            Peer::Running { facts: known, .. }
                if known.run != facts.run || facts.version <= known.version =>
            {
                return Vec::new();
            }
            Peer::Unknown | Peer::Silent | Peer::Isolated { .. } => return Vec::new(),
            Peer::Checking { .. } | Peer::Running { .. } if isolates_us => (
                Peer::Isolated { mirrored: true },
                Some(PeerChange::Isolated { node: node.clone() }),
            ),
            Peer::Checking { .. } if !accepts_us => return Vec::new(),
            Peer::Running { facts: known, .. } if !accepts_us => {
                let lost = PeerChange::Lost { node: node.clone(), facts: known.clone() };
                (Peer::Checking { run: facts.run.clone() }, Some(lost))
            }
            Peer::Checking { .. } => (
                Peer::Running { facts: facts.clone(), heard: now },
                Some(PeerChange::Joined { node: node.clone() }),
            ),
            Peer::Running { .. } => (Peer::Running { facts: facts.clone(), heard: now }, None),
        };
        let goes_on = matches!(next, Peer::Running { .. }) && matches!(peer, Peer::Running { .. });
        let before = std::mem::replace(peer, next);
        if !goes_on {
            self.count();
        }
        let mut changes = Vec::new();
        if let (Peer::Running { facts, .. }, Some(PeerChange::Isolated { .. })) = (before, &change)
        {
            changes.push(PeerChange::Lost { node: node.clone(), facts });
        }
        changes.extend(change);
        // What follows a mirrored isolation is the same hand-shake as for anybody.
        if self.state(node) == PeerState::Checking && accepts_us {
            changes.extend(self.heard(now, node, facts));
        }
        changes
    }

    /// The time to wait for those that never came is over.
    pub fn give_up_waiting(&mut self) -> Vec<PeerChange> {
        let mut changes = Vec::new();
        for (node, peer) in &mut self.peers {
            match peer {
                Peer::Unknown | Peer::Checking { .. } if self.auto_fence => {
                    *peer = Peer::Isolated { mirrored: false };
                    changes.push(PeerChange::Isolated { node: node.clone() });
                }
                Peer::Unknown => *peer = Peer::Silent,
                Peer::Checking { .. }
                | Peer::Running { .. }
                | Peer::Silent
                | Peer::Isolated { .. } => {}
            }
        }
        self.count();
        changes
    }

    /// A user takes the isolation of a node back.
    pub fn readmit(&mut self, node: &Name) {
        if let Some(peer @ Peer::Isolated { .. }) = self.peers.get_mut(node) {
            *peer = match self.reached.get(node) {
                Some(member) => Peer::Checking { run: member.run.clone() },
                None => Peer::Silent,
            };
            self.count();
        }
    }
}
