//! What users say about one job, and where they say it.

use mainstay_core::{
    fleet::{FleetRequest, FleetStage, NotPlaced, RequestAnswer, Strategy},
    job::Desired,
    plan::{AppPlan, Distribution, OnFailure},
};
use mainstay_sim::fleet::{
    Fault, FleetWorld, Observation, Script, invariants,
    scenario::{Scenario, name},
};
use std::time::Duration;

fn world(scenario: Scenario) -> FleetWorld {
    FleetWorld::new(scenario, Script { seed: 7, steps: Vec::new() })
}

fn shop() -> FleetWorld {
    let scenario = Scenario::of("a b c").app("shop", OnFailure::RestartProcess);
    world(scenario.job("db", 1, 60).job("web", 2, 60))
}

fn home(seen: &Observation, job: &str) -> Option<String> {
    seen.homes(&name(job)).next().map(ToString::to_string)
}

fn until(world: &mut FleetWorld, what: &str, is_so: impl Fn(&Observation) -> bool) {
    let took = world.run_while(Duration::from_secs(60), |seen| !is_so(seen));
    took.unwrap_or_else(|| panic!("never: {what}\n{}", world.trace));
}

fn until_home(world: &mut FleetWorld, job: &str, node: Option<&str>) {
    until(world, &format!("{job} on {node:?}"), |seen| home(seen, job).as_deref() == node);
}

fn pass(world: &mut FleetWorld, seconds: u64) {
    let end = world.now() + Duration::from_secs(seconds);
    world.run_until(end);
}

fn ask(world: &mut FleetWorld, node: &str, request: FleetRequest) {
    world.inflict(Fault::Ask { node: name(node), request });
}

fn last_reply(world: &FleetWorld) -> Option<RequestAnswer> {
    world.observe().replies.last().map(|(_, answer)| answer.clone())
}

#[test]
fn a_job_that_is_disabled_stays_down_in_the_whole_fleet_and_over_boots() {
    let mut world = shop();
    until_home(&mut world, "web", Some("b"));
    ask(&mut world, "c", FleetRequest::DisableJob { job: name("web") });
    until_home(&mut world, "web", None);
    ask(&mut world, "b", FleetRequest::StartJob { job: name("web"), args: None });
    pass(&mut world, 3);
    assert_eq!(last_reply(&world), Some(RequestAnswer::Disabled));
    for request in [
        FleetRequest::StopJob { job: name("web") },
        FleetRequest::RestartApp { app: name("shop"), wave: None },
        FleetRequest::StartApp { app: name("shop") },
    ] {
        ask(&mut world, "a", request);
        pass(&mut world, 5);
    }
    assert_eq!(home(&world.observe(), "web"), None, "{}", world.trace);
    assert!(home(&world.observe(), "db").is_some(), "the rest of its app runs");
    ["a", "b", "c"].iter().for_each(|it| world.inflict(Fault::Crash(name(it))));
    ["a", "b", "c"].iter().for_each(|it| world.inflict(Fault::Boot(name(it))));
    until(&mut world, "db runs", |seen| home(seen, "db").is_some());
    pass(&mut world, 5);
    let seen = world.observe();
    assert_eq!(home(&seen, "web"), None);
    for node in seen.nodes.values() {
        let wish = node.wishes.of(&name("web")).expect("a wish");
        assert_eq!(wish.desired, Desired::Disabled, "every node knows");
    }
    ask(&mut world, "b", FleetRequest::EnableJob { job: name("web") });
    until(&mut world, "web runs", |seen| home(seen, "web").is_some());
}

#[test]
fn a_node_that_is_taken_from_the_candidates_of_a_job_leaves_the_others() {
    let mut world = shop();
    until_home(&mut world, "web", Some("b"));
    world.disable_here(&name("b"), &name("web"), true);
    until_home(&mut world, "web", Some("c"));
    world.inflict(Fault::Crash(name("c")));
    pass(&mut world, 5);
    assert_eq!(home(&world.observe(), "web"), None, "a has no room, b is none\n{}", world.trace);
    world.disable_here(&name("b"), &name("web"), false);
    until_home(&mut world, "web", Some("b"));
}

#[test]
fn local_is_the_node_that_was_asked() {
    let mut scenario = Scenario::of("a b c");
    scenario.rules.strategy = Strategy::Local;
    let app = AppPlan { start_sequence: 0, ..AppPlan::new(name("shop")) };
    let mut world = world(scenario.app_of(app).job("db", 1, 10).job("web", 2, 10));
    pass(&mut world, 3);
    ask(&mut world, "c", FleetRequest::StartApp { app: name("shop") });
    until_home(&mut world, "db", Some("c"));
    until_home(&mut world, "web", Some("c"));
    ask(&mut world, "b", FleetRequest::RestartJob { job: name("web"), args: None });
    until_home(&mut world, "web", Some("b"));
    pass(&mut world, 3);
    ask(&mut world, "b", FleetRequest::RestartApp { app: name("shop"), wave: None });
    until_home(&mut world, "db", Some("b"));
    until_home(&mut world, "web", Some("b"));
}

#[test]
fn a_drain_that_is_asked_for_while_its_node_hands_over_outlives_its_end() {
    for drained in [true, false] {
        let mut world = shop();
        until_home(&mut world, "web", Some("b"));
        world.hand_over(&name("b"), true);
        ask(&mut world, "b", FleetRequest::HandOver { node: name("b") });
        if drained {
            ask(&mut world, "a", FleetRequest::Drain { node: name("b"), on: true });
        }
        until_home(&mut world, "web", Some("c"));
        world.inflict(Fault::Crash(name("b")));
        pass(&mut world, 3);
        world.inflict(Fault::Boot(name("b")));
        pass(&mut world, 5);
        let says = world.facts().filter(|it| it.machine == "b").any(|it| it.drained);
        assert_eq!(says, drained, "{}", world.trace);
    }
}

/// What the fleet stops anyway is stopped by a user as well, and stays so.
#[test]
fn a_stop_of_an_app_while_the_fleet_restarts_is_not_forgotten() {
    let mut world = shop();
    until_home(&mut world, "web", Some("b"));
    pass(&mut world, 3);
    ask(&mut world, "a", FleetRequest::EndFleet { again: true });
    until(&mut world, "it ends", |seen| {
        seen.nodes.values().all(|it| it.stage == FleetStage::Restarting)
    });
    ask(&mut world, "c", FleetRequest::StopApp { app: name("shop") });
    pass(&mut world, 10);
    assert_eq!(last_reply(&world), Some(RequestAnswer::Begun), "{}", world.trace);
    let seen = world.observe();
    assert!(seen.nodes.values().all(|it| it.stage == FleetStage::Operation), "{}", world.trace);
    assert_eq!((home(&seen, "web"), home(&seen, "db")), (None, None), "{}", world.trace);
}

#[test]
fn what_somebody_stops_on_its_node_alone_is_left_there() {
    let mut world = shop();
    until_home(&mut world, "web", Some("b"));
    pass(&mut world, 3);
    world.inflict(Fault::StopHere { job: name("web"), node: name("b") });
    until_home(&mut world, "web", None);
    // Not by another agent of the master either, which knows what the others tell it.
    pass(&mut world, 5);
    world.inflict(Fault::NewAgent(name("a")));
    pass(&mut world, 10);
    assert_eq!(home(&world.observe(), "web"), None, "{}", world.trace);
    ask(&mut world, "c", FleetRequest::StartJob { job: name("web"), args: None });
    until(&mut world, "it runs again", |seen| home(seen, "web").is_some());
}

/// The copy that conciliation has kept came up never, and the other one is gone: found by seed 12841.
#[test]
fn a_copy_by_hand_that_fails_does_not_take_the_job_with_it() {
    let mut world = shop();
    until_home(&mut world, "web", Some("b"));
    pass(&mut world, 3);
    world.inflict(Fault::JobBreaks { job: name("web"), on: true });
    world.inflict(Fault::StartHere { job: name("web"), node: name("c") });
    let end = world.now() + Duration::from_millis(25);
    world.run_until(end);
    world.inflict(Fault::JobBreaks { job: name("web"), on: false });
    pass(&mut world, 10);
    assert!(home(&world.observe(), "web").is_some(), "{}", world.trace);
}

fn args(seen: &Observation, job: &str) -> Vec<String> {
    let home = name(&home(seen, job).expect("it runs"));
    seen.nodes[&home].args[&name(job)].clone()
}

fn restart_with_args(job: &str) -> FleetRequest {
    FleetRequest::RestartJob { job: name(job), args: Some(vec!["-v".to_owned()]) }
}

/// What runs there is neither stopped nor started by it.
#[test]
fn what_a_node_runs_whose_journal_is_lost_goes_on_with_its_arguments() {
    let mut world = shop();
    until_home(&mut world, "web", Some("b"));
    ask(&mut world, "a", restart_with_args("web"));
    pass(&mut world, 5);
    let before = world.trace.len();
    world.inflict(Fault::LoseJournal(name("b")));
    pass(&mut world, 20);
    let seen = world.observe();
    assert_eq!(
        (home(&seen, "web").as_deref(), args(&seen, "web").join(" ")),
        (Some("b"), "-v".into())
    );
    assert!(!world.trace[before..].contains("b > "), "{}", world.trace);
    // Its next process has them, too.
    world.inflict(Fault::Crash(name("b")));
    until_home(&mut world, "web", Some("c"));
    assert_eq!(args(&world.observe(), "web"), ["-v"]);
}

/// It is told again what it has taken, and forgotten.
#[test]
fn an_order_outlives_the_journal_of_the_node_that_has_taken_it() {
    for (gap, mut world) in (0..30).map(|gap| (gap, shop())) {
        until_home(&mut world, "web", Some("b"));
        pass(&mut world, 1);
        ask(&mut world, "a", restart_with_args("web"));
        let end = world.now() + Duration::from_millis(3 * gap);
        world.run_until(end);
        world.inflict(Fault::LoseJournal(name("b")));
        pass(&mut world, 20);
        let seen = world.observe();
        let broken = [invariants::always(&seen), invariants::settled(&seen)].concat();
        assert_eq!(broken, Vec::<String>::new(), "{gap}\n{}", world.trace);
        assert_eq!(args(&seen, "web"), ["-v"], "{gap}\n{}", world.trace);
    }
}

/// The jobs of one app, which are to be together.
fn together(scenario: Scenario, distribution: Distribution) -> Scenario {
    let plan =
        AppPlan { distribution, on_failure: OnFailure::Continue, ..AppPlan::new(name("shop")) };
    scenario.app_of(plan)
}

/// It has its place beside itself: what it takes now is free once it is stopped.
#[test]
fn a_job_that_is_alone_of_its_app_is_started_again_for_its_arguments() {
    let scenario = together(Scenario::of("a b"), Distribution::OneNode).job("web", 1, 60);
    let mut world = world(scenario);
    until_home(&mut world, "web", Some("a"));
    ask(&mut world, "a", FleetRequest::MoveJob { job: name("web"), to: name("b") });
    until_home(&mut world, "web", Some("b"));
    let (one, other) = (vec![name("a")], vec![name("b")]);
    world.inflict(Fault::Cut { one, other, one_way: false });
    pass(&mut world, 5);
    ask(&mut world, "a", restart_with_args("web"));
    pass(&mut world, 1);
    world.inflict(Fault::Crash(name("a")));
    world.inflict(Fault::Heal);
    world.inflict(Fault::Boot(name("a")));
    pass(&mut world, 20);
    assert_eq!(args(&world.observe(), "web"), ["-v"], "{}", world.trace);
}

#[test]
fn what_leaves_a_node_leaves_room_on_its_machine() {
    let mut scenario = Scenario::of("a b").app("shop", OnFailure::Continue).job("web", 1, 60);
    scenario.machines = ["a", "b"].map(|node| (name(node), "shared".to_owned())).into();
    let mut world = world(scenario);
    until_home(&mut world, "web", Some("a"));
    ask(&mut world, "a", FleetRequest::Drain { node: name("a"), on: true });
    until_home(&mut world, "web", Some("b"));
    assert_eq!(last_reply(&world), Some(RequestAnswer::Begun));
}

#[test]
fn an_app_that_stays_together_moves_within_its_machine() {
    let scenario = together(Scenario::of("a b"), Distribution::OneMachine);
    let mut scenario = scenario.job("db", 1, 40).job("web", 2, 40);
    scenario.machines = ["a", "b"].map(|node| (name(node), "shared".to_owned())).into();
    let mut world = world(scenario);
    until_home(&mut world, "web", Some("a"));
    pass(&mut world, 1);
    ask(&mut world, "a", FleetRequest::MoveApp { app: name("shop"), to: name("b") });
    until(&mut world, "both have moved", |seen| {
        ["db", "web"].iter().all(|job| home(seen, job).as_deref() == Some("b"))
    });
}

#[test]
fn an_app_moves_only_where_there_is_room_for_all_that_runs_of_it() {
    let mut world = shop();
    until_home(&mut world, "web", Some("b"));
    pass(&mut world, 1);
    ask(&mut world, "a", FleetRequest::MoveApp { app: name("shop"), to: name("c") });
    pass(&mut world, 5);
    let full = NotPlaced::NoRoom { loads: vec![(name("c"), 60)] };
    assert_eq!(last_reply(&world), Some(RequestAnswer::NotPlaced(full)));
    let seen = world.observe();
    assert_eq!(
        (home(&seen, "db").as_deref(), home(&seen, "web").as_deref()),
        (Some("a"), Some("b"))
    );
}
