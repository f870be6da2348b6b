//! Boot, refresh and the order of things.

use super::{applied, booted, file, serve, silence, small, told, world};
use mainstay_core::rollout::RolloutPhase;
use mainstay_sim::rollout::{Draft, name};
use std::time::Duration;

#[test]
fn a_boot_loads_every_profile_in_order_before_any_file_is_written() {
    let plan = Draft::new("a b", &[("t", "a"), ("u", "a b")], &[("s", "u"), ("r", "t")]).0;
    let mut world = world(plan);
    world.start(false);
    world.run();
    let said = told(&mut world);
    let expected =
        ["load a", "load b", "file t = 1", "file u = 2", "reload s with 2", "reload r with 1"];
    assert_eq!(said, expected);
    assert_eq!((applied(&world, "a"), applied(&world, "b")), (Some(1), Some(1)));
    assert!(world.is_ready && world.phase() == RolloutPhase::Running);
}

#[test]
fn a_first_boot_without_its_source_is_pending_and_then_failed() {
    let mut world = small();
    silence(&mut world, "app");
    world.start(false);
    world.run();
    assert_eq!(world.phase(), RolloutPhase::Pending);
    assert!(!world.is_ready && world.files.is_empty());
    world.run_for(899);
    assert_eq!(world.phase(), RolloutPhase::Pending);
    world.run_for(2);
    assert_eq!(world.phase(), RolloutPhase::Failed);
    assert!(!world.has_exited, "FAILED is a state");
    serve(&mut world, "app", 2);
    world.run_for(31);
    assert_eq!((world.phase(), applied(&world, "app")), (RolloutPhase::Running, Some(2)));
}

#[test]
fn a_failed_rollout_ends_the_node_if_that_is_wanted() {
    let mut world =
        world(Draft::new("a", &[("t", "a")], &[]).with(|it| it.exit_on_failure = true).0);
    silence(&mut world, "a");
    world.start(false);
    world.run_for(901);
    assert!(world.has_exited);
}

#[test]
fn a_boot_goes_on_where_it_had_to_wait_for_a_profile() {
    let mut world = world(Draft::new("a b c", &[("t", "a b c")], &[]).0);
    silence(&mut world, "b");
    world.start(false);
    world.run();
    assert_eq!(told(&mut world), ["load a", "load b"], "c comes after b");
    world.run_for(31);
    assert_eq!(told(&mut world), ["load b"], "nobody but b is asked");
    serve(&mut world, "b", 5);
    world.run_for(31);
    assert_eq!(told(&mut world)[..3], ["load b", "load c", "file t = 7"]);
    assert!(world.is_ready);
}

#[test]
fn a_boot_without_its_source_keeps_what_was_applied_and_is_pending() {
    let mut world = booted(Draft::new("app", &[("conf", "app")], &[("web", "conf")]).0);
    world.kill();
    silence(&mut world, "app");
    world.is_ready = false;
    world.start(false);
    world.run();
    assert_eq!(told(&mut world), ["load app"], "nothing is touched");
    assert_eq!(world.phase(), RolloutPhase::Pending);
    assert!(world.is_ready, "the last applied version is in place");
    let facts = world.machine.as_ref().expect("an agent").facts();
    assert!(facts.profiles[&name("app")].in_place);
}

#[test]
fn files_that_are_gone_are_made_again_without_a_source() {
    let mut world = booted(Draft::new("app", &[("conf", "app")], &[("web", "conf")]).0);
    world.kill();
    silence(&mut world, "app");
    world.files.clear();
    world.start(false);
    world.run();
    assert_eq!(told(&mut world), ["load app", "file conf = 1", "reload web with 1"]);
    assert_eq!(world.phase(), RolloutPhase::Pending);
}

#[test]
fn a_boot_tells_no_service_whose_files_are_right() {
    let mut world = booted(Draft::new("app", &[("conf", "app")], &[("web", "conf")]).0);
    world.kill();
    world.start(false);
    world.run();
    assert_eq!(told(&mut world), ["load app"]);
}

#[test]
fn an_update_that_a_boot_has_interrupted_is_made_even_if_its_files_are_right() {
    let mut world = booted(Draft::new("app", &[("conf", "app")], &[("web", "conf")]).0);
    serve(&mut world, "app", 2);
    world.tick();
    // Loaded and stored, and no more.
    world.carry_out();
    world.carry_out();
    world.kill();
    world.files.insert(name("conf"), 2);
    told(&mut world);
    world.start(false);
    world.run();
    assert_eq!(told(&mut world), ["load app", "reload web with 2"]);
    assert_eq!(applied(&world, "app"), Some(2));
}

#[test]
fn a_change_reaches_only_those_whom_it_concerns() {
    let plan = Draft::new(
        "a b",
        &[("t", "a"), ("u", "b"), ("v", "a"), ("w", "a")],
        &[("r", "u"), ("s", "t v"), ("q", "w")],
    );
    let mut world = booted(plan.0);
    serve(&mut world, "a", 4);
    world.run_for(31);
    let said = told(&mut world);
    let expected = [
        "load a",
        "file t = 4",
        "file v = 4",
        "file w = 4",
        "reload s with 4,4",
        "reload q with 4",
        "load b",
    ];
    assert_eq!(said, expected, "one reload for two templates; b is asked after a is applied");
}

#[test]
fn a_template_of_no_service_is_written_and_nobody_is_told() {
    let mut world = booted(Draft::new("a", &[("t", "a")], &[]).0);
    serve(&mut world, "a", 2);
    world.run_for(31);
    assert_eq!(told(&mut world), ["load a", "file t = 2"]);
}

#[test]
fn the_same_content_under_another_label_is_recorded_and_nobody_is_told() {
    let mut world = booted(Draft::new("app", &[("conf", "app")], &[("web", "conf")]).0);
    world.kill();
    world.sources.get_mut(&name("app")).expect("a source").label = Some("v7".to_owned());
    world.start(false);
    world.run();
    assert_eq!(told(&mut world), ["load app"]);
    let applied = world.kept.profiles[&name("app")].applied.clone();
    assert_eq!(applied.and_then(|it| it.label).as_deref(), Some("v7"));
}

#[test]
fn a_service_that_does_not_run_has_succeeded_once_its_files_are_written() {
    let mut world = small();
    world.services.get_mut(&name("web")).expect("a service").running = false;
    world.start(false);
    world.run();
    assert_eq!(told(&mut world), ["load app", "file conf = 1"]);
    assert_eq!(applied(&world, "app"), Some(1));
}

#[test]
fn a_source_is_not_asked_before_it_wants_to_be() {
    let mut world = booted(Draft::new("a", &[("t", "a")], &[]).0);
    let asked = |world: &mainstay_sim::rollout::RolloutWorld| world.sources[&name("a")].asked;
    world.sources.get_mut(&name("a")).expect("a source").not_before = Some(Duration::from_secs(60));
    world.run_for(31);
    assert_eq!(asked(&world), 2);
    world.run_for(58);
    assert_eq!(asked(&world), 2, "60 s, not the 30 of the file");
    world.run_for(3);
    assert_eq!(asked(&world), 3);
}

#[test]
fn what_a_source_has_noticed_is_asked_at_once() {
    let mut world = booted(Draft::new("a", &[("t", "a")], &[]).0);
    serve(&mut world, "a", 3);
    world.step(mainstay_core::rollout::RolloutInput::Noticed { profile: name("a") });
    world.run();
    assert_eq!(file(&world, "t"), Some(3));
}

#[test]
fn an_agent_that_takes_over_a_quiet_rollout_asks_and_touches_nothing() {
    let mut world = booted(Draft::new("a", &[("t", "a")], &[]).0);
    world.kill();
    world.start(true);
    world.run();
    assert_eq!(told(&mut world), ["load a"]);
    assert_eq!(world.phase(), RolloutPhase::Running);
}

#[test]
fn an_answer_that_comes_too_late_means_nothing() {
    use mainstay_core::rollout::{Op, RolloutInput};
    let mut world = booted(Draft::new("app", &[("conf", "app")], &[("web", "conf")]).0);
    let before = world.clone();
    for op in [Op(0), Op(1), Op(2), Op(99)] {
        world.step(RolloutInput::Stored { op, outcome: Ok(()) });
        world.step(RolloutInput::Switched { op, outcome: Ok(()) });
        world.step(RolloutInput::Told { op, outcome: Ok(()) });
        world.step(RolloutInput::Checked { op, outcome: Ok(()) });
    }
    assert_eq!(world.kept, before.kept);
    assert!(world.open.is_empty());
}
