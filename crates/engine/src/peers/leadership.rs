//! The `master` role on a mesh: what the nodes claim, and whom this one follows.
//!
//! A claim counts as long as its node takes part, as core says with `Campaign`. What an isolated
//! node claims, or the second run of a name, is kept apart: not even the height of its term is taken.

use mainstay_core::{
    fleet::{Election, EngineEvent, NodeFacts, Role, RunId, Term},
    name::Name,
};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug)]
pub(crate) struct Leadership {
    election: Election,
    core: BTreeSet<Name>,
    /// Those that take part.
    among: Option<BTreeSet<Name>>,
    claims: BTreeMap<Name, Claim>,
    leader: Option<Term>,
}

#[derive(Debug, Clone, PartialEq)]
struct Claim {
    run: RunId,
    version: u64,
    term: Option<Term>,
    highest: Option<Term>,
}

impl Leadership {
    pub(crate) fn new(me: Name, core: BTreeSet<Name>, highest: Option<Term>) -> Leadership {
        let election = Election::new(me, highest);
        Leadership { election, core, among: None, claims: BTreeMap::new(), leader: None }
    }

    pub(crate) fn set_core(&mut self, core: BTreeSet<Name>) -> Option<EngineEvent> {
        self.core = core;
        self.elect()
    }

    /// Whether core takes part with this node.
    pub(crate) fn is_among(&self, node: &Name) -> bool {
        self.among.as_ref().is_some_and(|among| among.contains(node))
    }

    pub(crate) fn campaign(&mut self, among: BTreeSet<Name>) -> Option<EngineEvent> {
        for (node, claim) in self.claims.iter().filter(|(node, _)| among.contains(*node)) {
            self.election.heard(node, claim.term.as_ref(), claim.highest.as_ref());
        }
        self.among = Some(among);
        self.elect()
    }

    /// A node has said whom it follows. What comes late is passed over.
    pub(crate) fn claimed(&mut self, node: &Name, facts: &NodeFacts) -> Option<EngineEvent> {
        let claim = Claim {
            run: facts.run.clone(),
            version: facts.version,
            term: facts.term.clone(),
            highest: facts.highest_term.clone(),
        };
        let known = self.claims.get(node);
        if known.is_some_and(|known| known.run == claim.run && known.version >= claim.version) {
            return None;
        }
        let counts = self.is_among(node);
        if counts {
            self.election.heard(node, claim.term.as_ref(), claim.highest.as_ref());
        }
        self.claims.insert(node.clone(), claim);
        counts.then(|| self.elect()).flatten()
    }

    /// Only of these anything can still come.
    pub(crate) fn retain(&mut self, is_member: impl Fn(&Name) -> bool) {
        self.claims.retain(|node, _| is_member(node));
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
