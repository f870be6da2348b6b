//! How soon large fleets agree, and what small ones cost.

use crate::shop::{is_in_operation, quiet};
use mainstay_core::{
    fleet::Strategy,
    plan::{AppPlan, OnFailure},
};
use mainstay_sim::fleet::{
    Fault, FleetWorld,
    scenario::{Scenario, name},
};
use std::time::{Duration, Instant};

/// So many nodes with a job each.
fn fleet(nodes: usize) -> Scenario {
    let names: Vec<String> = (0..nodes).map(|number| format!("node-{number:03}")).collect();
    let mut scenario = Scenario::of(&names.join(" "));
    scenario.rules.strategy = Strategy::LessLoaded;
    scenario = scenario
        .app_of(AppPlan { on_failure: OnFailure::RestartProcess, ..AppPlan::new(name("shop")) });
    for number in 0..nodes {
        scenario = scenario.job(&format!("job-{number:03}"), 1, 20);
    }
    scenario
}

/// All have met each other, follow one master, and all jobs run.
fn is_converged(world: &FleetWorld, nodes: usize) -> bool {
    let seen = world.observe();
    let placed = seen.nodes.values().flat_map(|it| it.jobs.values());
    let placed = placed.filter(|state| state.is_active()).count();
    seen.nodes.len() == nodes && is_in_operation(&seen) && placed == nodes
}

/// How long it takes until it is so, to a quarter of a second.
fn converge(world: &mut FleetWorld, nodes: usize) -> Duration {
    let begin = world.now();
    while !is_converged(world, nodes) {
        assert!(world.now() - begin < Duration::from_secs(60), "never");
        let end = world.now() + Duration::from_millis(250);
        world.run_until(end);
    }
    world.now() - begin
}

#[test]
fn a_hundred_nodes_converge_in_five_seconds() {
    let mut world = FleetWorld::new(fleet(100), quiet()).untold();
    let begin = Instant::now();
    let took = converge(&mut world, 100);
    println!("100 nodes: converged after {took:?} of virtual time, in {:?}", begin.elapsed());
    assert!(took <= Duration::from_secs(5), "{took:?}");
}

#[test]
fn twenty_nodes_converge_in_five_seconds() {
    let mut world = FleetWorld::new(fleet(20), quiet()).untold();
    let took = converge(&mut world, 20);
    println!("20 nodes: converged after {took:?} of virtual time");
    assert!(took <= Duration::from_secs(5), "{took:?}");
}

/// Not in a debug build, and only where nothing else runs: `MAINSTAY_FLEET_COST=1 cargo test
/// --release -p mainstay-sim --test fleet what_five -- --nocapture`.
#[test]
fn what_five_nodes_cost_in_two_minutes() {
    let mut times = Vec::new();
    for _ in 0..5 {
        let mut world = FleetWorld::new(fleet(5), quiet()).untold();
        let begin = Instant::now();
        world.run_until(Duration::from_secs(30));
        world.inflict(Fault::Crash(name("node-001")));
        world.run_until(Duration::from_secs(60));
        world.inflict(Fault::Boot(name("node-001")));
        world.run_until(Duration::from_secs(120));
        times.push(begin.elapsed());
        assert!(is_converged(&world, 5));
    }
    let best = times.iter().min().copied().unwrap_or_default();
    println!("five nodes, two minutes of virtual time: {best:?}");
    if std::env::var_os("MAINSTAY_FLEET_COST").is_some() {
        assert!(best <= Duration::from_millis(50), "{times:?}");
    }
}
