//! What observers may ask of a fleet: how one node sees it.

use super::{
    Catalogue, CopyState, Fleet, JobCopy, JobStanding, JobWish, NodeFacts, PeerState, PlannedJob,
    RequestAnswer, Work,
    master::{KnownFleet, Master, Roster},
    rules::KnownJobs,
};
use crate::{
    app::{AppFailure, AppPhase},
    clock::Mono,
    job::Desired,
    name::Name,
};
use std::{collections::BTreeMap, sync::Arc};

/// A node of the fleet.
#[derive(Debug, Clone)]
pub struct NodeView {
    pub name: Name,
    /// Of the node that looks: it takes part in its own eyes.
    pub state: PeerState,
    /// What it says of itself; `None`: it is not heard.
    pub facts: Option<Arc<NodeFacts>>,
    /// What runs there takes so much.
    pub load: u32,
}

/// A placed job.
#[derive(Debug, Clone)]
pub struct PlacedView {
    pub job: Name,
    pub app: Name,
    /// `None`: nobody has said anything about it.
    pub wish: Option<JobWish>,
    /// Where there is something of it.
    pub copies: Vec<(Name, JobCopy)>,
    /// What the master makes of it, if one is known.
    pub standing: Option<JobStanding>,
    /// Nodes that know it otherwise than the master: it is not placed there.
    pub differs: Vec<Name>,
    /// Nodes that take part and know it.
    pub known_by: Vec<Name>,
    /// Those that a user has taken from its candidates.
    pub disabled_on: Vec<Name>,
}

/// An app of the fleet.
#[derive(Debug, Clone)]
pub struct AppView {
    pub name: Name,
    pub phase: AppPhase,
    /// What is wrong with its jobs, if the master says so.
    pub failed: BTreeMap<Name, AppFailure>,
}

impl AppView {
    #[must_use]
    pub fn failure(&self) -> AppFailure {
        self.failed.values().copied().max().unwrap_or_default()
    }
}

impl PlacedView {
    /// Where it runs, in a broad sense.
    pub fn homes(&self) -> impl Iterator<Item = &Name> {
        self.copies.iter().filter(|(_, copy)| copy.state.is_active()).map(|(node, _)| node)
    }

    #[must_use]
    pub fn is_in_conflict(&self) -> bool {
        self.copies.iter().filter(|(_, copy)| copy.state.is_up()).count() > 1
    }

    #[must_use]
    pub fn desired(&self) -> Desired {
        self.wish.as_ref().map_or(Desired::Rest, |wish| wish.desired)
    }
}

impl CopyState {
    /// Of several copies the one counts that is nearest to running.
    #[must_use]
    pub fn rank(self) -> u8 {
        match self {
            CopyState::Running => 0,
            CopyState::Starting => 1,
            CopyState::Backoff => 2,
            CopyState::Waiting => 3,
            CopyState::Stopping => 4,
            CopyState::Fatal => 5,
            CopyState::Exited { .. } => 6,
            CopyState::Stopped => 7,
        }
    }
}

impl Fleet {
    /// This node first, then the others by name.
    #[must_use]
    pub fn nodes(&self) -> Vec<NodeView> {
        let me = NodeView {
            name: self.me.name.clone(),
            state: PeerState::Running,
            facts: self.said.clone(),
            load: self.load(&self.jobs),
        };
        let others = self.peers.iter().map(|(node, state)| {
            let facts = self.peers.facts(node).cloned();
            let load = facts.as_ref().map_or(0, |facts| self.load(&facts.jobs));
            NodeView { name: node.clone(), state, facts, load }
        });
        std::iter::once(me).chain(others).collect()
    }

    /// All placed jobs that somebody knows who takes part.
    #[must_use]
    pub fn placed(&self) -> Vec<PlacedView> {
        let all = self.catalogue_of_all();
        all.jobs.keys().filter_map(|job| self.placed_in(&all, job)).collect()
    }

    #[must_use]
    pub fn placed_job(&self, job: &Name) -> Option<PlacedView> {
        self.placed_in(&self.catalogue_of_all(), job)
    }

    /// The apps that somebody knows who takes part, in the order of the file; how they are, by the
    /// master's word.
    #[must_use]
    pub fn app_views(&self) -> Vec<AppView> {
        let phases = self.app_phases();
        let work = self.followed_work();
        let view = |name: Name| AppView {
            phase: phases.get(&name).copied().unwrap_or(AppPhase::Stopped),
            failed: work.and_then(|work| work.failed.get(&name).cloned()).unwrap_or_default(),
            name,
        };
        self.catalogue_of_all().apps.iter().map(|app| view(app.name.clone())).collect()
    }

    fn app_phases(&self) -> BTreeMap<Name, AppPhase> {
        let own = || self.apps().map(|(app, phase)| (app.clone(), phase)).collect();
        match (self.is_master(), self.followed_work()) {
            (true, _) | (false, None) => own(),
            (false, Some(work)) => {
                work.apps.iter().map(|(app, state)| (app.clone(), state.phase())).collect()
            }
        }
    }

    fn placed_in(&self, all: &Catalogue, job: &Name) -> Option<PlacedView> {
        let rules = all.jobs.get(job)?;
        let copies = self.jobs.get(job).map(|copy| (self.me.name.clone(), copy.clone()));
        let others = self
            .peers
            .running()
            .filter_map(|(node, facts)| Some((node.clone(), facts.jobs.get(job)?.clone())));
        let is_out =
            |copies: &BTreeMap<Name, JobCopy>| copies.get(job).is_some_and(|it| it.disabled);
        let own_out = is_out(&self.jobs).then(|| self.me.name.clone());
        let out = self.peers.running().filter(|(_, facts)| is_out(&facts.jobs));
        let disabled_on = own_out.into_iter().chain(out.map(|(node, _)| node.clone())).collect();
        let counts = |(_, copy): &(Name, JobCopy)| copy.counts();
        let own = self.catalogue.jobs.get(job).map(|it| (&self.me.name, it.definition));
        let known = self
            .peers
            .running()
            .filter_map(|(node, facts)| Some((node, facts.catalogue.jobs.get(job)?.definition)));
        let (same, other): (Vec<_>, Vec<_>) =
            own.into_iter().chain(known).partition(|(_, it)| *it == rules.definition);
        let names = |nodes: Vec<(&Name, u64)>| nodes.into_iter().map(|it| it.0.clone()).collect();
        Some(PlacedView {
            job: job.clone(),
            app: rules.app.clone(),
            wish: self.wishes.of(job).cloned(),
            copies: copies.into_iter().chain(others).filter(counts).collect(),
            standing: self.followed_work().and_then(|work| work.jobs.get(job).cloned()),
            differs: names(other),
            known_by: names(same),
            disabled_on,
        })
    }

    /// Where each job of an app would go if it were started now, in the order of the start; or what
    /// the master would answer instead.
    ///
    /// # Errors
    /// What a start would be answered with.
    pub fn plan_start(&self, now: Mono, app: &Name) -> Result<Vec<PlannedJob>, RequestAnswer> {
        let master = match (&self.master, self.followed_work()) {
            (Some(master), _) => master.clone(),
            (None, Some(work)) => Master::known_by(work, now),
            (None, None) => return Err(RequestAnswer::NotNow),
        };
        let mut nodes = Roster::default();
        let own = Arc::new(self.facts(now, None));
        nodes.update((&self.me.name, &own), self.peers.running());
        // The master's rules hold, wherever it is asked.
        let of_master = nodes.get(&master.term().master).map(|it| Catalogue::clone(&it.catalogue));
        let mut catalogue = of_master.unwrap_or_default();
        catalogue.add(&self.catalogue_of_all());
        let catalogue = KnownJobs::new(Arc::new(catalogue));
        let (rules, wishes) = (&self.rules, self.wishes.clone());
        let asked = &self.me.name;
        master.plan_start(KnownFleet { now, asked, rules, catalogue, nodes, wishes }, app)
    }

    /// The work of the master that this node follows.
    pub(super) fn followed_work(&self) -> Option<&Work> {
        self.last_work.as_deref().filter(|work| Some(&work.number.term) == self.term.as_ref())
    }

    fn load(&self, jobs: &BTreeMap<Name, JobCopy>) -> u32 {
        let active = jobs.iter().filter(|(_, copy)| copy.state.is_active());
        let all = self.peers.running().map(|(_, facts)| &facts.catalogue);
        let catalogues: Vec<_> = std::iter::once(&self.catalogue).chain(all).collect();
        let load = |job: &Name| catalogues.iter().find_map(|it| Some(it.jobs.get(job)?.place.load));
        active.filter_map(|(job, _)| load(job)).sum()
    }
}
