//! A rollout whose profiles come from the fleet.

use mainstay_core::{
    fleet::{Number, Term},
    name::Name,
    plan::{RolloutPlan, WavePlan},
    rollout::{
        Content, RolloutInput, RolloutPhase, RolloutRefusal, RolloutRequest, Version, WaveFeed,
        WaveReport, WaveSize,
    },
};
use mainstay_sim::rollout::{Draft, RolloutWorld, digest, name};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

fn plan() -> RolloutPlan {
    let draft = Draft::new("app", &[("conf", "app"), ("other", "app")], &[("web", "conf other")]);
    let pause = Duration::from_secs(30);
    draft.with(|plan| plan.wave = Some(WavePlan { size: WaveSize::Nodes(1), pause })).0
}

fn app() -> Name {
    name("app")
}

fn version(content: u8) -> Version {
    Version { label: None, digest: digest(content), secrets: None }
}

fn number(counter: u64) -> Number {
    Number { term: Term { number: 1, master: name("n1") }, counter }
}

/// The fleet serves this, as the attempt of this number.
fn feed(world: &mut RolloutWorld, content: u8, attempt: Option<u64>) {
    let feed = WaveFeed {
        conductor: Some(name("n1")),
        conducts: false,
        serves: Some(version(content)),
        attempt: attempt.map(number),
        stores: Some(version(content)),
    };
    world.step(RolloutInput::Fed(BTreeMap::from([(app(), feed)])));
    world.run();
}

fn arrives(world: &mut RolloutWorld, content: u8) {
    let (profile, version) = (app(), version(content));
    let content_type = "text/plain".to_owned();
    let content = Content { content_type, body: vec![content], secrets: BTreeMap::new() };
    world.step(RolloutInput::Arrived { profile, version, content: Arc::new(content) });
}

fn deliver(world: &mut RolloutWorld, content: u8) {
    arrives(world, content);
    world.run();
}

fn report(world: &RolloutWorld) -> WaveReport {
    let report = world.machine.as_ref().and_then(|it| it.wave_report());
    report.expect("it goes in waves")
}

fn applied(world: &RolloutWorld) -> Option<u8> {
    Some(world.kept.profiles.get(&app())?.applied.as_ref()?.digest.0[0])
}

/// A node with version 1 of its fleet.
fn fed() -> RolloutWorld {
    let mut world = RolloutWorld::new(plan());
    world.start(false);
    feed(&mut world, 1, None);
    deliver(&mut world, 1);
    assert_eq!((applied(&world), world.phase()), (Some(1), RolloutPhase::Running));
    world
}

#[test]
fn a_node_that_waits_for_its_fleet_asks_nobody_and_has_not_failed() {
    let mut world = RolloutWorld::new(plan());
    world.start(false);
    world.run_for(10_000);
    assert_eq!((world.phase(), world.sources[&app()].asked), (RolloutPhase::Starting, 0));
    assert_eq!(report(&world).wants, BTreeMap::new());
    feed(&mut world, 1, None);
    assert_eq!(report(&world).wants, BTreeMap::from([(app(), version(1))]));
    world.run_for(10_000);
    assert_eq!((world.phase(), world.kept.pending.is_none()), (RolloutPhase::Starting, true));
    deliver(&mut world, 1);
    assert_eq!((world.phase(), world.is_ready), (RolloutPhase::Running, true));
    assert_eq!(world.sources[&app()].asked, 0);
}

#[test]
fn what_was_applied_is_in_place_before_the_fleet_is_met() {
    let mut world = fed();
    world.kill();
    world.is_ready = false;
    world.start(false);
    world.run();
    assert_eq!((world.phase(), world.is_ready), (RolloutPhase::Running, true));
    assert_eq!((applied(&world), world.is_whole()), (Some(1), true));
}

#[test]
fn a_version_is_on_the_disk_before_it_is_served_and_stays_there() {
    let mut world = fed();
    let mut stores = WaveFeed { serves: Some(version(1)), ..WaveFeed::default() };
    stores.stores = Some(version(2));
    world.step(RolloutInput::Fed(BTreeMap::from([(app(), stores)])));
    deliver(&mut world, 2);
    assert_eq!(report(&world).copies[&app()].retrieved, Some(version(2)));
    assert_eq!(applied(&world), Some(1));
    // Over a boot, too.
    world.kill();
    world.start(false);
    world.run();
    feed(&mut world, 2, Some(1));
    assert_eq!((applied(&world), report(&world).wants.len()), (Some(2), 0));
}

#[test]
fn a_node_says_which_attempt_has_failed_and_goes_back_with_the_fleet() {
    let mut world = fed();
    world.services.get_mut(&name("web")).expect("a service").cannot.insert(2);
    deliver_and_feed(&mut world, 2, 7);
    let copy = report(&world).copies[&app()].clone();
    assert_eq!(copy.failed.map(|it| it.begun), Some(number(7)));
    assert_eq!((applied(&world), world.phase()), (Some(1), RolloutPhase::Pending));
    // The fleet goes back to what this node has: nothing is pending any more.
    feed(&mut world, 1, None);
    assert_eq!(world.phase(), RolloutPhase::Running);
    assert_eq!(report(&world).copies[&app()].failed, None);
    // It is tried again, and works.
    world.services.get_mut(&name("web")).expect("a service").cannot.clear();
    feed(&mut world, 2, Some(9));
    assert_eq!((applied(&world), report(&world).copies[&app()].failed.is_none()), (Some(2), true));
}

fn deliver_and_feed(world: &mut RolloutWorld, content: u8, attempt: u64) {
    let stores = WaveFeed {
        serves: Some(version(1)),
        stores: Some(version(content)),
        ..WaveFeed::default()
    };
    world.step(RolloutInput::Fed(BTreeMap::from([(app(), stores)])));
    deliver(world, content);
    feed(world, content, Some(attempt));
}

#[test]
fn requests_go_to_whoever_conducts() {
    let mut world = fed();
    let refresh = RolloutRequest::Refresh { profile: None, force: false };
    let elsewhere = RolloutRefusal::AskedElsewhere(app(), name("n1"));
    assert_eq!(world.ask(refresh.clone()), Err(elsewhere));
    let rollback = RolloutRequest::Rollback { profile: app(), to: None, force: false };
    assert_eq!(world.ask(rollback), Err(RolloutRefusal::InWaves(app())));
    // The conductor asks its source at once, and offers what that serves.
    let conducts = WaveFeed { conducts: true, ..WaveFeed::default() };
    world.step(RolloutInput::Fed(BTreeMap::from([(app(), conducts)])));
    world.run();
    assert_eq!(report(&world).offers[&app()].version, version(1));
    assert_eq!(world.sources[&app()].asked, 1);
    world.sources.get_mut(&app()).expect("a source").serves = Some(4);
    assert_eq!(world.ask(refresh), Ok(()));
    world.run();
    let offer = report(&world).offers[&app()].clone();
    assert_eq!((offer.version, offer.asked.is_some()), (version(4), true));
    assert_eq!(applied(&world), Some(1), "it is for the fleet to decide");
}

#[test]
fn an_agent_that_dies_at_any_step_of_a_served_version_ends_with_the_whole_of_it() {
    for steps in 0..40 {
        let mut world = fed();
        let stores = WaveFeed { stores: Some(version(2)), ..WaveFeed::default() };
        world.step(RolloutInput::Fed(BTreeMap::from([(app(), stores)])));
        arrives(&mut world, 2);
        let serves = WaveFeed {
            serves: Some(version(2)),
            attempt: Some(number(3)),
            stores: Some(version(2)),
            ..WaveFeed::default()
        };
        world.step(RolloutInput::Fed(BTreeMap::from([(app(), serves)])));
        for _ in 0..steps {
            world.carry_out();
        }
        world.kill();
        world.start(true);
        world.run();
        feed(&mut world, 2, Some(3));
        if report(&world).wants.contains_key(&app()) {
            deliver(&mut world, 2);
        }
        world.run_for(120);
        assert_eq!((applied(&world), world.is_whole()), (Some(2), true), "after {steps} steps");
        assert_eq!(report(&world).copies[&app()].failed, None, "after {steps} steps");
    }
}
