//! One service: flip-flop, checks and baking.

use super::{applied, booted, serve, told};
use mainstay_core::{
    plan::{HealthComparison, HealthSource, ReloadMethod, RolloutPlan, ServiceCheck, ServicePlan},
    rollout::{InstanceNumber, RequestCount, RolloutInput, RolloutPhase},
};
use mainstay_sim::rollout::{Draft, RolloutWorld, SimService, name};
use std::{collections::BTreeSet, sync::Arc, time::Duration};

fn plan() -> RolloutPlan {
    Draft::new("app", &[("conf", "app")], &[("web", "conf")]).0
}

fn flip_flop(active: &[InstanceNumber]) -> RolloutWorld {
    let plan = Draft(plan()).with(|it| it.services[0].reload = ReloadMethod::FlipFlop);
    let mut world = booted(plan.0);
    service(&mut world).instances.active = active.iter().copied().collect();
    service(&mut world).running = !active.is_empty();
    told(&mut world);
    serve(&mut world, "app", 2);
    world
}

fn service(world: &mut RolloutWorld) -> &mut SimService {
    world.services.get_mut(&name("web")).expect("a service")
}

#[test]
fn the_other_instance_takes_over_and_the_old_one_stops_last() {
    let mut world = flip_flop(&[InstanceNumber::One]);
    world.run_for(31);
    assert_eq!(told(&mut world)[2..], ["start @2 web with 2", "stop @1 web with 2"]);
    assert_eq!(applied(&world, "app"), Some(2));
    serve(&mut world, "app", 3);
    world.run_for(31);
    assert_eq!(told(&mut world)[2..], ["start @1 web with 3", "stop @2 web with 3"]);
}

#[test]
fn two_instances_that_run_already_are_a_failure_and_left_alone() {
    let mut world = flip_flop(&[InstanceNumber::One, InstanceNumber::Two]);
    world.run_for(31);
    assert_eq!(world.phase(), RolloutPhase::Pending);
    assert_eq!(service(&mut world).told, 0);
}

#[test]
fn no_instance_is_started_where_none_runs() {
    let mut world = flip_flop(&[]);
    world.run_for(31);
    assert_eq!((world.phase(), applied(&world, "app")), (RolloutPhase::Running, Some(2)));
    assert_eq!(service(&mut world).told, 0);
}

#[test]
fn a_new_instance_that_does_not_start_is_stopped_and_the_old_one_stays() {
    let mut world = flip_flop(&[InstanceNumber::One]);
    service(&mut world).instances.do_not_start = true;
    world.run_for(31);
    let said = told(&mut world);
    let expected = ["start @2 web with 2 fails", "stop @2 web with 2", "file conf back to Some(1)"];
    assert_eq!(said[2..5], expected);
    assert_eq!(service(&mut world).instances.active, BTreeSet::from([InstanceNumber::One]));
}

#[test]
fn an_old_instance_that_does_not_stop_is_a_failure() {
    let mut world = flip_flop(&[InstanceNumber::One]);
    service(&mut world).instances.do_not_stop = true;
    world.run_for(31);
    assert_eq!((world.phase(), applied(&world, "app")), (RolloutPhase::Pending, Some(1)));
}

#[test]
fn an_agent_that_dies_between_start_and_stop_knows_which_instance_is_ours() {
    let mut world = flip_flop(&[InstanceNumber::One]);
    world.tick();
    while !told(&mut world).iter().any(|it| it.starts_with("start @2")) {
        assert!(world.carry_out());
    }
    world.kill();
    world.start(true);
    world.run();
    assert_eq!((world.phase(), applied(&world, "app")), (RolloutPhase::Running, Some(2)));
    assert_eq!(service(&mut world).instances.active, BTreeSet::from([InstanceNumber::Two]));
}

fn with_children(strict: bool, before: &[u32], after: &[u32]) -> RolloutWorld {
    let check = ServiceCheck::ChangeChildPid { strict };
    let mut world = booted(Draft(plan()).with(|it| it.services[0].checks = vec![check]).0);
    // The first boot fails, as it has no children; that is told below.
    world
        .ask(mainstay_core::rollout::RolloutRequest::Refresh { profile: None, force: false })
        .expect("taken");
    service(&mut world).children = before.iter().copied().collect();
    service(&mut world).forks = after.iter().copied().collect();
    world.run();
    world
}

#[test]
fn children_have_to_change() {
    assert_eq!(with_children(false, &[7, 8], &[7, 9]).phase(), RolloutPhase::Running);
    let mut same = with_children(false, &[7, 8], &[]);
    same.run_for(200);
    assert_eq!(same.phase(), RolloutPhase::Pending, "no difference in reload_timeout");
    let mut one = with_children(true, &[7, 8], &[7, 9]);
    one.run_for(200);
    assert_eq!(one.phase(), RolloutPhase::Pending, "strictly all of them");
    assert_eq!(with_children(true, &[7, 8], &[9]).phase(), RolloutPhase::Running);
    let none = with_children(false, &[], &[9]);
    assert_eq!(none.phase(), RolloutPhase::Pending, "there is nobody who could change");
}

fn compared(new: (u64, u64), old: (u64, u64)) -> RolloutPhase {
    compared_world(new, old).phase()
}

fn compared_world(new: (u64, u64), old: (u64, u64)) -> RolloutWorld {
    let count = |(requests, failures)| RequestCount { requests, failures };
    let source = HealthSource::Exec(vec!["health".to_owned()]);
    let check =
        ServiceCheck::HealthComparison(HealthComparison { source, requests: 20, points: 5 });
    let mut world = flip_flop(&[InstanceNumber::One]);
    let mut plan = (*world.plan).clone();
    plan.services[0].checks = vec![check];
    plan.services[0].bake_time = Duration::from_secs(5);
    world.plan = std::sync::Arc::new(plan);
    world.kill();
    world.start(true);
    service(&mut world).requests = (count(new), count(old));
    world.run_for(60);
    world
}

#[test]
fn a_comparison_that_too_few_requests_have_passed_is_told() {
    let notes = |new: (u64, u64)| {
        let said = told(&mut compared_world(new, (100, 0)));
        said.into_iter().filter(|it| it.starts_with("note of web")).collect::<Vec<_>>()
    };
    let [none, few] = [(0, 0), (19, 19)].map(|new| notes(new).join("\n"));
    assert!(none.contains("it had 0 requests, and 20 are needed"), "{none}");
    assert!(few.contains("it had 19 requests, and 20 are needed"), "{few}");
    assert_eq!(notes((20, 0)), [""; 0], "enough to say");
}

#[test]
fn a_new_instance_that_fails_notably_more_is_not_wanted() {
    assert_eq!(compared((100, 10), (100, 5)), RolloutPhase::Pending);
    assert_eq!(compared((100, 9), (100, 5)), RolloutPhase::Running);
    assert_eq!(compared((19, 19), (100, 0)), RolloutPhase::Running, "too few to say");
    assert_eq!(compared((0, 0), (0, 0)), RolloutPhase::Running, "no traffic");
    assert_eq!(compared((40, 2), (0, 0)), RolloutPhase::Pending);
}

#[test]
fn a_service_that_becomes_unhealthy_while_it_bakes_brings_the_update_back() {
    let plan = Draft(plan()).with(|it| it.services[0].bake_time = Duration::from_secs(10));
    let mut world = booted(plan.0);
    world.run_for(11);
    assert_eq!(applied(&world, "app"), Some(1));
    serve(&mut world, "app", 2);
    world.run_for(22);
    assert_eq!(world.phase(), RolloutPhase::Updating, "it bakes");
    service(&mut world).healthy = false;
    world.run_for(2);
    assert_eq!(applied(&world, "app"), Some(1));
    assert_ne!(world.phase(), RolloutPhase::Updating);
}

#[test]
fn a_service_that_fails_right_before_its_bake_time_is_over_brings_the_update_back() {
    let plan = Draft(plan()).with(|it| it.services[0].bake_time = Duration::from_millis(300));
    let mut world = booted(plan.0);
    world.run_for(11);
    serve(&mut world, "app", 2);
    world.step(RolloutInput::Noticed { profile: name("app") });
    world.run();
    assert_eq!(world.phase(), RolloutPhase::Updating, "it bakes");
    service(&mut world).healthy = false;
    world.run_for(1);
    assert_eq!(applied(&world, "app"), Some(1));
}

#[test]
fn a_unit_that_is_not_there_is_a_failure() {
    let mut world = booted(plan());
    service(&mut world).missing = true;
    serve(&mut world, "app", 2);
    world.run_for(31);
    assert_eq!(world.phase(), RolloutPhase::Pending);
}

#[test]
fn a_new_instance_that_ends_while_it_bakes_has_failed_whichever_it_is() {
    for old in [InstanceNumber::One, InstanceNumber::Two] {
        let plan = Draft(plan()).with(|it| {
            it.services[0].reload = ReloadMethod::FlipFlop;
            it.services[0].bake_time = Duration::from_secs(20);
        });
        let mut world = booted(plan.0);
        service(&mut world).instances.active = BTreeSet::from([old]);
        serve(&mut world, "app", 2);
        world.run_for(35);
        assert_eq!(service(&mut world).instances.active.len(), 2, "it bakes");
        service(&mut world).instances.active.remove(&old.other());
        world.run_for(10);
        assert_eq!(world.phase(), RolloutPhase::Pending);
        assert_eq!(service(&mut world).instances.active, BTreeSet::from([old]));
    }
}

#[test]
fn an_old_instance_whose_successor_was_stopped_again_stays_as_it_is() {
    let mut world = flip_flop(&[InstanceNumber::One]);
    world.plan = Arc::new(RolloutPlan {
        services: vec![ServicePlan {
            checks: vec![ServiceCheck::ChangeChildPid { strict: false }],
            ..world.plan.services[0].clone()
        }],
        ..(*world.plan).clone()
    });
    let service = service(&mut world);
    // A check that the new instance never passes.
    service.children = BTreeSet::from([7]);
    world.kill();
    world.start(true);
    world.run_for(120);
    assert_eq!(world.phase(), RolloutPhase::Pending);
    let said = told(&mut world);
    let starts: Vec<&String> = said.iter().filter(|it| it.starts_with("st")).collect();
    assert_eq!(starts, ["start @2 web with 2", "stop @2 web with 2"], "{said:?}");
}

#[test]
fn an_instance_that_took_over_gives_way_when_a_later_service_fails() {
    let plan = Draft::new("app", &[("conf", "app")], &[("web", "conf"), ("last", "conf")]);
    let plan = plan.with(|it| it.services[0].reload = ReloadMethod::FlipFlop);
    let mut world = booted(plan.0);
    service(&mut world).instances.active = BTreeSet::from([InstanceNumber::One]);
    world.services.get_mut(&name("last")).expect("a service").cannot.insert(2);
    serve(&mut world, "app", 2);
    world.run_for(31);
    let said = told(&mut world);
    let turns: Vec<&String> = said.iter().filter(|it| it.starts_with("st")).collect();
    let expected = ["start @2 web with 2", "stop @1 web with 2", "start @1 web with 1"];
    assert_eq!(turns[..3], expected, "{said:?}");
    assert_eq!(turns[3..], ["stop @2 web with 1"], "{said:?}");
    assert_eq!(service(&mut world).instances.active, BTreeSet::from([InstanceNumber::One]));
}
