//! What people ask for: rollback, pause, another plan, the end of the node.

use super::{applied, booted, file, machine, serve, spoil, told};
use mainstay_core::{
    clock::Mono,
    plan::RolloutPlan,
    rollout::{RolloutInput, RolloutPhase, RolloutRefusal, RolloutRequest},
};
use mainstay_sim::rollout::{Draft, RolloutWorld, SECOND, name};
use std::{sync::Arc, time::Duration};

fn plan() -> RolloutPlan {
    Draft::new("app", &[("conf", "app")], &[("web", "conf")]).0
}

fn rollback(world: &mut RolloutWorld) -> Result<(), RolloutRefusal> {
    let answer =
        world.ask(RolloutRequest::Rollback { profile: name("app"), to: None, force: false });
    world.run();
    answer
}

#[test]
fn a_version_that_was_rolled_back_by_hand_does_not_come_again_by_itself() {
    let mut world = booted(plan());
    assert_eq!(rollback(&mut world), Err(RolloutRefusal::NoEarlier(name("app"))));
    serve(&mut world, "app", 2);
    world.run_for(31);
    told(&mut world);
    rollback(&mut world).expect("taken");
    assert_eq!(told(&mut world), ["file conf = 1", "reload web with 1"]);
    world.run_for(100);
    assert_eq!((world.phase(), applied(&world, "app")), (RolloutPhase::Running, Some(1)));
    serve(&mut world, "app", 3);
    world.run_for(31);
    assert_eq!(applied(&world, "app"), Some(3), "another one is welcome");
}

#[test]
fn a_rotated_secret_makes_a_version_with_a_name_of_its_own_to_go_back_to() {
    let mut world = booted(plan());
    let rotate = |world: &mut RolloutWorld, secrets| {
        world.sources.get_mut(&name("app")).expect("a source").secrets = secrets;
        world.run_for(31);
    };
    let names = |world: &RolloutWorld| {
        let kept = &world.kept.profiles[&name("app")];
        let all = kept.applied.iter().chain(kept.history.iter().map(|it| &it.version));
        all.map(|it| it.to_string().replace("0101010101", "")).collect::<Vec<_>>()
    };
    rotate(&mut world, 7);
    rotate(&mut world, 5);
    assert_eq!(names(&world), ["01+2", "01+1", "01"], "by the order in which they came");
    rollback(&mut world).expect("taken");
    assert_eq!(names(&world), ["01+1", "01+2", "01"]);
    world.kill();
    world.start(true);
    rotate(&mut world, 9);
    assert_eq!(names(&world), ["01+3", "01+1", "01+2", "01"], "no name is given twice");
    rotate(&mut world, 7);
    assert_eq!(names(&world), ["01+1", "01+3", "01+2", "01"], "one that is back has its own");
}

#[test]
fn a_rollback_by_hand_that_fails_is_over_as_the_source_serves_what_is_applied() {
    let mut world = booted(plan());
    serve(&mut world, "app", 2);
    world.run_for(31);
    spoil(&mut world, "web", 1);
    rollback(&mut world).expect("taken");
    assert_eq!((world.phase(), applied(&world, "app")), (RolloutPhase::Pending, Some(2)));
    world.run_for(31);
    assert_eq!((world.phase(), applied(&world, "app")), (RolloutPhase::Running, Some(2)));
}

#[test]
fn a_plan_that_has_nothing_to_do_with_it_leaves_a_failure_pending() {
    let mut world = booted(with_templates(&[("t", "a")]));
    spoil(&mut world, "r", 2);
    serve(&mut world, "a", 2);
    world.run_for(31);
    assert_eq!(world.phase(), RolloutPhase::Pending);
    replan(&mut world, with_templates(&[("t", "a"), ("other", "b")]));
    world.run();
    assert_eq!(outcome(&world), Some(Ok(())), "it is applied");
    assert_eq!(world.phase(), RolloutPhase::Pending, "and the other one has failed as before");
    serve(&mut world, "a", 1);
    world.run_for(31);
    assert_eq!(world.phase(), RolloutPhase::Running);
}

#[test]
fn a_pause_holds_updates_back_and_its_end_asks_at_once() {
    let mut world = booted(plan());
    world.ask(RolloutRequest::Pause).expect("taken");
    serve(&mut world, "app", 2);
    world.run_for(100);
    assert_eq!((world.phase(), applied(&world, "app")), (RolloutPhase::Paused, Some(1)));
    let refused = world.ask(RolloutRequest::Refresh { profile: None, force: false });
    assert_eq!(refused, Err(RolloutRefusal::Paused));
    world.kill();
    world.start(false);
    world.run();
    assert_eq!(applied(&world, "app"), Some(1), "it outlives a boot");
    world.ask(RolloutRequest::Resume).expect("taken");
    world.run();
    assert_eq!(applied(&world, "app"), Some(2));
}

#[test]
fn no_rollout_begins_during_maintenance() {
    let mut world = booted(plan());
    world.step(RolloutInput::Maintenance { on: true });
    serve(&mut world, "app", 2);
    world.run_for(100);
    assert_eq!(applied(&world, "app"), Some(1));
    world.step(RolloutInput::Maintenance { on: false });
    world.run();
    assert_eq!(applied(&world, "app"), Some(2));
}

#[test]
fn a_plan_with_another_template_is_an_update_and_touches_nothing_else() {
    let mut world =
        booted(Draft::new("a b", &[("t", "a"), ("u", "b")], &[("r", "t"), ("s", "u")]).0);
    let next = Draft::new("a b", &[("t", "a b"), ("u", "b")], &[("r", "t"), ("s", "u")]).0;
    world.plan = Arc::new(next);
    world.step(RolloutInput::Planned(world.plan.clone()));
    world.run();
    assert_eq!(told(&mut world), ["file t = 2", "reload r with 2"]);
    world.step(RolloutInput::Planned(world.plan.clone()));
    world.run();
    assert!(told(&mut world).is_empty(), "the same again");
}

#[test]
fn a_plan_that_fails_goes_back_and_nobody_is_pending_for_it() {
    let mut world = booted(Draft::new("a b", &[("t", "a")], &[("r", "t")]).0);
    spoil(&mut world, "r", 2);
    world.plan = Arc::new(Draft::new("a b", &[("t", "a b")], &[("r", "t")]).0);
    world.step(RolloutInput::Planned(world.plan.clone()));
    world.run();
    assert_eq!((file(&world, "t"), world.phase()), (Some(1), RolloutPhase::Pending));
    world.run_for(10_000);
    assert_eq!(world.phase(), RolloutPhase::Pending, "it does not become FAILED");
    serve(&mut world, "a", 9);
    world.run_for(31);
    assert_eq!((file(&world, "t"), world.phase()), (Some(10), RolloutPhase::Running));
}

#[test]
fn a_plan_waits_for_the_update_under_way() {
    let mut world = booted(plan());
    serve(&mut world, "app", 2);
    world.tick();
    for _ in 0..4 {
        world.carry_out();
    }
    assert_eq!(world.phase(), RolloutPhase::Updating);
    world.step(RolloutInput::Planned(Arc::new(Draft::new("app", &[], &[]).0)));
    assert_eq!(world.machine.as_ref().map(|it| it.plan().templates.len()), Some(1));
    world.run();
    assert_eq!(world.machine.as_ref().map(|it| it.plan().templates.len()), Some(0));
}

#[test]
fn what_is_noticed_while_a_source_is_asked_is_asked_for_afterwards() {
    let mut world = booted(plan());
    serve(&mut world, "app", 2);
    world.step(RolloutInput::Noticed { profile: name("app") });
    let asked = world.sources[&name("app")].asked;
    world.step(RolloutInput::Noticed { profile: name("app") });
    world.run();
    assert_eq!(world.sources[&name("app")].asked, asked + 2);
}

#[test]
fn a_service_that_fails_while_the_node_ends_is_told_again_and_no_version_is_blamed() {
    let mut world = booted(plan());
    serve(&mut world, "app", 2);
    spoil(&mut world, "web", 2);
    world.tick();
    while !told(&mut world).iter().any(|it| it.starts_with("file conf")) {
        assert!(world.carry_out());
    }
    end(&mut world, 8);
    world.run();
    assert!(world.kept.update.as_ref().is_some_and(|it| it.failure.is_none()));
    assert_eq!(world.kept.profiles[&name("app")].refused, None);
    world.services.values_mut().for_each(|it| it.cannot.clear());
    world.kill();
    world.start(false);
    world.run();
    assert_eq!(applied(&world, "app"), Some(2));
}

/// The node ends in so many seconds.
fn end(world: &mut RolloutWorld, seconds: u64) {
    let by = Mono(world.now + seconds * SECOND);
    world.step(RolloutInput::Ending { by });
}

/// One service that is about to be told of version 2, and has to bake for so long.
fn telling(bake: u64) -> RolloutWorld {
    let draft = Draft::new("a", &[("t", "a")], &[("x", "t")]);
    let draft = draft.with(|plan| plan.services[0].bake_time = Duration::from_secs(bake));
    let mut world = booted(draft.0);
    world.run_for(bake);
    serve(&mut world, "a", 2);
    world.tick();
    while !told(&mut world).iter().any(|it| it.starts_with("file t")) {
        assert!(world.carry_out());
    }
    world
}

#[test]
fn an_update_whose_last_service_is_finished_while_the_node_ends_is_applied() {
    let mut world = telling(5);
    end(&mut world, 8);
    assert!(machine(&world).is_telling());
    world.run_for(5);
    assert_eq!((applied(&world, "a"), world.kept.update.is_none()), (Some(2), true));
    world.kill();
    world.start(false);
    world.run();
    assert_eq!(told(&mut world), ["reload x with 2", "load a"], "it is told once");
}

#[test]
fn a_node_that_ends_does_not_wait_for_a_service_that_takes_longer() {
    let mut world = telling(9);
    end(&mut world, 8);
    assert!(!machine(&world).is_telling());
    assert!(world.kept.update.is_some(), "the next start goes on");
    let mut world = telling(9);
    world.run_for(3);
    end(&mut world, 8);
    assert!(machine(&world).is_telling(), "some of it has passed");
    world.run_for(6);
    assert_eq!(applied(&world, "a"), Some(2));
}

#[test]
fn a_node_that_ends_finishes_the_service_it_tells_and_the_next_start_goes_on() {
    let mut world = booted(Draft::new("a", &[("t", "a")], &[("x", "t"), ("y", "t")]).0);
    serve(&mut world, "a", 2);
    world.tick();
    while !told(&mut world).iter().any(|it| it.starts_with("file t")) {
        assert!(world.carry_out());
    }
    end(&mut world, 8);
    world.run();
    assert_eq!(told(&mut world), ["reload x with 2"], "y is not begun");
    assert!(world.kept.update.is_some());
    world.kill();
    world.start(false);
    world.run();
    assert_eq!(told(&mut world), ["load a", "reload x with 2", "reload y with 2"]);
    assert_eq!(applied(&world, "a"), Some(2));
}

fn outcome(world: &RolloutWorld) -> Option<Result<(), String>> {
    let outcome = world.machine.as_ref().and_then(|it| it.plan_outcome().cloned());
    outcome.map(|it| it.map_err(|trouble| trouble.to_string()))
}

fn replan(world: &mut RolloutWorld, plan: RolloutPlan) {
    world.plan = Arc::new(plan);
    world.step(RolloutInput::Planned(world.plan.clone()));
}

fn with_templates(templates: &[(&str, &str)]) -> RolloutPlan {
    Draft::new("a b", templates, &[("r", "t")]).0
}

#[test]
fn what_a_plan_has_led_to_is_known_when_its_update_is_over() {
    let mut world = booted(with_templates(&[("t", "a")]));
    replan(&mut world, with_templates(&[("t", "a b")]));
    assert_eq!(outcome(&world), None, "it has just begun");
    world.run();
    assert_eq!(outcome(&world), Some(Ok(())));
    spoil(&mut world, "r", 3);
    replan(&mut world, with_templates(&[("t", "a b b")]));
    world.run();
    let failed = outcome(&world).expect("known").expect_err("it went back");
    assert!(failed.contains("service 'r'"), "{failed}");
    world.unrenderable.insert(4);
    replan(&mut world, with_templates(&[("t", "a b a b")]));
    world.run();
    let failed = outcome(&world).expect("known").expect_err("it never began");
    assert!(failed.contains("template 't'"), "{failed}");
    let same = (*world.plan).clone();
    replan(&mut world, RolloutPlan { refresh_interval: Duration::from_secs(7), ..same });
    assert_eq!(outcome(&world), Some(Ok(())), "nothing follows from that");
}

#[test]
fn a_plan_that_comes_while_the_rollout_is_paused_is_applied_when_it_is_resumed() {
    let mut world = booted(with_templates(&[("t", "a")]));
    world.ask(RolloutRequest::Pause).expect("taken");
    replan(&mut world, with_templates(&[("t", "a b")]));
    world.run();
    assert_eq!((outcome(&world), file(&world, "t")), (Some(Ok(())), Some(1)));
    world.ask(RolloutRequest::Resume).expect("taken");
    world.run();
    assert_eq!(file(&world, "t"), Some(2));
}

#[test]
fn a_plan_whose_update_had_not_begun_when_the_agent_died_is_applied_by_the_next() {
    let mut world = booted(with_templates(&[("t", "a")]));
    replan(&mut world, with_templates(&[("t", "a b")]));
    world.kill();
    world.start(true);
    world.run();
    assert_eq!(file(&world, "t"), Some(2));
    assert!(!world.kept.plan_due);
}
