//! What somebody sees who looks at a whole fleet, now and over time.

use mainstay_core::{
    fleet::{CopyState, FailureKey, FleetStage, RequestAnswer, RequestId, RunId, Term, Wishes},
    name::Name,
};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, Default)]
pub struct Observation {
    /// Those that are on.
    pub nodes: BTreeMap<Name, NodeSeen>,
    /// The losses that were answered, by whom, and how often the lost node had come back to it.
    pub answered: Vec<(FailureKey, Name, usize)>,
    pub asked: Vec<RequestId>,
    pub replies: Vec<(RequestId, RequestAnswer)>,
    /// Packets were lost, or a cut was there, at some time.
    pub was_cut: bool,
    /// Jobs that have ended by themselves, or were not started, as the master has it.
    pub given_up: BTreeSet<Name>,
    /// The load of each job.
    pub loads: BTreeMap<Name, u32>,
}

#[derive(Debug, Clone)]
pub struct NodeSeen {
    pub run: RunId,
    pub machine: String,
    pub stage: FleetStage,
    pub term: Option<Term>,
    pub is_master: bool,
    pub jobs: BTreeMap<Name, CopyState>,
    /// What somebody has started there, whatever the fleet says.
    pub by_hand: BTreeSet<Name>,
    pub args: BTreeMap<Name, Vec<String>>,
    pub wishes: Wishes,
}

impl Observation {
    /// Where a job runs.
    pub fn homes<'a>(&'a self, job: &'a Name) -> impl Iterator<Item = &'a Name> {
        let runs = move |seen: &NodeSeen| seen.jobs.get(job).is_some_and(|it| it.is_active());
        self.nodes.iter().filter(move |(_, seen)| runs(seen)).map(|(node, _)| node)
    }
}
