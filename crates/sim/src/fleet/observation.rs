//! What somebody sees who looks at a whole fleet, now and over time.

use super::History;
use mainstay_core::{
    fleet::{Catalogue, CopyState, FleetRules, FleetStage, JobStanding, RunId, Term, Wishes, Work},
    name::Name,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Deref,
    sync::Arc,
};

#[derive(Debug, Clone, Default)]
pub struct Observation {
    /// Those that are on.
    pub nodes: BTreeMap<Name, NodeSeen>,
    pub history: Arc<History>,
    pub catalogue: Arc<Catalogue>,
    pub rules: FleetRules,
}

#[derive(Debug, Clone)]
pub struct NodeSeen {
    pub run: RunId,
    pub machine: String,
    pub stage: FleetStage,
    pub term: Option<Term>,
    pub is_master: bool,
    pub drained: bool,
    pub jobs: BTreeMap<Name, CopyState>,
    /// What somebody has started there, whatever the fleet says.
    pub by_hand: BTreeSet<Name>,
    /// What somebody has stopped there, alike.
    pub stopped_by_hand: BTreeSet<Name>,
    pub args: BTreeMap<Name, Vec<String>>,
    /// Jobs that run there with arguments that the node has lost with its journal.
    pub args_lost: BTreeSet<Name>,
    pub wishes: Wishes,
    /// Losses that it holds for unanswered.
    pub failures: usize,
    /// What was asked of it and is not answered.
    pub open_requests: usize,
    /// What it has in hand as a master.
    pub work: Option<Arc<Work>>,
}

/// What has happened is part of what is seen.
impl Deref for Observation {
    type Target = History;

    fn deref(&self) -> &History {
        &self.history
    }
}

impl Observation {
    /// Where a job runs.
    pub fn homes<'a>(&'a self, job: &'a Name) -> impl Iterator<Item = &'a Name> {
        let runs = move |seen: &NodeSeen| seen.jobs.get(job).is_some_and(|it| it.is_active());
        self.nodes.iter().filter(move |(_, seen)| runs(seen)).map(|(node, _)| node)
    }

    pub fn jobs(&self) -> impl Iterator<Item = &Name> {
        self.catalogue.jobs.keys()
    }

    #[must_use]
    pub fn load(&self, job: &Name) -> u32 {
        self.catalogue.jobs.get(job).map_or(0, |rules| rules.place.load)
    }

    #[must_use]
    pub fn master(&self) -> Option<(&Name, &NodeSeen)> {
        self.nodes.iter().find(|(_, it)| it.is_master)
    }

    /// What the master makes of a job.
    #[must_use]
    pub fn standing(&self, job: &Name) -> Option<&JobStanding> {
        self.master()?.1.work.as_ref()?.jobs.get(job)
    }

    /// What each machine bears; without those where somebody has done something by hand.
    #[must_use]
    pub fn machines(&self) -> BTreeMap<&str, u32> {
        let mut machines: BTreeMap<&str, u32> = BTreeMap::new();
        for it in self.nodes.values() {
            let active = it.jobs.iter().filter(|(_, state)| state.is_active());
            let load: u32 = active.map(|(job, _)| self.load(job)).sum();
            *machines.entry(it.machine.as_str()).or_default() += load;
        }
        machines
    }
}
