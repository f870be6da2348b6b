//! What is written down of a fleet, its apps and its jobs, as far as it decides what a fleet does.

use super::{Conciliation, Strategy};
use crate::{
    name::Name,
    plan::{AppPlan, FleetPlan, JobPlan, Place, Plan, nodes_in_order},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
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
