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
use mainstay_sim::rollout::{Draft, RolloutWorld, SimSource, digest, name};
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
    Version { label: None, digest: digest(content), secrets: None, rotation: 0 }
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
        ..WaveFeed::default()
    };
    world.step(RolloutInput::Fed(BTreeMap::from([(app(), feed)])));
    world.run();
}

/// This node asks the source, and the fleet serves this.
fn conducts(content: Option<u8>) -> WaveFeed {
    let serves = content.map(version);
    let conductor = Some(name("n1"));
    WaveFeed { conductor, conducts: true, stores: serves.clone(), serves, ..WaveFeed::default() }
}

fn conduct(world: &mut RolloutWorld, feed: WaveFeed) {
    world.step(RolloutInput::Fed(BTreeMap::from([(app(), feed)])));
    world.run();
}

fn source(world: &mut RolloutWorld) -> &mut SimSource {
    world.sources.get_mut(&app()).expect("a source")
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

/// A conductor that has version 1, and version 2 after it.
fn conductor_with_two() -> RolloutWorld {
    let mut world = fed();
    deliver_and_feed(&mut world, 2, 7);
    source(&mut world).serves = Some(2);
    conduct(&mut world, conducts(Some(2)));
    assert_eq!((applied(&world), world.phase()), (Some(2), RolloutPhase::Running));
    world
}

#[test]
fn whoever_conducts_takes_an_earlier_version_for_the_fleet() {
    let back = |force| RolloutRequest::Rollback { profile: app(), to: None, force };
    let mut world = fed();
    deliver_and_feed(&mut world, 2, 7);
    let elsewhere = RolloutRefusal::AskedElsewhere(app(), name("n1"));
    feed(&mut world, 2, Some(7));
    assert_eq!(world.ask(back(false)), Err(elsewhere));
    let mut world = conductor_with_two();
    assert_eq!(world.ask(back(true)), Err(RolloutRefusal::ForcedInWaves(app())));
    conduct(&mut world, WaveFeed { under_way: true, ..conducts(Some(2)) });
    assert_eq!(world.ask(back(false)), Err(RolloutRefusal::InWaves(app())), "one after the other");
    conduct(&mut world, conducts(Some(2)));
    assert_eq!(world.ask(back(false)), Ok(()));
    world.run();
    let offer = report(&world).offers[&app()].clone();
    assert_eq!((offer.version, offer.by_hand, offer.asked.is_some()), (version(1), true, true));
    assert_eq!(applied(&world), Some(2), "it is for the fleet to decide");
    // Its source is asked as ever: what that serves anew is offered, which nobody has asked for.
    world.run_for(120);
    assert_eq!(report(&world).offers[&app()].version, version(1));
    source(&mut world).serves = Some(3);
    world.run_for(120);
    let offer = report(&world).offers[&app()].clone();
    assert_eq!((offer.version, offer.by_hand, offer.asked), (version(3), false, None));
}

#[test]
fn a_conductor_whose_source_fails_is_pending_and_has_failed_in_its_time() {
    let mut world = conductor_with_two();
    source(&mut world).serves = None;
    world.run_for(60);
    assert_eq!(world.phase(), RolloutPhase::Pending);
    let pending = world.kept.pending.clone().expect("it is pending");
    assert!(pending.conducted && pending.failure.contains("cannot be loaded"), "{pending:?}");
    assert_eq!(report(&world).copies[&app()].pending, None, "nothing is wrong with its files");
    // What the fleet serves goes on.
    let next = WaveFeed { attempt: Some(number(9)), ..conducts(Some(1)) };
    conduct(&mut world, next);
    assert_eq!((applied(&world), world.phase()), (Some(1), RolloutPhase::Pending));
    let timeout = world.plan.failure_timeout.as_secs();
    world.run_for(timeout);
    assert_eq!(world.phase(), RolloutPhase::Failed);
    let (asked, hooks) = (world.sources[&app()].asked, world.kept.failures);
    world.run_for(timeout);
    assert!(world.sources[&app()].asked > asked, "it goes on asking");
    assert_eq!(world.kept.failures, hooks, "and says so once");
    source(&mut world).serves = Some(1);
    world.run_for(120);
    assert_eq!((world.phase(), world.kept.pending.is_none()), (RolloutPhase::Running, true));
}

#[test]
fn a_source_that_fails_is_no_longer_the_matter_of_who_does_not_conduct() {
    let mut world = conductor_with_two();
    source(&mut world).serves = None;
    world.run_for(60);
    assert_eq!(world.phase(), RolloutPhase::Pending);
    // A fleet without a master does not change what is known.
    let before = world.kept.pending.clone();
    world.step(RolloutInput::Fed(BTreeMap::new()));
    world.run();
    conduct(&mut world, conducts(Some(2)));
    assert_eq!(world.kept.pending, before);
    feed(&mut world, 2, None);
    assert_eq!((world.phase(), world.kept.pending.is_none()), (RolloutPhase::Running, true));
}

#[test]
fn an_update_that_fails_is_pending_in_place_of_a_source_that_does() {
    let mut world = conductor_with_two();
    source(&mut world).serves = None;
    world.run_for(60);
    world.services.get_mut(&name("web")).expect("a service").cannot.insert(3);
    deliver(&mut world, 3);
    conduct(&mut world, WaveFeed { attempt: Some(number(9)), ..conducts(Some(3)) });
    deliver(&mut world, 3);
    let pending = world.kept.pending.clone().expect("it is pending");
    assert_eq!((pending.conducted, pending.version), (false, Some(version(3))));
    assert_eq!(report(&world).copies[&app()].failed.as_ref().map(|it| &it.begun), Some(&number(9)));
    // The fleet goes back: its source is the matter again.
    conduct(&mut world, conducts(Some(2)));
    world.run_for(60);
    assert!(world.kept.pending.as_ref().is_some_and(|it| it.conducted), "{:?}", world.kept.pending);
}

#[test]
fn a_refresh_of_a_conductor_is_under_way_until_its_source_has_answered() {
    let mut world = conductor_with_two();
    let asks = |world: &RolloutWorld, known: &WaveReport| {
        world.machine.as_ref().is_some_and(|it| it.asks_for_fleet(&app(), Some(known)))
    };
    let refresh = RolloutRequest::Refresh { profile: Some(app()), force: false };
    for serves in [Some(3), None] {
        let known = report(&world);
        assert!(!asks(&world, &known));
        source(&mut world).serves = serves;
        assert_eq!(world.ask(refresh.clone()), Ok(()));
        assert!(asks(&world, &known));
        world.run();
        assert!(!asks(&world, &report(&world)), "it has answered, or has failed");
        assert_eq!(asks(&world, &known), serves.is_some(), "until the fleet has heard of it");
    }
    assert_eq!(world.phase(), RolloutPhase::Pending);
    // Asked again it is pending anew, with all of its time.
    let before = world.kept.pending.clone().expect("it is pending");
    world.run_for(10);
    assert_eq!(world.ask(refresh), Ok(()));
    world.run();
    let after = world.kept.pending.clone().expect("it is pending");
    assert!(after.number > before.number && after.deadline > before.deadline);
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

#[test]
fn an_update_that_is_found_open_waits_for_what_the_fleet_serves_by_then() {
    for takes_over in [false, true] {
        let mut world = fed();
        let stores = WaveFeed { stores: Some(version(2)), ..WaveFeed::default() };
        conduct(&mut world, stores.clone());
        deliver(&mut world, 2);
        let serves = WaveFeed { serves: Some(version(2)), attempt: Some(number(3)), ..stores };
        world.step(RolloutInput::Fed(BTreeMap::from([(app(), serves)])));
        while world.files[&name("conf")] != 2 {
            assert!(world.carry_out());
        }
        world.kill();
        world.told = Some(Vec::new());
        world.start(takes_over);
        world.run_for(600);
        assert_eq!(world.phase(), RolloutPhase::Updating);
        assert_eq!(world.told, Some(Vec::new()), "nobody is told of what may have failed");
        assert_eq!(world.wakes_at(), None);
        // It has: what was there before comes back.
        feed(&mut world, 1, None);
        let told = world.told.clone().expect("a story");
        assert_eq!(told, ["file conf = 1", "file other = 1", "reload web with 1,1"]);
        assert_eq!((applied(&world), world.phase()), (Some(1), RolloutPhase::Running));
    }
}
