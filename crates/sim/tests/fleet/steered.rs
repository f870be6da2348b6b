//! Apps of a fleet as users steer them.

use mainstay_core::{
    fleet::{
        CopyState, FleetRequest, FleetStage, PlannedFate, PlannedJob, RequestAnswer, RunId,
        Strategy,
    },
    name::Name,
    plan::{AppPlan, Distribution, OnFailure, OnStartFailure, Place},
};
use mainstay_sim::fleet::{
    Fault, FleetWorld, Observation, Script,
    observation::NodeSeen,
    scenario::{Scenario, name},
};
use std::{collections::BTreeMap, time::Duration};

fn script(seed: u64) -> Script {
    Script { seed, steps: Vec::new() }
}

fn is_in_operation(seen: &Observation) -> bool {
    !seen.nodes.is_empty() && seen.nodes.values().all(|it| it.stage == FleetStage::Operation)
}

fn await_that(world: &mut FleetWorld, what: &str, is_so: impl Fn(&Observation) -> bool) {
    let took = world.run_while(Duration::from_secs(60), |seen| !is_so(seen));
    assert!(took.is_some(), "never: {what}\n{}", world.trace);
}

fn pass(world: &mut FleetWorld, seconds: u64) {
    let end = world.now() + Duration::from_secs(seconds);
    world.run_until(end);
}

/// Numbers from a seed, for scenarios.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        let at = self.below(all.len() as u64);
        all[usize::try_from(at).unwrap_or(0)]
    }
}

/// Three to five nodes, of which some share a machine, and two apps that are started by hand.
fn scenario(draw: &mut Draw) -> Scenario {
    let names = ["a b c", "a b c d", "a b c d e"];
    let mut scenario = Scenario::of(draw.of(&names));
    scenario.rules.strategy = draw.of(&[
        Strategy::Config,
        Strategy::LessLoaded,
        Strategy::MostLoaded,
        Strategy::Local,
        Strategy::LessLoadedNode,
        Strategy::MostLoadedNode,
    ]);
    if draw.below(2) == 0 {
        scenario.machines = ["b", "c"].map(|node| (name(node), "shared".to_owned())).into();
    }
    for app in ["one", "two"] {
        let strategies = [None, Some(Strategy::LessLoaded), Some(Strategy::MostLoadedNode)];
        scenario = scenario.app_of(AppPlan {
            start_sequence: 0,
            strategy: draw.of(&strategies),
            distribution: draw.of(&[
                Distribution::Any,
                Distribution::Any,
                Distribution::OneNode,
                Distribution::OneMachine,
            ]),
            on_start_failure: draw.of(&[
                OnStartFailure::Abort,
                OnStartFailure::Continue,
                OnStartFailure::Stop,
            ]),
            ..AppPlan::new(name(app))
        });
        for job in 0..=draw.below(6) {
            let start_sequence = u32::try_from(draw.below(4)).unwrap_or(0);
            let load = u32::try_from(5 + draw.below(70)).unwrap_or(0);
            let required = draw.below(3) == 0;
            let place = Place { start_sequence, required, ..Place::default() };
            scenario = scenario.job_of(&format!("{app}-{job}"), load, place);
        }
    }
    scenario
}

fn homes(seen: &Observation) -> BTreeMap<Name, Name> {
    let runs = |(node, it): (&Name, &NodeSeen)| {
        let up = it.jobs.iter().filter(|(_, state)| **state == CopyState::Running);
        up.map(|(job, _)| (job.clone(), node.clone())).collect::<Vec<_>>()
    };
    seen.nodes.iter().flat_map(runs).collect()
}

fn planned(plan: &[PlannedJob]) -> BTreeMap<Name, Name> {
    let home = |it: &PlannedJob| match &it.fate {
        PlannedFate::Runs { node } | PlannedFate::Starts { node } => {
            Some((it.job.clone(), node.clone()))
        }
        PlannedFate::NotPlaced(_) | PlannedFate::Disabled | PlannedFate::NotReached => None,
    };
    plan.iter().filter_map(home).collect()
}

/// Whatever the rules, loads and machines: a plan says what a start then does, on every node.
#[test]
fn a_plan_is_what_a_start_does() {
    let (mut placed, mut refused) = (0, 0);
    for seed in 0..300 {
        let mut draw = Draw(seed);
        let scenario = scenario(&mut draw);
        let stops = |app: &str| {
            let plan = scenario.catalogue.app(&name(app)).expect("an app of the scenario");
            plan.on_start_failure == OnStartFailure::Stop
        };
        let stops = ["one", "two"].map(stops);
        // By the strategy local it is the node that is asked which counts.
        let is_local = |app: &str| {
            let plan = scenario.catalogue.app(&name(app)).expect("an app of the scenario");
            plan.strategy.unwrap_or(scenario.rules.strategy) == Strategy::Local
        };
        let is_local = ["one", "two"].map(is_local);
        let mut world = FleetWorld::new(scenario, script(seed));
        await_that(&mut world, "OPERATION", is_in_operation);
        for ((app, stops), is_local) in ["one", "two"].into_iter().zip(stops).zip(is_local) {
            let nodes: Vec<Name> = world.observe().nodes.keys().cloned().collect();
            let plans: Vec<_> =
                nodes.iter().filter_map(|node| world.plan_start(node, &name(app))).collect();
            let node = draw.of(&[0, 1, 2]);
            let plan = plans[node].clone().expect("the fleet starts what it is told to");
            let same = plans.iter().all(|it| *it == plans[node]);
            assert!(same || is_local, "seed {seed}: {plans:#?}");
            let request = FleetRequest::StartApp { app: name(app) };
            world.inflict(Fault::Ask { node: nodes[node].clone(), request });
            pass(&mut world, 8);
            let mut seen = homes(&world.observe());
            seen.retain(|job, _| job.as_str().starts_with(app));
            let failed = plan.iter().any(|it| matches!(it.fate, PlannedFate::NotPlaced(_)));
            refused += usize::from(failed);
            // An app that is stopped because of that had run before, where the plan says.
            if !(failed && stops) {
                placed += seen.len();
                assert_eq!(seen, planned(&plan), "seed {seed}, {app}: {plan:#?}\n{}", world.trace);
            }
        }
    }
    assert!(placed > 500 && refused > 30, "{placed} placed, {refused} refused");
}

#[test]
fn a_plan_of_nothing_is_answered_as_a_start_is() {
    let mut world = FleetWorld::new(scenario(&mut Draw(1)), script(1));
    let nobody = world.plan_start(&name("a"), &name("one")).expect("it is on");
    assert_eq!(nobody, Err(RequestAnswer::NotNow), "there is no master yet");
    await_that(&mut world, "OPERATION", is_in_operation);
    let none = world.plan_start(&name("b"), &name("none")).expect("it is on");
    assert_eq!(none, Err(RequestAnswer::NoSuchApp));
}

/// One app of two jobs on three nodes.
fn shop() -> FleetWorld {
    let scenario = Scenario::of("a b c")
        .app("shop", OnFailure::RestartProcess)
        .job("db", 1, 60)
        .job("web", 2, 60);
    FleetWorld::new(scenario, script(7))
}

fn runs(seen: &Observation) -> BTreeMap<Name, RunId> {
    seen.nodes.iter().map(|(node, it)| (node.clone(), it.run.clone())).collect()
}

fn is_up(seen: &Observation) -> bool {
    is_in_operation(seen) && homes(seen).len() == 2
}

#[test]
fn a_fleet_begins_anew_and_every_node_has_one_new_run() {
    let mut world = shop();
    await_that(&mut world, "it runs", is_up);
    let (before, at) = (runs(&world.observe()), homes(&world.observe()));
    let request = FleetRequest::EndFleet { again: true };
    world.inflict(Fault::Ask { node: name("b"), request });
    await_that(&mut world, "all have new runs", |seen| {
        is_up(seen) && seen.nodes.values().all(|it| !before.values().any(|run| *run == it.run))
    });
    assert_eq!(homes(&world.observe()), at, "where they were\n{}", world.trace);
    let after = runs(&world.observe());
    pass(&mut world, 30);
    assert_eq!(runs(&world.observe()), after, "once\n{}", world.trace);
}

#[test]
fn a_fleet_begins_anew_also_when_its_master_dies_in_the_middle() {
    let mut world = shop();
    await_that(&mut world, "it runs", is_up);
    let before = runs(&world.observe());
    let request = FleetRequest::EndFleet { again: true };
    world.inflict(Fault::Ask { node: name("c"), request });
    await_that(&mut world, "RESTARTING", |seen| {
        seen.nodes.values().all(|it| it.stage == FleetStage::Restarting)
    });
    world.inflict(Fault::Crash(name("a")));
    await_that(&mut world, "the others have new runs", |seen| {
        ["b", "c"].iter().all(|node| {
            let now = seen.nodes.get(&name(node)).map(|it| &it.run);
            now.is_some() && now != before.get(&name(node))
        })
    });
    world.inflict(Fault::Boot(name("a")));
    await_that(&mut world, "it runs again", is_up);
    let after = runs(&world.observe());
    pass(&mut world, 30);
    assert_eq!(runs(&world.observe()), after, "once\n{}", world.trace);
}
