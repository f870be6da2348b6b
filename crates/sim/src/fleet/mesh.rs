//! The half of an engine on one node: who is heard of, and who is master. Claims are counted as the
//! real one counts them.

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
    claims: BTreeMap<Name, Claim>,
}

/// What a node has said last of the master that it follows.
#[derive(Debug, Clone)]
struct Claim {
    run: RunId,
    version: u64,
    term: Option<Term>,
    highest: Option<Term>,
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
            claims: BTreeMap::new(),
        }
    }

    pub(super) fn leaves(&self) -> Packet {
        Packet::Leaves(self.me.clone())
    }

    pub(super) fn alive(&self) -> Packet {
        Packet::Alive(self.me.clone())
    }

    /// The run that a node of this name is taken for.
    pub(super) fn run_of(&self, node: &Name) -> Option<u64> {
        let runs = self.heard.values().filter(|(member, _)| member.node == *node);
        runs.map(|(member, _)| member.id.0).min()
    }

    pub(super) fn heard_of(&mut self, now: Mono, member: FleetMember) -> Option<EngineEvent> {
        let id = member.id;
        let known = self.heard.insert(id, (member, now)).is_some();
        // Who is known and was heard of in time is there as before.
        if known && !self.heard.values().any(|(_, at)| now.since(*at) >= GONE) {
            return None;
        }
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
        self.claims.retain(|node, _| members.iter().any(|it| it.node == *node));
        self.members = members.clone();
        Some(EngineEvent::Members(members))
    }

    /// It has gone, on purpose.
    pub(super) fn left(&mut self, now: Mono, member: &FleetMember) -> Option<EngineEvent> {
        self.heard.remove(&member.id);
        self.look(now)
    }

    pub(super) fn campaign(&mut self, among: BTreeSet<Name>) -> Option<EngineEvent> {
        for (node, claim) in self.claims.iter().filter(|(node, _)| among.contains(*node)) {
            self.election.heard(node, claim.term.as_ref(), claim.highest.as_ref());
        }
        self.among = Some(among);
        self.elect()
    }

    /// A node has said whom it follows. What comes late is passed over, and what somebody says who
    /// does not take part is kept apart.
    pub(super) fn claimed(&mut self, node: &Name, facts: &NodeFacts) -> Option<EngineEvent> {
        // A run that is refused has no claim: of one name the earliest counts.
        let run_of = self.members.iter().find(|it| it.node == *node).map(|it| &it.run);
        if run_of != Some(&facts.run) {
            return None;
        }
        let known = self.claims.get(node);
        if known.is_some_and(|it| it.run == facts.run && it.version >= facts.version) {
            return None;
        }
        let claim = Claim {
            run: facts.run.clone(),
            version: facts.version,
            term: facts.term.clone(),
            highest: facts.highest_term.clone(),
        };
        let counts = self.among.as_ref().is_some_and(|among| among.contains(node));
        if counts {
            self.election.heard(node, claim.term.as_ref(), claim.highest.as_ref());
        }
        self.claims.insert(node.clone(), claim);
        counts.then(|| self.elect()).flatten()
    }

    fn elect(&mut self) -> Option<EngineEvent> {
        let among = self.among.as_ref()?;
        let term = self.election.decide(among, &self.core).cloned();
        if term == self.leader {
            return None;
        }
        self.leader.clone_from(&term);
        term.map(|term| EngineEvent::Leader { role: Role::Master, term })
    }
}
