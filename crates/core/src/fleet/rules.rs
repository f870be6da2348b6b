//! What is written down of a fleet, its apps and its jobs, as far as it decides what a fleet does.

use super::{Conciliation, Strategy};
use crate::{
    name::Name,
    plan::{AppPlan, FleetPlan, JobPlan, Place, Plan, nodes_in_order},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Deref,
    sync::Arc,
    time::Duration,
};

/// `[fleet]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetRules {
    /// Those that are expected, in their order; empty: whoever joins.
    pub nodes: Vec<Name>,
    /// When they are there nobody else is waited for, and one of them is master.
    pub core: BTreeSet<Name>,
    pub sync_timeout: Duration,
    pub order_timeout: Duration,
    /// Whoever is lost stays out until it is readmitted.
    pub auto_fence: bool,
    pub strategy: Strategy,
    pub conciliation: Conciliation,
}

impl Default for FleetRules {
    fn default() -> FleetRules {
        FleetRules {
            nodes: Vec::new(),
            core: BTreeSet::new(),
            sync_timeout: Duration::from_secs(15),
            order_timeout: Duration::from_secs(5),
            auto_fence: false,
            strategy: Strategy::Config,
            conciliation: Conciliation::User,
        }
    }
}

/// All apps and placed jobs that a node knows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Catalogue {
    /// In the order of the file.
    pub apps: Vec<AppPlan>,
    pub jobs: BTreeMap<Name, JobRules>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRules {
    pub app: Name,
    pub place: Place,
    /// A digest of its table as it is written: two nodes know the same job when it is equal.
    pub definition: u64,
    /// Which of the instances of a job it is, counted from 1; `None`: it is one job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<u32>,
}

impl FleetRules {
    #[must_use]
    pub fn of(plan: &FleetPlan) -> FleetRules {
        FleetRules {
            nodes: plan.nodes.iter().map(|node| node.name.clone()).collect(),
            core: plan.core.iter().cloned().collect(),
            sync_timeout: plan.sync_timeout,
            order_timeout: plan.order_timeout,
            auto_fence: plan.auto_fence,
            strategy: plan.strategy,
            conciliation: plan.conciliation,
        }
    }
}

impl JobRules {
    /// It may run on all nodes, in the order of the fleet.
    #[must_use]
    pub(super) fn is_for_all(&self, app: Option<&AppPlan>) -> bool {
        let anywhere = self.place.nodes.is_empty() && app.is_none_or(|app| app.nodes.is_empty());
        anywhere && (self.place.spread.is_none() || self.instance.is_none())
    }

    /// The nodes that it may run on, in this order; `known`: those of the fleet, in theirs.
    #[must_use]
    pub fn nodes(&self, app: Option<&AppPlan>, known: &[Name]) -> Vec<Name> {
        let own = Some(&self.place.nodes).filter(|it| !it.is_empty());
        let patterns = own.or(app.map(|app| &app.nodes)).filter(|it| !it.is_empty());
        let nodes = patterns.map_or_else(|| known.to_vec(), |it| nodes_in_order(it, known));
        match (self.place.spread, self.instance) {
            (Some(spread), Some(number)) => spread.of(number, nodes),
            (Some(_) | None, _) => nodes,
        }
    }
}

impl Catalogue {
    /// The jobs of a plan that are placed by the fleet: those of its apps.
    #[must_use]
    pub fn of(plan: &Plan) -> Catalogue {
        let rules = |job: &JobPlan| {
            let app = plan.placing_app(job)?.name.clone();
            let (place, definition) = (job.place.clone(), job.definition);
            let rules = JobRules { app, place, definition, instance: job.instance() };
            Some((job.name.clone(), rules))
        };
        let jobs = plan.jobs.iter().filter_map(|job| rules(job)).collect();
        Catalogue { apps: plan.apps.clone(), jobs }
    }

    #[must_use]
    pub fn app(&self, name: &Name) -> Option<&AppPlan> {
        self.apps.iter().find(|app| app.name == *name)
    }

    /// The jobs of an app, by name.
    pub fn members<'a>(&'a self, app: &'a Name) -> impl Iterator<Item = (&'a Name, &'a JobRules)> {
        self.jobs.iter().filter(move |(_, rules)| rules.app == *app)
    }

    /// What one node knows, and what only others know.
    pub(super) fn of_all<'a>(
        own: &Arc<Catalogue>,
        others: impl Iterator<Item = &'a Arc<Catalogue>>,
    ) -> Arc<Catalogue> {
        let mut all = own.clone();
        for other in others.filter(|it| !Arc::ptr_eq(it, own)) {
            Arc::make_mut(&mut all).add(other);
        }
        all
    }

    /// What only another node knows is added; what both know stays as it is here.
    pub fn add(&mut self, other: &Catalogue) {
        for app in &other.apps {
            if self.app(&app.name).is_none() {
                self.apps.push(app.clone());
            }
        }
        for (job, rules) in &other.jobs {
            self.jobs.entry(job.clone()).or_insert_with(|| rules.clone());
        }
    }
}

/// All jobs that somebody knows who takes part, and to which apps they belong.
#[derive(Debug, Clone, Default)]
pub(super) struct KnownJobs {
    all: Arc<Catalogue>,
    /// What it was made of, the node's own first.
    sources: Vec<Arc<Catalogue>>,
    /// By app.
    members: BTreeMap<Name, Vec<Name>>,
}

impl KnownJobs {
    /// `true`: it is not what it was.
    pub(super) fn update<'a>(
        &mut self,
        own: &'a Arc<Catalogue>,
        others: impl Iterator<Item = &'a Arc<Catalogue>> + Clone,
    ) -> bool {
        let is_same = |one: &Arc<Catalogue>, other: &&Arc<Catalogue>| Arc::ptr_eq(one, other);
        let mut sources = std::iter::once(own).chain(others.clone());
        let mut known = self.sources.iter();
        if known.all(|it| sources.next().is_some_and(|source| is_same(it, &source)))
            && sources.next().is_none()
            && !self.sources.is_empty()
        {
            return false;
        }
        self.sources = std::iter::once(own).chain(others.clone()).cloned().collect();
        let all = Catalogue::of_all(own, others);
        if Arc::ptr_eq(&all, &self.all) {
            return false;
        }
        *self = KnownJobs { sources: std::mem::take(&mut self.sources), ..KnownJobs::new(all) };
        true
    }

    pub(super) fn new(all: Arc<Catalogue>) -> KnownJobs {
        let mut members: BTreeMap<Name, Vec<Name>> = BTreeMap::new();
        for (job, rules) in &all.jobs {
            members.entry(rules.app.clone()).or_default().push(job.clone());
        }
        KnownJobs { all, sources: Vec::new(), members }
    }

    /// The jobs of an app, by name.
    pub(super) fn members<'a>(
        &'a self,
        app: &Name,
    ) -> impl Iterator<Item = (&'a Name, &'a JobRules)> + use<'a> {
        let names = self.members.get(app).map_or(&[][..], Vec::as_slice);
        names.iter().filter_map(|job| self.all.jobs.get_key_value(job))
    }

    /// A node knows the same.
    pub(super) fn is(&self, other: &Arc<Catalogue>) -> bool {
        Arc::ptr_eq(&self.all, other)
    }
}

impl Deref for KnownJobs {
    type Target = Catalogue;

    fn deref(&self) -> &Catalogue {
        &self.all
    }
}
