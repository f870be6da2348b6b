//! What is written down of a simulated fleet.

use super::net::Dice;
use mainstay_core::{
    fleet::{Catalogue, Conciliation, FleetRules, JobRules, Strategy},
    name::Name,
    plan::{AppPlan, Distribution, OnFailure, OnStartFailure, Place},
};
use std::{collections::BTreeMap, fmt};

#[derive(Debug, Clone)]
pub struct Scenario {
    pub nodes: Vec<Name>,
    pub rules: FleetRules,
    pub catalogue: Catalogue,
    /// Nodes of one machine; the others have one of their own.
    pub machines: BTreeMap<Name, String>,
    /// Clocks begin hours apart, and go faster or slower by so many of a thousand; 0: they do not.
    pub skew: u32,
}

const STRATEGIES: [Strategy; 6] = [
    Strategy::Config,
    Strategy::LessLoaded,
    Strategy::MostLoaded,
    Strategy::Local,
    Strategy::LessLoadedNode,
    Strategy::MostLoadedNode,
];

const CONCILIATIONS: [Conciliation; 8] = [
    Conciliation::Senicide,
    Conciliation::Senicide,
    Conciliation::Infanticide,
    Conciliation::Infanticide,
    Conciliation::User,
    Conciliation::Stop,
    Conciliation::Restart,
    Conciliation::RunningFailure,
];

fn random_app(dice: &mut Dice, app: &str, start_sequence: u32) -> AppPlan {
    AppPlan {
        start_sequence,
        on_failure: dice.of(&[
            OnFailure::Continue,
            OnFailure::RestartProcess,
            OnFailure::RestartProcess,
            OnFailure::RestartApp,
            OnFailure::StopApp,
        ]),
        on_start_failure: dice.of(&[
            OnStartFailure::Abort,
            OnStartFailure::Continue,
            OnStartFailure::Stop,
        ]),
        distribution: dice.of(&[
            Distribution::Any,
            Distribution::Any,
            Distribution::Any,
            Distribution::Any,
            Distribution::OneNode,
            Distribution::OneMachine,
        ]),
        ..AppPlan::new(name(app))
    }
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
        let (catalogue, machines) = (Catalogue::default(), BTreeMap::new());
        Scenario { nodes, rules, catalogue, machines, skew: 0 }
    }

    /// Three to five nodes and three apps, with rules of a seed.
    #[must_use]
    pub fn random(seed: u64) -> Scenario {
        let mut dice = Dice::new(seed ^ 0x0F1E_2D3C_4B5A_6978);
        let mut scenario = Scenario::of(dice.of(&["a b c", "a b c d", "a b c d e", "a b c d e"]));
        scenario.rules.strategy = dice.of(&STRATEGIES);
        scenario.rules.conciliation = dice.of(&CONCILIATIONS);
        scenario.rules.auto_fence = dice.chance(150);
        scenario.skew = dice.of(&[0, 20, 100]);
        if dice.chance(200) {
            scenario.rules.core = ["b", "c"].map(name).into();
        }
        if dice.chance(100) {
            scenario.rules.nodes.clear();
        }
        if dice.chance(200) {
            scenario.machines = ["b", "c"].map(|node| (name(node), "shared".to_owned())).into();
        }
        let required =
            |start_sequence| Place { start_sequence, required: true, ..Place::default() };
        let setup = Place { wait_exit: true, ..required(1) };
        scenario
            .app_of(random_app(&mut dice, "base", 1))
            .job_of("db", 40, required(1))
            .job("cache", 1, 30)
            .app_of(random_app(&mut dice, "shop", 2))
            .job_of("setup", 5, setup)
            .job("cart", 2, 20)
            .job("web", 3, 50)
            .app_of(random_app(&mut dice, "extra", 2))
            .job("mail", 1, 10)
            .job("spare", 0, 5)
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

    /// The names of its apps, and of its jobs.
    #[must_use]
    pub fn names(&self) -> (Vec<Name>, Vec<Name>) {
        let apps = self.catalogue.apps.iter().map(|app| app.name.clone()).collect();
        (apps, self.catalogue.jobs.keys().cloned().collect())
    }
}

/// In a few lines, for people.
impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FleetRules { core, auto_fence, strategy, conciliation, .. } = &self.rules;
        let list = |names: &mut dyn Iterator<Item = &Name>| {
            names.map(Name::as_str).collect::<Vec<_>>().join(" ")
        };
        write!(f, "nodes [{}]", list(&mut self.nodes.iter()))?;
        write!(f, ", core [{}], {strategy:?}, {conciliation:?}", list(&mut core.iter()))?;
        let join = if self.rules.nodes.is_empty() { ", whoever joins" } else { "" };
        let fence = if *auto_fence { ", auto_fence" } else { "" };
        writeln!(f, "{join}{fence}, one machine [{}]", list(&mut self.machines.keys()))?;
        for app in &self.catalogue.apps {
            let AppPlan { name, on_failure, on_start_failure, distribution, .. } = app;
            write!(f, "{name}: {on_failure:?}, start {on_start_failure:?}, {distribution:?};")?;
            for (job, rules) in self.catalogue.members(name) {
                write!(f, " {job} {}/{}", rules.place.start_sequence, rules.place.load)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
