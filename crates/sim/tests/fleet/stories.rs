//! What a fleet does when one thing happens to it.

use mainstay_core::{
    fleet::{Conciliation, CopyState, FleetRequest, FleetStage, RequestAnswer},
    plan::{AppPlan, Distribution, NodePattern, OnFailure, Place, Spread},
};
use mainstay_sim::fleet::{
    Fault, FleetWorld, Observation, Script, invariants,
    scenario::{Scenario, name},
};
use std::time::Duration;

/// One app of two jobs on three nodes.
fn shop(on_failure: OnFailure) -> FleetWorld {
    let scenario = Scenario::of("a b c").app("shop", on_failure).job("db", 1, 60).job("web", 2, 60);
    FleetWorld::new(scenario, quiet())
}

fn quiet() -> Script {
    Script { seed: 7, steps: Vec::new() }
}

fn runs(seen: &Observation, job: &str, node: &str) -> bool {
    let jobs = seen.nodes.get(&name(node)).map(|it| &it.jobs);
    jobs.and_then(|jobs| jobs.get(&name(job))) == Some(&CopyState::Running)
}

fn await_that(
    world: &mut FleetWorld,
    what: &str,
    is_so: impl Fn(&Observation) -> bool,
) -> Duration {
    let took = world.run_while(Duration::from_secs(60), |seen| !is_so(seen));
    took.unwrap_or_else(|| panic!("never: {what}\n{}", world.trace))
}

fn assert_settled(world: &mut FleetWorld) {
    let end = world.now() + Duration::from_secs(20);
    world.run_until(end);
    let broken = [invariants::always(&world.observe()), invariants::settled(&world.observe())];
    assert_eq!(broken.concat(), Vec::<String>::new(), "{}", world.trace);
}

#[test]
fn a_job_of_a_node_that_is_gone_runs_elsewhere() {
    let mut world = shop(OnFailure::RestartProcess);
    let boot =
        await_that(&mut world, "it runs", |seen| runs(seen, "db", "a") && runs(seen, "web", "b"));
    assert!(boot < Duration::from_secs(2), "{boot:?}");
    await_that(&mut world, "OPERATION", |seen| {
        seen.nodes.values().all(|it| it.stage == FleetStage::Operation)
    });
    world.inflict(Fault::Crash(name("b")));
    let took = await_that(&mut world, "web runs elsewhere", |seen| runs(seen, "web", "c"));
    assert!(took < Duration::from_millis(2_700), "{took:?}");
    world.inflict(Fault::Boot(name("b")));
    assert_settled(&mut world);
}

fn is_in_operation(seen: &Observation) -> bool {
    !seen.nodes.is_empty() && seen.nodes.values().all(|it| it.stage == FleetStage::Operation)
}

fn pass(world: &mut FleetWorld, seconds: u64) {
    let end = world.now() + Duration::from_secs(seconds);
    world.run_until(end);
}

fn master(seen: &Observation) -> Vec<&str> {
    seen.nodes.iter().filter(|(_, it)| it.is_master).map(|(node, _)| node.as_str()).collect()
}

/// Hazard 1: the failures of a lost master are answered by the next one.
#[test]
fn what_a_lost_master_ran_is_answered_by_the_next() {
    let mut world = shop(OnFailure::RestartProcess);
    await_that(&mut world, "it runs", |seen| runs(seen, "db", "a") && is_in_operation(seen));
    world.inflict(Fault::Crash(name("a")));
    let took = await_that(&mut world, "db runs elsewhere", |seen| runs(seen, "db", "c"));
    assert!(took < Duration::from_secs(3), "{took:?}");
    assert_eq!(master(&world.observe()), ["b"]);
    // An existing master is kept when the smaller name is back.
    world.inflict(Fault::Boot(name("a")));
    assert_settled(&mut world);
    assert_eq!(master(&world.observe()), ["b"]);
}

/// Hazard 2: losses and joins are answered while a conflict waits for a user.
#[test]
fn a_conflict_that_waits_for_a_user_holds_up_no_failover() {
    let mut scenario = Scenario::of("a b c")
        .app("shop", OnFailure::RestartProcess)
        .job("db", 1, 60)
        .job("web", 2, 60);
    scenario.rules.conciliation = Conciliation::User;
    let mut world = FleetWorld::new(scenario, quiet());
    await_that(&mut world, "it runs", |seen| runs(seen, "web", "b") && is_in_operation(seen));
    world.inflict(Fault::StartHere { job: name("db"), node: name("c") });
    await_that(&mut world, "CONCILIATION", |seen| {
        seen.nodes.values().all(|it| it.stage == FleetStage::Conciliation)
    });
    world.inflict(Fault::Crash(name("b")));
    world.inflict(Fault::Crash(name("c")));
    pass(&mut world, 5);
    assert!(runs(&world.observe(), "db", "a"), "{}", world.trace);
    world.inflict(Fault::Boot(name("b")));
    world.inflict(Fault::Boot(name("c")));
    await_that(&mut world, "web runs again", |seen| seen.homes(&name("web")).count() == 1);
    assert_settled(&mut world);
}

/// Hazard 3: a node that joins cancels nothing that is under way.
#[test]
fn a_joiner_cancels_no_start() {
    let mut scenario = Scenario::of("a b c");
    scenario.rules.core = [name("a"), name("b")].into();
    let mut scenario = scenario.app_of(AppPlan { start_sequence: 0, ..AppPlan::new(name("shop")) });
    for at in 1..30 {
        scenario = scenario.job(&format!("job{at}"), at, 1);
    }
    let mut world = FleetWorld::new(scenario, quiet());
    world.inflict(Fault::Crash(name("c")));
    await_that(&mut world, "OPERATION", is_in_operation);
    let request = FleetRequest::StartApp { app: name("shop") };
    world.inflict(Fault::Ask { node: name("b"), request });
    await_that(&mut world, "it starts", |seen| runs(seen, "job3", "a"));
    world.inflict(Fault::Boot(name("c")));
    await_that(&mut world, "all of it runs", |seen| runs(seen, "job29", "a"));
    assert_settled(&mut world);
}

/// Hazard 6: `continue` is respected; the job waits for its node, and comes back with it.
#[test]
fn a_repair_starts_nothing_that_was_to_be_left() {
    let mut world = shop(OnFailure::Continue);
    await_that(&mut world, "it runs", |seen| runs(seen, "web", "b") && is_in_operation(seen));
    world.inflict(Fault::Crash(name("b")));
    pass(&mut world, 5);
    world.inflict(Fault::Crash(name("c")));
    pass(&mut world, 5);
    world.inflict(Fault::Boot(name("c")));
    pass(&mut world, 5);
    assert_eq!(world.observe().homes(&name("web")).count(), 0, "{}", world.trace);
    world.inflict(Fault::Boot(name("b")));
    await_that(&mut world, "web is back", |seen| runs(seen, "web", "b"));
    assert_settled(&mut world);
}

/// Hazard 7: an app that always crashes is restarted five times, and rests.
#[test]
fn an_app_that_always_crashes_rests_in_the_end() {
    let mut world = shop(OnFailure::RestartApp);
    await_that(&mut world, "it runs", |seen| runs(seen, "web", "b") && is_in_operation(seen));
    for _ in 0..6 {
        world.inflict(Fault::JobCrash(name("db")));
        pass(&mut world, 12);
    }
    assert_eq!(world.observe().homes(&name("db")).count(), 0, "{}", world.trace);
    assert_eq!(world.observe().homes(&name("web")).count(), 0, "{}", world.trace);
}

/// Hazard 8: arguments go along when a job fails over, also to a master that has joined late.
#[test]
fn arguments_go_along() {
    let mut world = shop(OnFailure::RestartProcess);
    await_that(&mut world, "it runs", |seen| runs(seen, "web", "b") && is_in_operation(seen));
    let stop = FleetRequest::StopJob { job: name("web") };
    world.inflict(Fault::Ask { node: name("c"), request: stop });
    await_that(&mut world, "it rests", |seen| seen.homes(&name("web")).count() == 0);
    let args = Some(vec!["-v".to_owned()]);
    let start = FleetRequest::StartJob { job: name("web"), args };
    world.inflict(Fault::Ask { node: name("c"), request: start });
    await_that(&mut world, "it runs", |seen| runs(seen, "web", "b"));
    world.inflict(Fault::Crash(name("a")));
    pass(&mut world, 5);
    world.inflict(Fault::Boot(name("a")));
    pass(&mut world, 5);
    world.inflict(Fault::Crash(name("b")));
    pass(&mut world, 5);
    let seen = world.observe();
    let home = seen.homes(&name("web")).next().expect("it runs").clone();
    assert_eq!(seen.nodes[&home].args[&name("web")], ["-v"], "{}", world.trace);
}

/// Hazard 10: two requests at two nodes at once overload no machine.
#[test]
fn concurrent_requests_share_the_loads() {
    let app = |text| AppPlan { start_sequence: 0, ..AppPlan::new(name(text)) };
    let scenario = Scenario::of("a b c")
        .app_of(app("one"))
        .job("one-a", 1, 60)
        .job("one-b", 1, 60)
        .app_of(app("two"))
        .job("two-a", 1, 60);
    let mut world = FleetWorld::new(scenario, quiet());
    await_that(&mut world, "OPERATION", is_in_operation);
    for (node, app) in [("b", "one"), ("c", "two")] {
        let request = FleetRequest::StartApp { app: name(app) };
        world.inflict(Fault::Ask { node: name(node), request });
    }
    await_that(&mut world, "all run", |seen| {
        ["one-a", "one-b", "two-a"].iter().all(|job| seen.homes(&name(job)).count() == 1)
    });
    assert_settled(&mut world);
}

/// Hazard 13: a lost master is isolated like anybody, over its reboot, until it is readmitted.
#[test]
fn a_lost_master_is_fenced() {
    let mut scenario = Scenario::of("a b c")
        .app("shop", OnFailure::RestartProcess)
        .job("db", 1, 60)
        .job("web", 2, 60);
    scenario.rules.auto_fence = true;
    let mut world = FleetWorld::new(scenario, quiet());
    await_that(&mut world, "it runs", |seen| runs(seen, "db", "a") && is_in_operation(seen));
    world.inflict(Fault::Crash(name("a")));
    await_that(&mut world, "db runs elsewhere", |seen| runs(seen, "db", "c"));
    world.inflict(Fault::Boot(name("a")));
    pass(&mut world, 10);
    let terms: Vec<_> = ["b", "c"].map(|it| world.observe().nodes[&name(it)].term.clone()).into();
    assert!(terms.iter().all(|it| it.as_ref().is_some_and(|it| it.master == name("b"))));
    assert!(!runs(&world.observe(), "db", "b") && runs(&world.observe(), "db", "c"));
}

#[test]
fn after_a_cut_each_side_goes_on_and_one_copy_stays() {
    let mut world = shop(OnFailure::RestartProcess);
    await_that(&mut world, "it runs", |seen| runs(seen, "db", "a") && is_in_operation(seen));
    let (one, other) = (vec![name("a")], vec![name("b"), name("c")]);
    world.inflict(Fault::Cut { one, other, one_way: false });
    await_that(&mut world, "two copies", |seen| runs(seen, "db", "a") && runs(seen, "db", "c"));
    world.inflict(Fault::Heal);
    assert_settled(&mut world);
    // The youngest: senicide.
    assert!(runs(&world.observe(), "db", "c"), "{}", world.trace);
}

#[test]
fn a_fleet_is_shut_down_in_order_also_when_its_master_dies_in_the_middle() {
    let mut world = shop(OnFailure::RestartProcess);
    await_that(&mut world, "it runs", |seen| runs(seen, "db", "a") && is_in_operation(seen));
    let request = FleetRequest::EndFleet { again: false };
    world.inflict(Fault::Ask { node: name("b"), request });
    await_that(&mut world, "SHUTTING_DOWN", |seen| {
        seen.nodes.values().all(|it| it.stage == FleetStage::ShuttingDown)
    });
    world.inflict(Fault::Crash(name("a")));
    await_that(&mut world, "all have ended", |seen| seen.nodes.is_empty());
}

#[test]
fn a_restarted_job_has_a_new_process_and_keeps_its_arguments() {
    let mut world = shop(OnFailure::Continue);
    await_that(&mut world, "it runs", |seen| runs(seen, "db", "a") && is_in_operation(seen));
    let args = Some(vec!["-v".to_owned()]);
    let request = FleetRequest::RestartJob { job: name("db"), args };
    world.inflict(Fault::Ask { node: name("c"), request });
    await_that(&mut world, "it stops", |seen| !runs(seen, "db", "a"));
    await_that(&mut world, "it runs again", |seen| runs(seen, "db", "a"));
    let request = FleetRequest::RestartJob { job: name("db"), args: None };
    world.inflict(Fault::Ask { node: name("b"), request });
    await_that(&mut world, "it stops once more", |seen| !runs(seen, "db", "a"));
    await_that(&mut world, "it runs once more", |seen| runs(seen, "db", "a"));
    assert_settled(&mut world);
    let seen = world.observe();
    let args = seen.nodes.get(&name("a")).and_then(|it| it.args.get(&name("db")));
    assert_eq!(args, Some(&vec!["-v".to_owned()]));
}

#[test]
fn instances_are_divided_between_the_nodes() {
    let even = Place { spread: Some(Spread::Even), ..Place::default() };
    let each = Place { spread: Some(Spread::OneEach), ..Place::default() };
    let mut scenario = Scenario::of("a b").app("shop", OnFailure::Continue);
    for number in 1..=3 {
        scenario = scenario.instance(&format!("web-{number}"), number, even.clone()).instance(
            &format!("db-{number}"),
            number,
            each.clone(),
        );
    }
    let mut world = FleetWorld::new(scenario, quiet());
    await_that(&mut world, "each where it belongs", |seen| {
        let even = runs(seen, "web-1", "a") && runs(seen, "web-2", "b") && runs(seen, "web-3", "a");
        even && runs(seen, "db-1", "a") && runs(seen, "db-2", "b")
    });
    let nowhere = |seen: &Observation| !runs(seen, "db-3", "a") && !runs(seen, "db-3", "b");
    let end = world.now() + Duration::from_secs(5);
    world.run_until(end);
    assert!(nowhere(&world.observe()), "{}", world.trace);
}

#[test]
fn a_job_is_moved_where_somebody_wants_it() {
    let mut world = shop(OnFailure::Continue);
    await_that(&mut world, "it runs", |seen| runs(seen, "web", "b") && is_in_operation(seen));
    let request = FleetRequest::MoveJob { job: name("web"), to: name("c") };
    world.inflict(Fault::Ask { node: name("a"), request });
    await_that(&mut world, "it runs there", |seen| runs(seen, "web", "c"));
    assert!(!runs(&world.observe(), "web", "b"));
    // There is no room for it beside db.
    let request = FleetRequest::MoveJob { job: name("web"), to: name("a") };
    world.inflict(Fault::Ask { node: name("a"), request });
    await_that(&mut world, "that is refused", |seen| {
        seen.replies.iter().any(|(_, answer)| matches!(answer, RequestAnswer::NotPlaced(_)))
    });
    assert_settled(&mut world);
    assert!(runs(&world.observe(), "web", "c"));
}

#[test]
fn an_app_of_one_node_is_moved_as_a_whole() {
    let plan = AppPlan { distribution: Distribution::OneNode, ..AppPlan::new(name("shop")) };
    let scenario = Scenario::of("a b").app_of(plan).job("db", 1, 40).job("web", 2, 40);
    let mut world = FleetWorld::new(scenario, quiet());
    let both = |node: &'static str| {
        move |seen: &Observation| runs(seen, "db", node) && runs(seen, "web", node)
    };
    await_that(&mut world, "it runs", |seen| both("a")(seen) && is_in_operation(seen));
    let request = FleetRequest::MoveApp { app: name("shop"), to: name("b") };
    world.inflict(Fault::Ask { node: name("b"), request });
    await_that(&mut world, "it runs there", both("b"));
    assert_settled(&mut world);
}

#[test]
fn what_runs_on_a_drained_node_goes_elsewhere_and_nothing_comes_back() {
    let mut world = shop(OnFailure::RestartProcess);
    await_that(&mut world, "it runs", |seen| runs(seen, "db", "a") && is_in_operation(seen));
    let drain = |on| FleetRequest::Drain { node: name("a"), on };
    world.inflict(Fault::Ask { node: name("b"), request: drain(true) });
    await_that(&mut world, "db runs elsewhere", |seen| runs(seen, "db", "c"));
    // It is kept over boots.
    world.inflict(Fault::Crash(name("a")));
    world.inflict(Fault::Boot(name("a")));
    await_that(&mut world, "all are back", |seen| seen.nodes.len() == 3 && is_in_operation(seen));
    world.inflict(Fault::Crash(name("c")));
    let end = world.now() + Duration::from_secs(10);
    world.run_until(end);
    assert!(!runs(&world.observe(), "db", "a"), "{}", world.trace);
    world.inflict(Fault::Ask { node: name("b"), request: drain(false) });
    await_that(&mut world, "it has a home again", |seen| runs(seen, "db", "a"));
    world.inflict(Fault::Boot(name("c")));
    assert_settled(&mut world);
}

#[test]
fn what_has_no_other_home_stays_on_a_drained_node_and_is_named() {
    let scenario = Scenario::of("a b").app("shop", OnFailure::Continue).job("db", 1, 60);
    let only_a = Place {
        nodes: NodePattern::new("a").into_iter().collect(),
        start_sequence: 1,
        ..Place::default()
    };
    let mut world = FleetWorld::new(scenario.job_of("pinned", 10, only_a), quiet());
    await_that(&mut world, "it runs", |seen| runs(seen, "pinned", "a") && is_in_operation(seen));
    let request = FleetRequest::Drain { node: name("a"), on: true };
    world.inflict(Fault::Ask { node: name("b"), request });
    await_that(&mut world, "db is moved", |seen| runs(seen, "db", "b"));
    let seen = world.observe();
    assert!(runs(&seen, "pinned", "a"), "{}", world.trace);
    let stays = RequestAnswer::Stays { jobs: vec![name("pinned")] };
    assert!(seen.replies.iter().any(|(_, answer)| *answer == stays), "{:?}", seen.replies);
    assert_settled(&mut world);
}
