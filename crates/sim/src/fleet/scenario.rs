//! What is written down of a simulated fleet.

use mainstay_core::{
    fleet::{Catalogue, Conciliation, FleetRules, JobRules},
    name::Name,
    plan::{AppPlan, OnFailure, Place},
};
use std::{collections::BTreeMap, sync::Arc};

#[derive(Debug, Clone)]
pub struct Scenario {
    pub nodes: Vec<Name>,
    pub rules: FleetRules,
    pub catalogue: Catalogue,
    /// Nodes of one machine; the others have one of their own.
    pub machines: BTreeMap<Name, String>,
}

#[must_use]
pub fn name(text: &str) -> Name {
    // Only tests use it, with names that are some.
    Name::new(text).unwrap_or_else(|error| panic!("{error}"))
}

impl Scenario {
    /// Nodes of these names, which wait for each other.
    #[must_use]
    pub fn of(nodes: &str) -> Scenario {
        let nodes: Vec<Name> = nodes.split_whitespace().map(name).collect();
        let rules = FleetRules {
            nodes: nodes.clone(),
            conciliation: Conciliation::Senicide,
            ..FleetRules::default()
        };
        Scenario { nodes, rules, catalogue: Catalogue::default(), machines: BTreeMap::new() }
    }

    /// An app that starts by itself.
    #[must_use]
    pub fn app(self, app: &str, on_failure: OnFailure) -> Scenario {
        self.app_of(AppPlan { on_failure, ..AppPlan::new(name(app)) })
    }

    #[must_use]
    pub fn app_of(mut self, plan: AppPlan) -> Scenario {
        self.catalogue.apps.push(plan);
        self
    }

    /// A job of the last app.
    #[must_use]
    pub fn job(self, job: &str, start_sequence: u32, load: u32) -> Scenario {
        self.job_of(job, load, Place { start_sequence, ..Place::default() })
    }

    #[must_use]
    pub fn job_of(mut self, job: &str, load: u32, place: Place) -> Scenario {
        let Some(app) = self.catalogue.apps.last().map(|app| app.name.clone()) else {
            return self;
        };
        let place = Place { load, ..place };
        let rules = JobRules { app, place, definition: 1, instance: None };
        self.catalogue.jobs.insert(name(job), rules);
        self
    }

    /// One of the instances of a job of the last app.
    #[must_use]
    pub fn instance(self, job: &str, number: u32, place: Place) -> Scenario {
        let mut scenario = self.job_of(job, 0, place);
        if let Some(rules) = scenario.catalogue.jobs.get_mut(&name(job)) {
            rules.instance = Some(number);
        }
        scenario
    }

    #[must_use]
    pub fn machine(&self, node: &Name) -> String {
        self.machines.get(node).cloned().unwrap_or_else(|| node.to_string())
    }

    #[must_use]
    pub fn catalogue(&self, _node: &Name) -> Arc<Catalogue> {
        Arc::new(self.catalogue.clone())
    }

    #[must_use]
    pub fn loads(&self) -> BTreeMap<Name, u32> {
        self.catalogue.jobs.iter().map(|(job, rules)| (job.clone(), rules.place.load)).collect()
    }

    /// The names of its apps, and of its jobs.
    #[must_use]
    pub fn names(&self) -> (Vec<Name>, Vec<Name>) {
        let apps = self.catalogue.apps.iter().map(|app| app.name.clone()).collect();
        (apps, self.catalogue.jobs.keys().cloned().collect())
    }
}
