//! What each node knows of a job that runs on another one.

use mainstay_core::{
    event::EventName,
    fleet::{CopyState, FleetRequest, RemoteCopy},
    plan::{Awaited, OnFailure},
};
use mainstay_sim::fleet::{
    Fault, FleetWorld, Script,
    scenario::{Scenario, name},
};
use std::time::Duration;

const HEALTHY: Awaited = Awaited::Event(EventName::Healthy);

/// A job for b, then for whoever is there.
fn world() -> FleetWorld {
    let scenario = Scenario::of("a b c")
        .app("shop", OnFailure::RestartProcess)
        .job("db", 1, 60)
        .job("web", 2, 60);
    FleetWorld::new(scenario, Script { seed: 7, steps: Vec::new() })
}

fn until(world: &mut FleetWorld, what: &str, is_so: impl Fn(&FleetWorld) -> bool) {
    let end = world.now() + Duration::from_secs(30);
    while !is_so(world) {
        assert!(world.now() < end, "never: {what}\n{}", world.trace);
        let next = world.now() + Duration::from_millis(10);
        world.run_until(next);
    }
}

fn home(copy: Option<&RemoteCopy>) -> Option<&str> {
    copy.and_then(|copy| copy.home.as_ref()).map(|(node, _)| node.as_str())
}

fn is_up_on(world: &FleetWorld, seen_by: &str, job: &str, node: &str) -> bool {
    let copy = world.elsewhere(&name(seen_by), &name(job));
    home(copy.as_ref()) == Some(node) && copy.is_some_and(|it| it.said.is_up())
}

#[test]
fn a_job_is_known_where_it_does_not_run_and_down_while_nobody_has_it() {
    let mut world = world();
    until(&mut world, "web is seen on b", |it| is_up_on(it, "a", "web", "b"));
    assert!(is_up_on(&world, "c", "web", "b"));
    assert_eq!(world.elsewhere(&name("b"), &name("web")), None, "it is here");
    world.inflict(Fault::Crash(name("b")));
    until(&mut world, "it is down", |it| {
        let copy = it.elsewhere(&name("a"), &name("web"));
        copy.is_some_and(|it| !it.said.is_up())
    });
    let copy = world.elsewhere(&name("a"), &name("web")).expect("it is known of");
    assert!(copy.said.has(HEALTHY), "its life goes on: {copy:?}");
    until(&mut world, "it is up again", |it| is_up_on(it, "a", "web", "c"));
    world.inflict(Fault::Boot(name("b")));
    until(&mut world, "whoever is new knows of it", |it| is_up_on(it, "b", "web", "c"));
}

#[test]
fn what_a_lost_node_said_is_told_to_who_comes_later() {
    let mut scenario =
        Scenario::of("a b c").app("shop", OnFailure::Continue).job("db", 1, 60).job("web", 2, 60);
    scenario.rules.sync_timeout = Duration::from_secs(2);
    let mut world = FleetWorld::new(scenario, Script { seed: 7, steps: Vec::new() });
    until(&mut world, "web is seen on b", |it| is_up_on(it, "c", "web", "b"));
    world.inflict(Fault::Crash(name("c")));
    world.inflict(Fault::Crash(name("b")));
    until(&mut world, "it is lost", |it| {
        it.elsewhere(&name("a"), &name("web")).is_some_and(|it| it.home.is_none())
    });
    world.inflict(Fault::Boot(name("c")));
    until(&mut world, "c has heard of it", |it| {
        let copy = it.elsewhere(&name("c"), &name("web"));
        copy.is_some_and(|it| it.home.is_none() && it.said.has(HEALTHY) && !it.said.is_up())
    });
}

#[test]
fn a_stop_and_a_start_on_purpose_take_back_what_was_said() {
    let mut world = world();
    until(&mut world, "web is seen on b", |it| is_up_on(it, "a", "web", "b"));
    let request = FleetRequest::StopJob { job: name("web") };
    world.inflict(Fault::Ask { node: name("c"), request });
    until(&mut world, "it is stopped", |it| {
        let copy = it.elsewhere(&name("a"), &name("web"));
        copy.is_some_and(|it| it.state == CopyState::Stopped)
    });
    let copy = world.elsewhere(&name("a"), &name("web")).expect("its last life");
    assert!(!copy.said.is_up() && !copy.said.has(HEALTHY), "{copy:?}");
}
