//! Failures, the way back, and what stays pending.

use super::{applied, booted, file, serve, silence, small, spoil, told};
use mainstay_core::{
    plan::{CloudWatchPlan, RolloutPlan},
    rollout::{RolloutCommand, RolloutInput, RolloutPhase, RolloutRequest, Trouble},
};
use mainstay_sim::rollout::{Draft, RolloutWorld, name};

fn plan() -> RolloutPlan {
    Draft::new("app", &[("conf", "app")], &[("web", "conf")]).0
}

fn refresh(world: &mut RolloutWorld) {
    world.ask(RolloutRequest::Refresh { profile: None, force: false }).expect("taken");
    world.run();
}

#[test]
fn a_version_that_a_service_cannot_use_comes_back() {
    let three = Draft::new("a", &[("t", "a")], &[("x", "t"), ("y", "t"), ("z", "t")]);
    let mut world = booted(three.0);
    spoil(&mut world, "y", 2);
    serve(&mut world, "a", 2);
    world.run_for(31);
    let expected = [
        "load a",
        "file t = 2",
        "reload x with 2",
        "reload y with 2 fails",
        "file t back to Some(1)",
        "reload x with 1",
        "reload y with 1",
    ];
    assert_eq!(told(&mut world), expected, "z never had the new one");
    assert_eq!((world.phase(), applied(&world, "a")), (RolloutPhase::Pending, Some(1)));
    let failure = world.machine.as_ref().and_then(|it| it.facts().failure).expect("pending");
    assert!(failure.came_back && failure.failure.contains("'y'"), "{failure:?}");
}

#[test]
fn the_metric_says_every_minute_whether_something_has_failed_and_at_once_when_it_changes() {
    let metric = CloudWatchPlan { name: "RolloutFailed".to_owned(), ..CloudWatchPlan::default() };
    let plan = RolloutPlan { cloudwatch: Some(metric), ..plan() };
    let mut world = booted(plan.clone());
    world.run_for(125);
    assert_eq!(std::mem::take(&mut world.published), [false; 3], "at the boot, then each minute");
    spoil(&mut world, "web", 2);
    serve(&mut world, "app", 2);
    world.run_for(31);
    let published = std::mem::take(&mut world.published);
    assert_eq!(published.last(), Some(&true));
    world.run_for(61);
    assert_eq!(std::mem::take(&mut world.published), [true], "as long as it is pending");
    serve(&mut world, "app", 1);
    world.run_for(31);
    assert_eq!(std::mem::take(&mut world.published), [false], "at once");

    let mut world = booted(RolloutPlan { cloudwatch: None, ..plan });
    world.run_for(200);
    assert_eq!(world.published, Vec::<bool>::new());
}

#[test]
fn the_reason_of_a_failure_stays_that_of_the_version_that_has_failed() {
    let mut world = small();
    spoil(&mut world, "web", 1);
    world.start(false);
    world.run();
    let why = |world: &RolloutWorld| {
        let failure = world.machine.as_ref().and_then(|it| it.facts().failure);
        failure.expect("pending").failure
    };
    let first = why(&world);
    assert!(first.contains("'web'"), "{first}");
    world.run_for(100);
    assert_eq!(why(&world), first, "not that it has failed before");
}

#[test]
fn a_long_reason_is_cut_to_what_a_variable_of_the_hook_has_room_for() {
    let hooked = Draft(plan()).with(|it| it.on_failure = Some(vec!["tell".to_owned()]));
    let mut world = booted(hooked.0);
    serve(&mut world, "app", 2);
    world.tick();
    let op = loop {
        match world.open.front() {
            Some(RolloutCommand::Tell { op, .. }) => break *op,
            _ => assert!(world.carry_out(), "it is told"),
        }
    };
    world.open.pop_front();
    let outcome = Err(Trouble("ä".repeat(100_000)));
    world.step(RolloutInput::Told { op, outcome });
    let told = loop {
        match world.open.front() {
            Some(RolloutCommand::RunHook { failure, .. }) => break failure.failure.clone(),
            _ => assert!(world.carry_out(), "somebody is told"),
        }
    };
    let kept = world.kept.pending.as_ref().expect("pending").failure.clone();
    for text in [told, kept] {
        assert!(text.len() <= 4096 && text.ends_with("ä…"), "{} bytes", text.len());
    }
}

#[test]
fn a_version_that_failed_is_not_tried_again_until_somebody_asks() {
    let mut world = booted(plan());
    spoil(&mut world, "web", 2);
    serve(&mut world, "app", 2);
    world.run_for(31);
    told(&mut world);
    world.run_for(300);
    assert!(told(&mut world).iter().all(|it| it == "load app"));
    world.kill();
    world.start(false);
    world.run();
    assert_eq!(told(&mut world), ["load app"], "nor by the next run");
    assert_eq!(world.phase(), RolloutPhase::Pending);
    world.services.get_mut(&name("web")).expect("a service").cannot.clear();
    refresh(&mut world);
    assert_eq!((world.phase(), applied(&world, "app")), (RolloutPhase::Running, Some(2)));
}

#[test]
fn a_source_that_takes_its_version_back_ends_it_without_a_reload() {
    let mut world = booted(plan());
    spoil(&mut world, "web", 2);
    serve(&mut world, "app", 2);
    world.run_for(31);
    told(&mut world);
    serve(&mut world, "app", 1);
    world.run_for(31);
    assert_eq!(told(&mut world), ["load app"]);
    assert_eq!(world.phase(), RolloutPhase::Running);
    // What was served in between: it may be tried again.
    world.services.get_mut(&name("web")).expect("a service").cannot.clear();
    serve(&mut world, "app", 2);
    world.run_for(31);
    assert_eq!(applied(&world, "app"), Some(2));
}

#[test]
fn while_one_is_pending_nobody_else_is_asked() {
    let mut world = booted(Draft::new("a b", &[("t", "a"), ("u", "b")], &[("s", "t")]).0);
    spoil(&mut world, "s", 2);
    serve(&mut world, "a", 2);
    serve(&mut world, "b", 2);
    world.run_for(100);
    let said = told(&mut world);
    assert!(!said.contains(&"load b".to_owned()), "{said:?}");
    serve(&mut world, "a", 3);
    world.run_for(31);
    assert_eq!((file(&world, "t"), file(&world, "u")), (Some(3), Some(2)));
}

#[test]
fn a_new_failure_has_all_of_its_time() {
    let mut world = booted(plan());
    for bad in [2, 3] {
        spoil(&mut world, "web", bad);
    }
    serve(&mut world, "app", 2);
    world.run_for(850);
    assert_eq!(world.phase(), RolloutPhase::Pending);
    serve(&mut world, "app", 3);
    world.run_for(800);
    assert_eq!(world.phase(), RolloutPhase::Pending, "the second has begun anew");
    world.run_for(200);
    assert_eq!(world.phase(), RolloutPhase::Failed);
    serve(&mut world, "app", 4);
    world.run_for(31);
    assert_eq!(world.phase(), RolloutPhase::Running, "another version ends it");
}

#[test]
fn a_way_back_that_fails_goes_on_and_is_made_again_with_the_applied_version() {
    let three = Draft::new("a", &[("t", "a")], &[("x", "t"), ("y", "t"), ("z", "t")]);
    let mut world = booted(three.0);
    spoil(&mut world, "z", 2);
    world.services.get_mut(&name("y")).expect("a service").cannot.insert(1);
    serve(&mut world, "a", 2);
    world.run_for(31);
    let said = told(&mut world);
    assert_eq!(said[6..], ["reload x with 1", "reload y with 1 fails", "reload z with 1"]);
    let facts = world.machine.as_ref().expect("an agent").facts();
    assert!(!facts.profiles[&name("a")].in_place, "a way back has failed");
    world.services.get_mut(&name("y")).expect("a service").cannot.clear();
    serve(&mut world, "a", 1);
    world.run_for(31);
    let said = told(&mut world);
    let expected = ["load a", "reload x with 1", "reload y with 1", "reload z with 1"];
    assert_eq!(said, expected, "all of them, as nobody knows what they have");
    assert_eq!(world.phase(), RolloutPhase::Running);
}

#[test]
fn what_cannot_be_rendered_is_blamed_on_the_last_profile_that_changed() {
    let mut world = booted(Draft::new("a b c", &[("t", "a b"), ("u", "c")], &[]).0);
    world.kill();
    for (profile, content) in [("a", 10), ("b", 20), ("c", 30)] {
        serve(&mut world, profile, content);
    }
    world.unrenderable.insert(30);
    world.start(false);
    // As if c could be rendered and t not: the sum of a and b.
    world.unrenderable = [30].into();
    world.run();
    let pending = world.kept.pending.clone().expect("pending");
    assert!(pending.profile == Some(name("b")) || pending.profile == Some(name("c")));
    assert_eq!((file(&world, "t"), file(&world, "u")), (Some(2), Some(1)), "nothing was written");
}

#[test]
fn a_check_that_fails_changes_nothing() {
    let mut world =
        booted(Draft(plan()).with(|it| it.templates[0].check = Some(vec!["check".into()])).0);
    world.unfit.insert(2);
    serve(&mut world, "app", 2);
    world.run_for(31);
    assert_eq!(told(&mut world), ["load app", "check conf"]);
    assert_eq!((world.phase(), file(&world, "conf")), (RolloutPhase::Pending, Some(1)));
}

#[test]
fn a_full_disk_is_found_before_anything_is_switched_and_tried_again() {
    let mut world = booted(plan());
    world.full_disk = true;
    serve(&mut world, "app", 2);
    world.run_for(31);
    assert_eq!((world.phase(), file(&world, "conf")), (RolloutPhase::Pending, Some(1)));
    world.full_disk = false;
    world.run_for(31);
    assert_eq!((world.phase(), file(&world, "conf")), (RolloutPhase::Running, Some(2)));
}

#[test]
fn what_somebody_else_has_edited_is_not_overwritten_unless_that_is_asked_for() {
    let mut world = booted(plan());
    world.files.insert(name("conf"), 77);
    serve(&mut world, "app", 2);
    world.run_for(31);
    assert_eq!((world.phase(), file(&world, "conf")), (RolloutPhase::Pending, Some(77)));
    refresh(&mut world);
    assert_eq!((world.phase(), file(&world, "conf")), (RolloutPhase::Pending, Some(77)));
    world.ask(RolloutRequest::Refresh { profile: None, force: true }).expect("taken");
    world.run();
    assert_eq!((world.phase(), file(&world, "conf")), (RolloutPhase::Running, Some(2)));
}

#[test]
fn the_first_version_goes_back_to_what_was_there_before() {
    let mut world = small();
    world.files.insert(name("conf"), 50);
    spoil(&mut world, "web", 1);
    world.start(false);
    world.run();
    assert_eq!((world.phase(), file(&world, "conf")), (RolloutPhase::Pending, Some(50)));
    assert!(!world.is_ready);
    serve(&mut world, "app", 2);
    world.run_for(31);
    assert_eq!((world.phase(), file(&world, "conf")), (RolloutPhase::Running, Some(2)));
    assert!(world.is_ready);
}

#[test]
fn a_failure_is_told_once_unless_the_agent_dies_while_it_is() {
    let hooked =
        |plan: RolloutPlan| Draft(plan).with(|it| it.on_failure = Some(vec!["tell".into()]));
    let mut world = booted(hooked(plan()).0);
    spoil(&mut world, "web", 2);
    serve(&mut world, "app", 2);
    world.run_for(31);
    assert_eq!(world.hooks, [1]);
    world.kill();
    world.start(true);
    world.run();
    assert_eq!(world.hooks, [1], "noted");
    spoil(&mut world, "web", 3);
    serve(&mut world, "app", 3);
    world.tick();
    // The hook has run, and nobody has noted it.
    while world.hooks.len() == 1 {
        let noted = world.kept.clone();
        assert!(world.carry_out());
        world.kept = noted;
    }
    world.kill();
    world.start(true);
    world.run();
    assert_eq!(world.hooks, [1, 2, 2], "with the same number");
}

#[test]
fn a_source_that_answers_again_ends_what_was_pending() {
    let mut world = booted(plan());
    silence(&mut world, "app");
    world.run_for(31);
    assert_eq!(world.phase(), RolloutPhase::Pending);
    serve(&mut world, "app", 1);
    world.run_for(31);
    assert_eq!(world.phase(), RolloutPhase::Running);
    assert!(told(&mut world).iter().all(|it| it == "load app"));
}

#[test]
fn a_service_that_has_died_of_a_version_is_brought_up_with_the_old_one() {
    let mut world = booted(plan());
    spoil(&mut world, "web", 2);
    world.services.get_mut(&name("web")).expect("a service").mortal = true;
    serve(&mut world, "app", 2);
    world.run_for(31);
    let back = ["reload web with 2 fails", "file conf back to Some(1)", "bring up web with 1"];
    assert_eq!(told(&mut world)[2..], back);
    assert!(world.services[&name("web")].running);
}

#[test]
fn a_service_that_had_died_before_is_left_alone() {
    let mut world = booted(Draft::new("a", &[("t", "a")], &[("x", "t"), ("y", "t")]).0);
    let x = world.services.get_mut(&name("x")).expect("a service");
    (x.running, x.died) = (false, true);
    spoil(&mut world, "y", 2);
    serve(&mut world, "a", 2);
    world.run_for(31);
    assert_eq!(world.phase(), RolloutPhase::Pending);
    assert_eq!(world.services[&name("x")].told, 1, "at the boot");
}

#[test]
fn a_service_that_dies_together_with_the_agent_fails_the_update_and_is_brought_up() {
    let mut world = booted(plan());
    serve(&mut world, "app", 2);
    world.tick();
    while !matches!(world.open.front(), Some(RolloutCommand::Tell { .. })) {
        assert!(world.carry_out(), "it is told");
    }
    let web = world.services.get_mut(&name("web")).expect("a service");
    (web.running, web.died) = (false, true);
    world.kill();
    world.start(true);
    world.run();
    assert_eq!((world.phase(), file(&world, "conf")), (RolloutPhase::Pending, Some(1)));
    assert!(world.services[&name("web")].running);
}

#[test]
fn an_update_that_has_switched_nothing_has_not_come_back_from_anything() {
    let failure = |world: &RolloutWorld| {
        world.machine.as_ref().and_then(|it| it.facts().failure).expect("pending")
    };
    let mut world = booted(plan());
    world.unrenderable.insert(2);
    serve(&mut world, "app", 2);
    world.run_for(31);
    assert!(failure(&world).came_back && !failure(&world).switched);
    spoil(&mut world, "web", 3);
    serve(&mut world, "app", 3);
    world.run_for(31);
    assert!(failure(&world).came_back && failure(&world).switched);
}

#[test]
fn what_an_agent_before_has_told_is_told_of_the_way_back_as_well() {
    let three = Draft::new("a", &[("t", "a")], &[("x", "t"), ("y", "t"), ("z", "t")]);
    let mut world = booted(three.0);
    serve(&mut world, "a", 2);
    world.tick();
    let tells_last = |command: Option<&RolloutCommand>| match command {
        Some(RolloutCommand::Tell { service, .. }) => *service == name("z"),
        _ => false,
    };
    while !tells_last(world.open.front()) {
        assert!(world.carry_out(), "all are told");
    }
    world.kill();
    told(&mut world);
    spoil(&mut world, "x", 2);
    world.start(true);
    world.run();
    let said = told(&mut world);
    // The last one may have heard of it.
    let back = ["reload x with 1", "reload y with 1", "reload z with 1"];
    assert_eq!(said[said.len() - 3..], back, "{said:?}");
}

#[test]
fn on_failure_has_run_when_the_node_ends_and_another_run_has_all_of_its_time() {
    let failing = Draft(plan()).with(|plan| {
        plan.exit_on_failure = true;
        plan.on_failure = Some(vec!["tell".to_owned()]);
    });
    let mut world = booted(failing.0);
    silence(&mut world, "app");
    while world.phase() != RolloutPhase::Failed {
        world.run();
        world.tick();
    }
    assert!(!world.open.contains(&RolloutCommand::Exit), "not before somebody was told");
    world.run();
    assert!(world.has_exited && world.hooks.len() == 1);
    world.has_exited = false;
    world.kill();
    world.start(false);
    world.run();
    assert_eq!(world.phase(), RolloutPhase::Pending, "in this run it has not failed yet");
    assert!(!world.has_exited);
    world.run_for(1000);
    assert!(world.has_exited);
}
