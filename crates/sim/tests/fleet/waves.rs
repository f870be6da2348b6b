//! Profiles that go through whole fleets in waves.

use crate::shop::quiet;
use mainstay_core::{
    name::Name,
    plan::WavePlan,
    rollout::{MemberPresence, RolloutPhase, RolloutRefusal, RolloutRequest, WaveSize, WaveStage},
};
use mainstay_sim::{
    fleet::{
        Fault, FleetWorld,
        scenario::{Scenario, name},
    },
    rollout::Draft,
};
use std::{collections::BTreeSet, time::Duration};

const PAUSE: Duration = Duration::from_secs(10);
const BAKE: Duration = Duration::from_secs(2);

fn node(number: usize) -> Name {
    name(&format!("n{number:03}"))
}

fn nodes(numbers: impl IntoIterator<Item = usize>) -> BTreeSet<Name> {
    numbers.into_iter().map(node).collect()
}

fn app() -> Name {
    name("app")
}

/// `n001` … with version 1 of a profile that goes in waves.
fn fleet(count: usize, size: WaveSize) -> FleetWorld {
    // What is to be seen follows from what is noticed.
    asking(count, size, Duration::from_secs(3600))
}

/// As [`fleet`], with sources that are asked so often.
fn asking(count: usize, size: WaveSize, interval: Duration) -> FleetWorld {
    let names: Vec<String> = (1..=count).map(|it| node(it).to_string()).collect();
    let mut world = FleetWorld::new(Scenario::of(&names.join(" ")), quiet()).untold();
    let draft = Draft::new("app", &[("conf", "app")], &[("web", "conf")]).with(|plan| {
        plan.wave = Some(WavePlan { size, pause: PAUSE });
        plan.services[0].bake_time = BAKE;
        plan.refresh_interval = interval;
        plan.on_failure = Some(vec!["tell".to_owned()]);
    });
    world.roll_out(&draft.0, (1..=count).map(node));
    until(&mut world, "all have the first version", |world| world.having(&app(), 1).len() == count);
    until(&mut world, "it is applied", |world| stage(world, 1) == Some(WaveStage::Applied));
    world
}

/// Lets time pass until it is so.
fn until(world: &mut FleetWorld, what: &str, is_so: impl Fn(&FleetWorld) -> bool) -> Duration {
    let begin = world.now();
    while !is_so(world) {
        assert!(world.now() - begin < Duration::from_secs(400), "never: {what}");
        pass(world, Duration::from_millis(50));
    }
    world.now() - begin
}

fn pass(world: &mut FleetWorld, time: Duration) {
    let end = world.now() + time;
    world.run_until(end);
}

fn stage(world: &FleetWorld, of: usize) -> Option<WaveStage> {
    Some(world.wave_profile(&node(of), &app())?.record?.stage)
}

fn is_back(world: &FleetWorld, of: usize) -> bool {
    matches!(stage(world, of), Some(WaveStage::Back(_)))
}

/// The service of a node cannot use version 2.
fn break_on(world: &mut FleetWorld, numbers: impl IntoIterator<Item = usize>) {
    for number in numbers {
        let services = &mut world.rollout_of(&node(number)).services;
        services.get_mut(&name("web")).expect("a service").cannot.insert(2);
    }
}

/// How often the source was asked, by node.
fn polls(world: &mut FleetWorld, count: usize) -> Vec<u64> {
    (1..=count).map(|it| world.rollout_of(&node(it)).sources[&app()].asked).collect()
}

#[test]
fn a_version_goes_wave_by_wave_the_master_last_and_one_node_polls() {
    let mut world = fleet(5, WaveSize::Nodes(2));
    let before = polls(&mut world, 5);
    assert_eq!(before[1..], [0, 0, 0, 0], "only the master has asked");
    world.serve(&app(), 2);
    until(&mut world, "the first wave has it", |world| world.having(&app(), 2) == nodes([2, 3]));
    for number in 1..=5 {
        let kept = &world.rollout_of(&node(number)).kept.profiles[&app()];
        let on_disk = kept.shared.iter().chain(&kept.applied).any(|it| it.digest.0[0] == 2);
        assert!(on_disk, "n00{number} has it on its disk before anybody begins");
    }
    let took = until(&mut world, "the second wave has it", |world| {
        world.having(&app(), 2) == nodes([2, 3, 4, 5])
    });
    assert!(took >= PAUSE + BAKE, "{took:?}");
    until(&mut world, "the master has it", |world| world.having(&app(), 2).len() == 5);
    until(&mut world, "it is applied", |world| stage(world, 4) == Some(WaveStage::Applied));
    let after = polls(&mut world, 5);
    assert_eq!((after[0], &after[1..]), (before[0] + 1, &[0, 0, 0, 0][..]));
    assert!((1..=5).all(|it| world.rollout_of(&node(it)).is_whole()));
}

#[test]
fn a_hundred_nodes_bad_from_the_fifth_wave_on_are_back_in_five_seconds() {
    let mut world = fleet(100, WaveSize::Percent(10));
    // By name, without the master: n002 to n041 are the first four waves.
    break_on(&mut world, 42..=100);
    world.serve(&app(), 2);
    until(&mut world, "four waves have it", |world| world.having(&app(), 2) == nodes(2..=41));
    until(&mut world, "a node of the fifth fails", |world| {
        (42..=51).any(|it| is_back(world, it)) || is_back(world, 1)
    });
    let took = until(&mut world, "all are back", |world| world.having(&app(), 1).len() == 100);
    println!("100 nodes: back after {took:?} of virtual time");
    assert!(took <= Duration::from_secs(5), "{took:?}");
    // Nothing of it comes back, and what has worked does not go on.
    pass(&mut world, PAUSE * 3);
    assert_eq!(world.having(&app(), 1).len(), 100);
    let profile = world.wave_profile(&node(7), &app()).expect("it goes in waves");
    assert!(profile.has_majority && profile.conductor == Some(node(1)));
}

/// The master of five is lost at a stage of a version; what the others do after that.
fn without_master(is_there: impl Fn(&FleetWorld) -> bool) -> FleetWorld {
    let mut world = fleet(5, WaveSize::Nodes(1));
    world.serve(&app(), 2);
    // It may be over in a few milliseconds.
    while !is_there(&world) {
        assert!(world.now() < Duration::from_secs(600), "never");
        pass(&mut world, Duration::from_micros(500));
    }
    world.inflict(Fault::Crash(node(1)));
    world
}

#[test]
fn the_next_master_goes_on_from_whatever_stage_the_last_one_was_at() {
    type IsStage = fn(&WaveStage) -> bool;
    let stages: [(&str, IsStage); 4] = [
        ("storing", |it| *it == WaveStage::Storing),
        ("in the first wave", |it| *it == WaveStage::Wave { at: 0 }),
        ("between two waves", |it| *it == WaveStage::Resting { next: 2 }),
        ("in the third wave", |it| *it == WaveStage::Wave { at: 2 }),
    ];
    for (what, is_at) in stages {
        let mut world = without_master(|world| stage(world, 2).as_ref().is_some_and(is_at));
        until(&mut world, what, |world| world.having(&app(), 2) == nodes(2..=5));
        until(&mut world, what, |world| stage(world, 3) == Some(WaveStage::Applied));
        // It comes back with the old one, and gets the applied one.
        assert_eq!(world.having(&app(), 1), nodes([]));
        world.inflict(Fault::Boot(node(1)));
        until(&mut world, what, |world| world.having(&app(), 2) == nodes(1..=5));
    }
}

#[test]
fn a_way_back_goes_on_without_the_master_that_began_it() {
    let mut world = fleet(5, WaveSize::Nodes(2));
    break_on(&mut world, [5]);
    world.serve(&app(), 2);
    until(&mut world, "the first wave has it", |world| world.having(&app(), 2) == nodes([2, 3]));
    until(&mut world, "it goes back", |world| is_back(world, 1));
    world.inflict(Fault::Crash(node(1)));
    until(&mut world, "all are back", |world| world.having(&app(), 1) == nodes(2..=5));
    pass(&mut world, PAUSE * 3);
    assert_eq!(world.having(&app(), 1), nodes(2..=5));
    // The next master does not begin again what has failed.
    world.inflict(Fault::Boot(node(1)));
    pass(&mut world, PAUSE * 3);
    assert_eq!(world.having(&app(), 1), nodes(1..=5));
    // Another version works.
    world.serve(&app(), 3);
    until(&mut world, "all have the next", |world| world.having(&app(), 3) == nodes(1..=5));
}

#[test]
fn an_agent_that_dies_in_its_own_wave_goes_on_and_a_node_that_does_brings_all_back() {
    let mut world = fleet(4, WaveSize::Nodes(1));
    world.serve(&app(), 2);
    let in_second = |world: &FleetWorld| stage(world, 3) == Some(WaveStage::Wave { at: 1 });
    until(&mut world, "the second wave", in_second);
    world.inflict(Fault::NewAgent(node(3)));
    world.inflict(Fault::NewAgent(node(1)));
    until(&mut world, "all have it", |world| world.having(&app(), 2) == nodes(1..=4));
    world.serve(&app(), 3);
    until(&mut world, "the second wave", in_second);
    world.inflict(Fault::Crash(node(3)));
    let took =
        until(&mut world, "all are back", |world| world.having(&app(), 2) == nodes([1, 2, 4]));
    println!("a lost node: back after {took:?} of virtual time");
    assert!(is_back(&world, 2) && took <= Duration::from_secs(5), "{took:?}");
    // It had begun, and never gets what failed.
    world.inflict(Fault::Boot(node(3)));
    until(&mut world, "it is back, too", |world| world.having(&app(), 2) == nodes(1..=4));
    pass(&mut world, PAUSE * 2);
    assert_eq!(world.having(&app(), 3), nodes([]));
}

#[test]
fn a_node_that_was_killed_in_its_own_wave_tells_nobody_of_what_failed_meanwhile() {
    // From before its files are switched until its service bakes; it is back at once, or late.
    for (after, away) in [0, 20, 500].into_iter().flat_map(|it| [(it, 2_500), (it, 30_000)]) {
        let mut world = fleet(4, WaveSize::Nodes(1));
        world.serve(&app(), 2);
        while stage(&world, 3) != Some(WaveStage::Wave { at: 1 }) {
            pass(&mut world, Duration::from_millis(1));
        }
        pass(&mut world, Duration::from_millis(after));
        world.inflict(Fault::Crash(node(3)));
        pass(&mut world, Duration::from_millis(away));
        assert!(is_back(&world, 1), "{after} {away}");
        world.rollout_of(&node(3)).told = Some(Vec::new());
        world.inflict(Fault::Boot(node(3)));
        until(&mut world, "all are back", |world| world.having(&app(), 1) == nodes(1..=4));
        pass(&mut world, PAUSE);
        let told = world.rollout_of(&node(3)).told.take().expect("a story");
        assert!(!told.iter().any(|it| it.contains("with 2")), "{after} {away}: {told:?}");
        assert!(world.rollout_of(&node(3)).is_whole());
    }
}

#[test]
fn a_minority_keeps_what_it_has_and_says_so() {
    let mut world = fleet(5, WaveSize::Nodes(1));
    world.serve(&app(), 2);
    until(&mut world, "the first wave has it", |world| world.having(&app(), 2) == nodes([2]));
    // The master is on the smaller side, with one that has it.
    let (one, other) = (vec![node(1), node(2)], vec![node(3), node(4), node(5)]);
    world.inflict(Fault::Cut { one, other, one_way: false });
    until(&mut world, "the larger side goes on", |world| {
        world.having(&app(), 2) == nodes([2, 3, 4, 5])
    });
    let small = world.wave_profile(&node(1), &app()).expect("it goes in waves");
    assert!(!small.has_majority);
    let lost = |it: &&mainstay_core::fleet::WaveNode| it.presence == MemberPresence::Lost;
    assert_eq!(small.nodes.iter().filter(lost).count(), 3);
    assert!(!matches!(stage(&world, 1), Some(WaveStage::Applied)));
    // Nor does it begin another one.
    world.serve(&app(), 3);
    pass(&mut world, Duration::from_secs(5));
    assert!(world.having(&app(), 3).is_disjoint(&nodes([1, 2])));
    world.inflict(Fault::Heal);
    until(&mut world, "all have the last", |world| world.having(&app(), 3) == nodes(1..=5));
}

#[test]
fn who_comes_late_gets_what_is_applied_and_is_pending_alone_if_it_fails() {
    let mut world = fleet(4, WaveSize::Nodes(2));
    world.inflict(Fault::Crash(node(4)));
    pass(&mut world, Duration::from_secs(5));
    world.serve(&app(), 2);
    until(&mut world, "the others have it", |world| world.having(&app(), 2) == nodes([1, 2, 3]));
    until(&mut world, "applied", |world| stage(world, 1) == Some(WaveStage::Applied));
    break_on(&mut world, [4]);
    world.inflict(Fault::Boot(node(4)));
    until(&mut world, "the late one has failed", |world| {
        let profile = world.wave_profile(&node(1), &app());
        let late = profile.and_then(|it| it.nodes.into_iter().find(|it| it.name == node(4)));
        late.is_some_and(|it| it.copy.failed.is_some())
    });
    pass(&mut world, PAUSE);
    assert_eq!(world.having(&app(), 1), nodes([4]));
    assert_eq!(world.having(&app(), 2), nodes([1, 2, 3]));
    assert_eq!(stage(&world, 1), Some(WaveStage::Applied));
    // It gets the next one like everybody.
    world.serve(&app(), 3);
    until(&mut world, "all have the next", |world| world.having(&app(), 3) == nodes(1..=4));
}

fn roll_back() -> RolloutRequest {
    RolloutRequest::Rollback { profile: app(), to: None, force: false }
}

fn refresh() -> RolloutRequest {
    RolloutRequest::Refresh { profile: None, force: false }
}

/// Five nodes with version 2, which somebody has just asked the master to roll back.
fn asked_to_roll_back() -> FleetWorld {
    let mut world = fleet(5, WaveSize::Nodes(2));
    world.serve(&app(), 2);
    until(&mut world, "all have the second", |world| world.having(&app(), 2).len() == 5);
    until(&mut world, "it is applied", |world| stage(world, 1) == Some(WaveStage::Applied));
    let elsewhere = RolloutRefusal::AskedElsewhere(app(), node(1));
    assert_eq!(world.ask_rollout(&node(4), roll_back()), Err(elsewhere));
    assert_eq!(world.ask_rollout(&node(1), roll_back()), Ok(()));
    assert!(!is_settled(&world), "whoever has asked for it waits");
    world
}

fn is_settled(world: &FleetWorld) -> bool {
    world.wave_profile(&node(1), &app()).is_some_and(|it| it.is_settled)
}

#[test]
fn a_rollback_by_hand_goes_wave_by_wave_and_is_not_undone_by_the_source() {
    let mut world = asked_to_roll_back();
    until(&mut world, "the first wave is back", |world| world.having(&app(), 1) == nodes([2, 3]));
    let busy = RolloutRefusal::InWaves(app());
    assert_eq!(world.ask_rollout(&node(1), roll_back()), Err(busy), "one after the other");
    let took = until(&mut world, "all are", |world| world.having(&app(), 1).len() == 5);
    assert!(took >= PAUSE * 2, "{took:?}");
    until(&mut world, "it has settled", is_settled);
    let profile = world.wave_profile(&node(5), &app()).expect("it goes in waves");
    let record = profile.record.expect("there is one");
    assert_eq!(record.rolled_back.map(|it| it.digest.0[0]), Some(2), "every node knows");
    // Its source serves what was rolled back, and says so again to a new agent and a new master.
    world.serve(&app(), 2);
    pass(&mut world, PAUSE * 2);
    world.inflict(Fault::NewAgent(node(1)));
    pass(&mut world, PAUSE * 2);
    world.inflict(Fault::Crash(node(1)));
    pass(&mut world, PAUSE * 2);
    assert_eq!(world.having(&app(), 1), nodes(2..=5));
    // Somebody asks.
    assert_eq!(world.ask_rollout(&node(2), refresh()), Ok(()));
    until(&mut world, "all have it again", |world| world.having(&app(), 2) == nodes(2..=5));
    world.inflict(Fault::Boot(node(1)));
    until(&mut world, "and who is back", |world| world.having(&app(), 2) == nodes(1..=5));
}

#[test]
fn a_rollback_by_hand_goes_on_without_the_master_that_was_asked() {
    let mut world = asked_to_roll_back();
    until(&mut world, "the first wave is back", |world| world.having(&app(), 1) == nodes([2, 3]));
    world.inflict(Fault::Crash(node(1)));
    until(&mut world, "all are", |world| world.having(&app(), 1) == nodes(2..=5));
    pass(&mut world, PAUSE * 3);
    assert_eq!(world.having(&app(), 1), nodes(2..=5), "the source of the next one serves it");
    world.serve(&app(), 3);
    until(&mut world, "all have the next", |world| world.having(&app(), 3) == nodes(2..=5));
    world.serve(&app(), 2);
    until(&mut world, "what was rolled back", |world| world.having(&app(), 2) == nodes(2..=5));
}

#[test]
fn a_rollback_by_hand_that_fails_on_one_node_comes_back_everywhere() {
    let mut world = asked_to_roll_back();
    let services = &mut world.rollout_of(&node(4)).services;
    services.get_mut(&name("web")).expect("a service").cannot.insert(1);
    until(&mut world, "it goes back", |world| is_back(world, 1));
    until(&mut world, "all have what they had", |world| world.having(&app(), 2).len() == 5);
    until(&mut world, "it has settled", is_settled);
    pass(&mut world, PAUSE * 3);
    assert_eq!(world.having(&app(), 2).len(), 5, "once is enough");
}

#[test]
fn a_source_that_fails_concerns_its_conductor_alone_while_the_fleet_goes_on() {
    let mut world = fleet(4, WaveSize::Nodes(1));
    world.serve(&app(), 2);
    until(&mut world, "the first wave has it", |world| world.having(&app(), 2) == nodes([2]));
    world.silence(&app());
    assert_eq!(world.ask_rollout(&node(1), refresh()), Ok(()));
    pass(&mut world, Duration::from_secs(1));
    assert_eq!(world.rollout_of(&node(1)).phase(), RolloutPhase::Pending);
    // The version under way goes on, and who comes late gets it.
    world.inflict(Fault::Crash(node(4)));
    until(&mut world, "all have it", |world| world.having(&app(), 2) == nodes([1, 2, 3]));
    until(&mut world, "it has settled", is_settled);
    world.inflict(Fault::Boot(node(4)));
    until(&mut world, "who is back has it", |world| world.having(&app(), 2) == nodes(1..=4));
    assert_eq!(world.rollout_of(&node(1)).phase(), RolloutPhase::Pending);
    let others = |world: &mut FleetWorld| [2, 3, 4].map(|it| world.rollout_of(&node(it)).phase());
    assert_eq!(others(&mut world), [RolloutPhase::Running; 3]);
    // Whoever follows is pending in its place.
    world.inflict(Fault::Crash(node(1)));
    pass(&mut world, Duration::from_secs(10));
    assert_eq!(world.rollout_of(&node(2)).phase(), RolloutPhase::Pending);
    world.serve(&app(), 3);
    until(&mut world, "all have the next", |world| world.having(&app(), 3) == nodes(2..=4));
    assert_eq!(world.rollout_of(&node(2)).phase(), RolloutPhase::Running);
}

#[test]
fn a_refresh_of_a_source_that_has_never_answered_has_nothing_to_wait_for() {
    let names: Vec<String> = (1..=3).map(|it| node(it).to_string()).collect();
    let mut world = FleetWorld::new(Scenario::of(&names.join(" ")), quiet()).untold();
    let draft = Draft::new("app", &[("conf", "app")], &[("web", "conf")]).with(|plan| {
        plan.wave = Some(WavePlan { size: WaveSize::Nodes(1), pause: PAUSE });
    });
    world.roll_out(&draft.0, (1..=3).map(node));
    world.silence(&app());
    until(&mut world, "its master asks", |world| {
        let profile = world.wave_profile(&node(1), &app());
        profile.is_some_and(|it| it.conductor == Some(node(1)))
    });
    pass(&mut world, Duration::from_secs(5));
    assert_eq!(world.ask_rollout(&node(1), refresh()), Ok(()));
    pass(&mut world, Duration::from_secs(1));
    assert!(is_settled(&world));
    assert_eq!(world.rollout_of(&node(1)).phase(), RolloutPhase::Pending);
}

/// Three nodes that have come back from version 2, which the second one cannot use.
fn come_back() -> FleetWorld {
    let mut world = fleet(3, WaveSize::Nodes(1));
    break_on(&mut world, [3]);
    world.serve(&app(), 2);
    until(&mut world, "it goes back", |world| is_back(world, 1));
    until(&mut world, "all are back", |world| world.having(&app(), 1).len() == 3);
    pass(&mut world, Duration::from_secs(1));
    world
}

fn phases(world: &mut FleetWorld) -> Vec<RolloutPhase> {
    (1..=3).map(|it| world.rollout_of(&node(it)).phase()).collect()
}

#[test]
fn what_a_fleet_has_come_back_from_is_pending_where_its_source_is_asked_and_fails_in_time() {
    use RolloutPhase::{Failed, Pending, Running};
    let mut world = come_back();
    assert_eq!(phases(&mut world), [Pending, Running, Running]);
    let pending = world.rollout_of(&node(1)).kept.pending.clone().expect("it is pending");
    assert!(pending.failure.contains("node 'n003'"), "{pending:?}");
    assert_eq!(pending.version.map(|it| it.digest.0[0]), Some(2));
    assert!(world.rollout_of(&node(1)).hooks.is_empty(), "whoever has failed has told of it");
    assert_eq!(world.rollout_of(&node(3)).hooks.len(), 1);
    // A new agent knows of it, and its time goes on.
    world.inflict(Fault::NewAgent(node(1)));
    pass(&mut world, Duration::from_secs(5));
    let after = world.rollout_of(&node(1)).kept.pending.clone().expect("it is pending");
    assert_eq!((after.number, after.deadline), (pending.number, pending.deadline));
    // So does the next one that asks, with all of its time.
    world.inflict(Fault::Crash(node(1)));
    until(&mut world, "the next asks", |world| {
        world.wave_profile(&node(2), &app()).is_some_and(|it| it.conductor == Some(node(2)))
    });
    pass(&mut world, Duration::from_secs(5));
    assert_eq!(phases(&mut world)[1..], [Pending, Running]);
    let timeout = world.rollout_of(&node(2)).plan.failure_timeout;
    pass(&mut world, timeout);
    assert_eq!(phases(&mut world)[1..], [Failed, Running]);
    assert_eq!(world.having(&app(), 1), nodes([2, 3]), "nothing is tried again by itself");
    // Another version ends it.
    world.serve(&app(), 3);
    until(&mut world, "all have the next", |world| world.having(&app(), 3) == nodes([2, 3]));
    assert_eq!(phases(&mut world)[1..], [Running, Running]);
}

#[test]
fn what_has_failed_in_a_fleet_ends_with_a_source_that_goes_back_and_with_a_refresh() {
    let mut world = come_back();
    world.serve(&app(), 1);
    pass(&mut world, Duration::from_secs(1));
    assert_eq!(phases(&mut world), [RolloutPhase::Running; 3]);
    let mut world = come_back();
    let before = world.rollout_of(&node(1)).kept.failures;
    assert_eq!(world.ask_rollout(&node(1), refresh()), Ok(()));
    until(&mut world, "it is tried again", |world| !is_settled(world));
    assert_eq!(world.rollout_of(&node(1)).phase(), RolloutPhase::Running);
    assert_eq!(world.rollout_of(&node(1)).kept.failures, before);
    until(&mut world, "it fails again", is_settled);
    pass(&mut world, Duration::from_secs(1));
    assert_eq!(phases(&mut world)[0], RolloutPhase::Pending);
    assert_eq!(world.rollout_of(&node(1)).kept.failures, before + 1);
    // A source that is gone meanwhile is told of, and then it is as before.
    world.silence(&app());
    assert_eq!(world.ask_rollout(&node(1), refresh()), Ok(()));
    pass(&mut world, Duration::from_secs(1));
    let why = |world: &mut FleetWorld| {
        let pending = world.rollout_of(&node(1)).kept.pending.clone();
        pending.expect("it is pending").failure
    };
    assert!(why(&mut world).contains("cannot be loaded"));
    world.serve(&app(), 2);
    pass(&mut world, Duration::from_secs(1));
    assert!(why(&mut world).contains("failed on node 'n003'"));
    // Now it works.
    world.rollout_of(&node(3)).services.get_mut(&name("web")).expect("a service").cannot.clear();
    assert_eq!(world.ask_rollout(&node(1), refresh()), Ok(()));
    until(&mut world, "all have it", |world| world.having(&app(), 2).len() == 3);
    assert_eq!(phases(&mut world), [RolloutPhase::Running; 3]);
}

#[test]
fn of_a_node_that_was_lost_in_its_wave_the_one_tells_that_asks_the_source() {
    let mut world = fleet(3, WaveSize::Nodes(1));
    world.serve(&app(), 2);
    until(&mut world, "its wave", |world| stage(world, 1) == Some(WaveStage::Wave { at: 1 }));
    world.inflict(Fault::Crash(node(3)));
    until(&mut world, "it goes back", |world| is_back(world, 1));
    pass(&mut world, Duration::from_secs(1));
    assert_eq!(world.rollout_of(&node(1)).hooks.len(), 1);
    let pending = world.rollout_of(&node(1)).kept.pending.clone().expect("it is pending");
    assert!(pending.failure.contains("n003' was lost"), "{pending:?}");
    assert!(world.rollout_of(&node(2)).hooks.is_empty());
}

#[test]
fn a_fleet_of_ten_asks_the_source_once_an_interval() {
    let interval = Duration::from_secs(30);
    let mut world = asking(10, WaveSize::Percent(10), interval);
    let before = polls(&mut world, 10);
    pass(&mut world, interval * 10);
    let after = polls(&mut world, 10);
    let asked: Vec<u64> = after.iter().zip(&before).map(|(after, before)| after - before).collect();
    assert_eq!(asked, [10, 0, 0, 0, 0, 0, 0, 0, 0, 0], "only the master has asked");
}
