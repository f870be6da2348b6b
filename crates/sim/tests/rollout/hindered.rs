//! What no version is guilty of: contents that are gone, a disk that takes nothing, a plan that could
//! not be carried out. It is got or tried again.

use super::{applied, booted, file, machine, serve, silence, small, told};
use mainstay_core::{
    plan::RolloutPlan,
    rollout::{RolloutInput, RolloutPhase, RolloutRequest},
};
use mainstay_sim::rollout::{Draft, RolloutWorld, SECOND, name};
use std::sync::Arc;

fn two() -> RolloutPlan {
    Draft::new("a b", &[("t", "a"), ("u", "b")], &[("s", "t")]).0
}

fn lose(world: &mut RolloutWorld, profile: &str, content: u8) {
    world.lost.insert((name(profile), content));
}

fn begin_again(world: &mut RolloutWorld) {
    world.kill();
    world.start(false);
    world.run();
}

fn replan(world: &mut RolloutWorld, plan: RolloutPlan) {
    world.plan = Arc::new(plan);
    world.step(RolloutInput::Planned(world.plan.clone()));
    world.run();
}

/// The same, but that template `u` is made of both profiles.
fn wider() -> RolloutPlan {
    Draft::new("a b", &[("t", "a"), ("u", "a b")], &[("s", "t")]).0
}

#[test]
fn a_content_that_is_gone_is_loaded_again_before_anything_is_made_of_it() {
    let mut world = booted(two());
    lose(&mut world, "b", 1);
    begin_again(&mut world);
    assert_eq!(told(&mut world), ["load a", "load b", "load b"], "once more, and nobody is told");
    assert_eq!((world.phase(), world.lost.len()), (RolloutPhase::Running, 0));
    world.run_for(100);
    assert_eq!((world.phase(), applied(&world, "b")), (RolloutPhase::Running, Some(1)));
}

#[test]
fn a_content_that_another_update_needs_is_loaded_first() {
    let mut world = booted(wider());
    lose(&mut world, "b", 1);
    serve(&mut world, "a", 5);
    world.run_for(31);
    assert_eq!((file(&world, "t"), file(&world, "u")), (Some(5), Some(6)));
    assert_eq!((world.phase(), applied(&world, "a")), (RolloutPhase::Running, Some(5)));
}

#[test]
fn a_content_that_cannot_be_had_again_is_pending_until_its_time_is_over() {
    let mut world = booted(two());
    lose(&mut world, "b", 1);
    silence(&mut world, "b");
    begin_again(&mut world);
    assert_eq!(world.phase(), RolloutPhase::Pending);
    assert_eq!(world.kept.pending.as_ref().and_then(|it| it.profile.clone()), Some(name("b")));
    world.run_for(1000);
    assert_eq!(world.phase(), RolloutPhase::Failed);
    serve(&mut world, "b", 1);
    world.run_for(31);
    assert_eq!((world.phase(), world.lost.len()), (RolloutPhase::Running, 0), "it is there again");
}

#[test]
fn a_disk_that_loses_what_it_has_taken_is_pending_and_not_asked_for_without_end() {
    let mut world = booted(two());
    lose(&mut world, "b", 1);
    world.loses_all = true;
    begin_again(&mut world);
    assert_eq!(world.phase(), RolloutPhase::Pending);
    let asked = world.sources[&name("b")].asked;
    assert!(asked <= 3, "{asked} times");
    world.loses_all = false;
    world.run_for(61);
    assert_eq!(world.phase(), RolloutPhase::Running);
}

#[test]
fn an_earlier_version_whose_content_is_gone_does_not_come_back() {
    let mut world = booted(two());
    serve(&mut world, "a", 2);
    world.run_for(31);
    lose(&mut world, "a", 1);
    let back = RolloutRequest::Rollback { profile: name("a"), to: None, force: false };
    world.ask(back).expect("taken");
    world.run();
    assert_eq!((world.phase(), file(&world, "t")), (RolloutPhase::Pending, Some(2)));
    world.run_for(31);
    assert_eq!((world.phase(), applied(&world, "a")), (RolloutPhase::Running, Some(2)));
}

#[test]
fn a_plan_that_a_full_disk_has_kept_from_its_files_is_carried_out_in_the_end() {
    let mut world = booted(two());
    world.full_disk = true;
    replan(&mut world, wider());
    let outcome = machine(&world).plan_outcome().cloned();
    assert!(outcome.is_some_and(|it| it.is_err()), "whoever reloads hears of it");
    assert_eq!((world.phase(), file(&world, "u")), (RolloutPhase::Pending, Some(1)));
    world.run_for(40);
    world.full_disk = false;
    world.run_for(31);
    assert_eq!((world.phase(), file(&world, "u")), (RolloutPhase::Running, Some(2)));
}

#[test]
fn a_plan_that_nothing_comes_of_is_failed_in_its_time_and_mended_by_a_refresh() {
    let mut world = booted(two());
    world.full_disk = true;
    replan(&mut world, wider());
    world.run_for(1000);
    assert_eq!(world.phase(), RolloutPhase::Failed);
    world.full_disk = false;
    world.ask(RolloutRequest::Refresh { profile: None, force: false }).expect("taken");
    world.run();
    assert_eq!((world.phase(), file(&world, "u")), (RolloutPhase::Running, Some(2)));
}

#[test]
fn an_agent_that_takes_over_carries_out_the_plan_that_had_to_wait() {
    let mut world = booted(two());
    world.full_disk = true;
    replan(&mut world, wider());
    world.full_disk = false;
    world.kill();
    world.start(true);
    world.run();
    assert_eq!((world.phase(), file(&world, "u")), (RolloutPhase::Running, Some(2)));
}

#[test]
fn a_plan_waits_for_a_new_profile_with_all_that_it_changes() {
    let mut world = booted(two());
    world.sources.insert(name("c"), mainstay_sim::rollout::SimSource::default());
    replan(&mut world, Draft::new("a b c", &[("t", "a c"), ("u", "a b")], &[("s", "t")]).0);
    assert_eq!((world.phase(), file(&world, "u")), (RolloutPhase::Pending, Some(1)));
    serve(&mut world, "c", 7);
    world.run_for(31);
    assert_eq!((file(&world, "t"), file(&world, "u")), (Some(8), Some(2)));
    assert_eq!(world.phase(), RolloutPhase::Running);
}

#[test]
fn a_boot_on_a_full_disk_goes_on_when_there_is_room_and_does_not_ask_without_end() {
    let mut world = booted(two());
    world.kill();
    world.plan = Arc::new(wider());
    world.full_disk = true;
    let before = world.sources[&name("a")].asked;
    world.start(false);
    world.run_for(20);
    assert_eq!((world.phase(), file(&world, "u")), (RolloutPhase::Pending, Some(1)));
    assert_eq!(world.sources[&name("a")].asked, before + 1, "once in an interval");
    world.full_disk = false;
    world.run_for(31);
    assert_eq!((world.phase(), file(&world, "u")), (RolloutPhase::Running, Some(2)));
}

#[test]
fn at_a_first_boot_a_mended_template_is_tried_with_the_version_that_has_failed() {
    let mut world = small();
    world.unrenderable.insert(1);
    world.start(false);
    world.run();
    assert_eq!((world.phase(), applied(&world, "app")), (RolloutPhase::Pending, None));
    world.unrenderable.clear();
    world.now += SECOND;
    replan(&mut world, Draft::new("app", &[("conf", "app")], &[("web", "conf")]).0);
    assert_eq!(world.phase(), RolloutPhase::Pending, "nothing is another one");
    let mut mended = (*world.plan).clone();
    mended.templates[0].source = Some(mainstay_sim::rollout::digest(9));
    replan(&mut world, mended);
    assert_eq!((world.phase(), file(&world, "conf")), (RolloutPhase::Running, Some(1)));
}

/// The same, with another text of its template.
fn mended(world: &RolloutWorld) -> Arc<RolloutPlan> {
    let mut mended = (*world.plan).clone();
    mended.templates[0].source = Some(mainstay_sim::rollout::digest(9));
    Arc::new(mended)
}

#[test]
fn a_template_that_was_mended_between_two_runs_is_tried_with_the_version_that_has_failed() {
    for is_booted in [false, true] {
        let mut world = small();
        if is_booted {
            world.start(false);
            world.run();
            serve(&mut world, "app", 2);
        }
        world.unrenderable.extend([1, 2].into_iter().filter(|it| !is_booted || *it == 2));
        match is_booted {
            true => world.run_for(31),
            false => {
                world.start(false);
                world.run();
            }
        }
        assert_eq!(world.phase(), RolloutPhase::Pending);
        begin_again(&mut world);
        assert_eq!(world.phase(), RolloutPhase::Pending, "nothing is another one");
        world.unrenderable.clear();
        world.kill();
        world.plan = mended(&world);
        world.start(false);
        world.run();
        let serves = if is_booted { 2 } else { 1 };
        assert_eq!((world.phase(), applied(&world, "app")), (RolloutPhase::Running, Some(serves)));
    }
}

#[test]
fn a_version_that_was_rolled_back_by_hand_stays_away_whatever_is_mended() {
    let mut world = booted(two());
    serve(&mut world, "a", 2);
    world.run_for(31);
    let back = RolloutRequest::Rollback { profile: name("a"), to: None, force: false };
    world.ask(back).expect("taken");
    world.run();
    assert_eq!(applied(&world, "a"), Some(1));
    world.kill();
    world.plan = mended(&world);
    world.start(false);
    world.run_for(31);
    assert_eq!(applied(&world, "a"), Some(1));
}

#[test]
fn what_has_failed_stays_away_when_an_earlier_version_is_wanted_back_by_hand() {
    for is_well in [true, false] {
        let mut world = booted(two());
        serve(&mut world, "a", 2);
        world.run_for(31);
        world.unrenderable.insert(3);
        serve(&mut world, "a", 3);
        world.run_for(31);
        assert_eq!((world.phase(), applied(&world, "a")), (RolloutPhase::Pending, Some(2)));
        world.unrenderable.clear();
        if !is_well {
            world.unrenderable.insert(1);
        }
        let back = RolloutRequest::Rollback { profile: name("a"), to: None, force: false };
        world.ask(back).expect("taken");
        world.run_for(200);
        let stays = if is_well { 1 } else { 2 };
        assert_eq!(applied(&world, "a"), Some(stays), "3 was not tried again");
        if is_well {
            begin_again(&mut world);
            world.run_for(1000);
            assert_eq!((world.phase(), applied(&world, "a")), (RolloutPhase::Running, Some(1)));
        }
        serve(&mut world, "a", 4);
        world.run_for(31);
        assert_eq!((world.phase(), applied(&world, "a")), (RolloutPhase::Running, Some(4)));
    }
}

#[test]
fn a_version_that_was_rolled_back_by_hand_has_not_failed_whoever_starts() {
    let mut world = booted(two());
    serve(&mut world, "a", 2);
    world.run_for(31);
    let back = RolloutRequest::Rollback { profile: name("a"), to: None, force: false };
    world.ask(back).expect("taken");
    world.run();
    for takes_over in [true, false, false] {
        world.kill();
        world.start(takes_over);
        world.run_for(1000);
        assert_eq!((world.phase(), applied(&world, "a")), (RolloutPhase::Running, Some(1)));
    }
    world.ask(RolloutRequest::Refresh { profile: None, force: false }).expect("taken");
    world.run();
    assert_eq!(applied(&world, "a"), Some(2), "somebody asks");
}
