//! The half of an engine on one node: who is heard of, and who is master.

use super::net::Packet;
use mainstay_core::{
    clock::Mono,
    fleet::{Election, EngineEvent, FleetMember, MemberId, NodeFacts, Role, RunId, Term},
    name::Name,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// Who was not heard of for so long is gone.
const GONE: Duration = Duration::from_millis(1500);

#[derive(Debug, Clone)]
pub(super) struct Mesh {
    me: FleetMember,
    core: BTreeSet<Name>,
    heard: BTreeMap<MemberId, (FleetMember, Mono)>,
    members: Vec<FleetMember>,
    election: Election,
    among: Option<BTreeSet<Name>>,
    leader: Option<Term>,
    /// The last facts of each node.
    versions: BTreeMap<Name, (RunId, u64)>,
}

impl Mesh {
    pub(super) fn new(me: FleetMember, core: BTreeSet<Name>, highest_term: Option<Term>) -> Mesh {
        let election = Election::new(me.node.clone(), highest_term);
        Mesh {
            me,
            core,
            heard: BTreeMap::new(),
            members: Vec::new(),
            election,
            among: None,
            leader: None,
            versions: BTreeMap::new(),
        }
    }

    pub(super) fn alive(&self) -> Packet {
        Packet::Alive(self.me.clone())
    }

    pub(super) fn heard_of(&mut self, now: Mono, member: FleetMember) -> Option<EngineEvent> {
        self.heard.insert(member.id, (member, now));
        self.look(now)
    }

    /// Those that are there, if they are not the same as before.
    pub(super) fn look(&mut self, now: Mono) -> Option<EngineEvent> {
        self.heard.retain(|_, (_, at)| now.since(*at) < GONE);
        let mut members = vec![self.me.clone()];
        members.extend(self.heard.values().map(|(member, _)| member.clone()));
        if members == self.members {
            return None;
        }
        self.members = members.clone();
        Some(EngineEvent::Members(members))
    }

    pub(super) fn campaign(&mut self, among: BTreeSet<Name>) -> Option<EngineEvent> {
        self.among = Some(among);
        self.elect()
    }

    /// A node has said whom it follows. What comes late is passed over.
    pub(super) fn claimed(&mut self, node: &Name, facts: &NodeFacts) -> Option<EngineEvent> {
        let (run, version) = (&facts.run, facts.version);
        // A run that is refused has no claim: of one name the earliest counts.
        let run_of = self.members.iter().find(|it| it.node == *node).map(|it| &it.run);
        if run_of != Some(run) {
            return None;
        }
        let known = self.versions.get(node);
        if known.is_some_and(|(known, last)| known == run && *last >= version) {
            return None;
        }
        self.versions.insert(node.clone(), (run.clone(), version));
        self.election.heard(node, facts.term.as_ref(), facts.highest_term.as_ref());
        self.elect()
    }

    fn elect(&mut self) -> Option<EngineEvent> {
        let among = self.among.as_ref()?;
        let Some(term) = self.election.decide(among, &self.core).cloned() else {
            self.leader = None;
            return None;
        };
        if self.leader.as_ref() == Some(&term) {
            return None;
        }
        self.leader = Some(term.clone());
        Some(EngineEvent::Leader { role: Role::Master, term })
    }
}
