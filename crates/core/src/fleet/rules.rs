//! What is written down of a fleet, its apps and its jobs, as far as it decides what a fleet does.

use super::{Conciliation, Strategy};
use crate::{
    name::Name,
    plan::{AppPlan, Place},
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
    pub apps: Vec<AppRules>,
    pub jobs: BTreeMap<Name, JobRules>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppRules {
    pub plan: AppPlan,
    /// `None`: the fleet's.
    pub strategy: Option<Strategy>,
    pub distribution: Distribution,
}

/// How far the jobs of an app may be from each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    #[default]
    Any,
    OneNode,
    OneMachine,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRules {
    pub app: Name,
    pub place: Place,
    /// A digest of its table as it is written: two nodes know the same job when it is equal.
    pub definition: u64,
    /// What it takes of a machine, of 100.
    pub load: u32,
    /// Where it may run, in this order; empty: anywhere, in the order of the fleet.
    pub nodes: Vec<Name>,
    /// How long a start with `wait_exit` waits.
    pub wait_timeout: Duration,
}

impl Catalogue {
    #[must_use]
    pub fn app(&self, name: &Name) -> Option<&AppRules> {
        self.apps.iter().find(|app| app.plan.name == *name)
    }

    /// The jobs of an app, by name.
    pub fn members<'a>(&'a self, app: &'a Name) -> impl Iterator<Item = (&'a Name, &'a JobRules)> {
        self.jobs.iter().filter(move |(_, rules)| rules.app == *app)
    }

    /// What only another node knows is added; what both know stays as it is here.
    pub fn add(&mut self, other: &Catalogue) {
        for app in &other.apps {
            if self.app(&app.plan.name).is_none() {
                self.apps.push(app.clone());
            }
        }
        for (job, rules) in &other.jobs {
            self.jobs.entry(job.clone()).or_insert_with(|| rules.clone());
        }
    }
}
