//! A small fleet, and how a story waits for what becomes of it.

use mainstay_core::{
    fleet::{CopyState, FleetRequest, FleetStage},
    plan::OnFailure,
};
use mainstay_sim::fleet::{
    Fault, FleetWorld, Observation, Script, invariants,
    scenario::{Scenario, name},
};
use std::time::Duration;

/// One app of two jobs on three nodes.
pub(crate) fn scenario(on_failure: OnFailure) -> Scenario {
    Scenario::of("a b c").app("shop", on_failure).job("db", 1, 60).job("web", 2, 60)
}

pub(crate) fn world(on_failure: OnFailure) -> FleetWorld {
    FleetWorld::new(scenario(on_failure), quiet())
}

pub(crate) fn quiet() -> Script {
    Script::quiet(7)
}

pub(crate) fn runs(seen: &Observation, job: &str, node: &str) -> bool {
    let jobs = seen.nodes.get(&name(node)).map(|it| &it.jobs);
    jobs.and_then(|jobs| jobs.get(&name(job))) == Some(&CopyState::Running)
}

pub(crate) fn runs_nowhere(seen: &Observation, job: &str) -> bool {
    seen.homes(&name(job)).next().is_none()
}

pub(crate) fn is_in_operation(seen: &Observation) -> bool {
    is_in(seen, FleetStage::Operation)
}

pub(crate) fn is_in(seen: &Observation, stage: FleetStage) -> bool {
    !seen.nodes.is_empty() && seen.nodes.values().all(|it| it.stage == stage)
}

/// It is up: `db` on a, `web` on b.
pub(crate) fn is_up(seen: &Observation) -> bool {
    is_in_operation(seen) && runs(seen, "db", "a") && runs(seen, "web", "b")
}

pub(crate) fn master(seen: &Observation) -> Vec<&str> {
    seen.nodes.iter().filter(|(_, it)| it.is_master).map(|(node, _)| node.as_str()).collect()
}

pub(crate) fn ask(world: &mut FleetWorld, node: &str, request: FleetRequest) {
    world.inflict(Fault::Ask { node: name(node), request });
}

pub(crate) fn await_that(
    world: &mut FleetWorld,
    what: &str,
    is_so: impl Fn(&Observation) -> bool,
) -> Duration {
    let took = world.run_while(Duration::from_secs(60), |seen| !is_so(seen));
    took.unwrap_or_else(|| panic!("never: {what}\n{}", world.trace))
}

pub(crate) fn pass(world: &mut FleetWorld, seconds: u64) {
    let end = world.now() + Duration::from_secs(seconds);
    world.run_until(end);
}

pub(crate) fn assert_settled(world: &mut FleetWorld) {
    pass(world, 20);
    let broken = [invariants::always(&world.observe()), invariants::settled(&world.observe())];
    assert_eq!(broken.concat(), Vec::<String>::new(), "{}", world.trace);
}
