//! What a service manager hears: until when the node is starting, and what it waits for at its end.

use super::{booted, machine, serve, silence, small, world};
use mainstay_core::{
    clock::Mono,
    rollout::{ReadyHold, RolloutCommand, RolloutPhase},
};
use mainstay_sim::rollout::{Draft, RolloutWorld, SECOND};
use std::time::Duration;

/// What it comes to of a node that was started at this moment.
fn hold(world: &RolloutWorld, takes_over: bool) -> ReadyHold {
    ReadyHold::begin(machine(world), Mono(world.now), takes_over)
}

#[test]
fn a_start_may_take_until_a_failure_has_had_its_time_and_an_update_its_way_back() {
    let plan = Draft::new("a", &[("t", "a")], &[("x", "t"), ("y", "t")]).with(|plan| {
        plan.services[0].bake_time = Duration::from_secs(10);
    });
    let mut world = world(plan.0);
    silence(&mut world, "a");
    world.start(false);
    let begun = hold(&world, false);
    let update = 2 * (60 + 10 + 60) * SECOND;
    assert_eq!(begun.bound(machine(&world)), Some(Mono(SECOND + 900 * SECOND + update)));

    world.run_for(5);
    assert_eq!(world.phase(), RolloutPhase::Pending);
    let bound = begun.unless_failed(machine(&world)).bound(machine(&world));
    assert_eq!(bound, Some(Mono(SECOND + 900 * SECOND + update)), "it has failed at once");
    world.run_for(1000);
    assert_eq!(world.phase(), RolloutPhase::Failed);
    assert_eq!(begun.unless_failed(machine(&world)), ReadyHold::Over, "nothing follows any more");
}

#[test]
fn a_node_that_ends_because_it_has_failed_was_never_ready() {
    let plan = Draft::new("a", &[("t", "a")], &[]).with(|plan| plan.exit_on_failure = true);
    let mut world = world(plan.0);
    silence(&mut world, "a");
    world.start(false);
    let begun = hold(&world, false);
    world.run_for(1000);
    assert_eq!(world.phase(), RolloutPhase::Failed);
    assert_eq!(begun.unless_failed(machine(&world)), begun);
}

#[test]
fn an_agent_that_takes_over_holds_nothing_unless_the_start_was_still_under_way() {
    let mut world = booted(Draft::new("app", &[("conf", "app")], &[("web", "conf")]).0);
    assert_eq!(hold(&world, true), ReadyHold::Over);
    assert!(matches!(hold(&world, false), ReadyHold::Until(_)), "another run");
    world.kill();
    let mut world = small();
    silence(&mut world, "app");
    world.start(false);
    world.run();
    world.kill();
    world.start(true);
    assert!(matches!(hold(&world, true), ReadyHold::Until(_)), "its files were never there");
}

#[test]
fn only_a_service_that_is_told_is_waited_for_at_the_end() {
    let mut world = booted(Draft::new("app", &[("conf", "app")], &[("web", "conf")]).0);
    serve(&mut world, "app", 2);
    world.now = world.wakes_at().expect("its interval");
    world.tick();
    let mut telling = Vec::new();
    while let Some(next) = world.open.front() {
        let serves = matches!(next, RolloutCommand::Inspect { .. } | RolloutCommand::Tell { .. });
        telling.push((serves, machine(&world).is_telling()));
        world.carry_out();
    }
    assert!(telling.iter().all(|(serves, telling)| serves == telling), "{telling:?}");
    assert_eq!(telling.iter().filter(|it| it.1).count(), 2, "{telling:?}");
}
