//! The hazards of the original, one test each: what went wrong there goes right here.

use crate::shop::{
    ask, assert_settled, await_that, is_in, is_in_operation, is_up, master, pass, quiet, runs,
    runs_nowhere, scenario, world as shop,
};
use mainstay_core::{
    fleet::{Conciliation, FleetRequest, FleetStage},
    plan::{AppPlan, Distribution, OnFailure, Place},
};
use mainstay_sim::fleet::{
    Fault, FleetWorld,
    scenario::{Scenario, name},
};
use std::time::Duration;

/// The failures of a lost master are answered by the next one.
#[test]
fn hazard_1_what_a_lost_master_ran_is_answered_by_the_next() {
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

/// Also when another node joins in the same moment.
#[test]
fn hazard_1_a_loss_is_answered_while_somebody_joins() {
    let mut world = shop(OnFailure::RestartProcess);
    await_that(&mut world, "it runs", is_up);
    world.inflict(Fault::Crash(name("c")));
    pass(&mut world, 5);
    world.inflict(Fault::Crash(name("b")));
    // So that it is met when b is given up.
    let end = world.now() + Duration::from_millis(1_400);
    world.run_until(end);
    world.inflict(Fault::Boot(name("c")));
    let took = await_that(&mut world, "web runs elsewhere", |seen| runs(seen, "web", "c"));
    assert!(took < Duration::from_secs(2), "{took:?}");
    world.inflict(Fault::Boot(name("b")));
    assert_settled(&mut world);
}

/// Losses and joins are answered while a conflict waits for a user.
#[test]
fn hazard_2_a_conflict_that_waits_for_a_user_holds_up_no_failover() {
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

/// Nor does the loss of the master leave the fleet there.
#[test]
fn hazard_2_a_fleet_without_its_master_leaves_conciliation() {
    let mut scenario = scenario(OnFailure::RestartProcess);
    scenario.rules.conciliation = Conciliation::User;
    let mut world = FleetWorld::new(scenario, quiet());
    await_that(&mut world, "it runs", is_up);
    world.inflict(Fault::StartHere { job: name("web"), node: name("c") });
    await_that(&mut world, "CONCILIATION", |seen| is_in(seen, FleetStage::Conciliation));
    world.inflict(Fault::Crash(name("a")));
    await_that(&mut world, "another master", |seen| master(seen) == ["b"]);
    let rule = Conciliation::Infanticide;
    ask(&mut world, "c", FleetRequest::Conciliate { job: Some(name("web")), rule });
    await_that(&mut world, "OPERATION", |seen| {
        is_in_operation(seen) && seen.homes(&name("web")).count() == 1
    });
    world.inflict(Fault::Boot(name("a")));
    assert_settled(&mut world);
}

/// A node that joins cancels nothing that is under way.
#[test]
fn hazard_3_a_joiner_cancels_no_start() {
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

/// A follower needs not see its master deploy: with nothing to start that is very short.
#[test]
fn hazard_4_nobody_waits_for_a_deployment_of_nothing() {
    let mut world = FleetWorld::new(Scenario::of("a b c"), quiet());
    let took = await_that(&mut world, "OPERATION", is_in_operation);
    assert!(took < Duration::from_secs(2), "{took:?}");
    world.inflict(Fault::Crash(name("a")));
    await_that(&mut world, "another master", |seen| master(seen) == ["b"] && is_in_operation(seen));
    world.inflict(Fault::Boot(name("a")));
    await_that(&mut world, "all are there", |seen| seen.nodes.len() == 3 && is_in_operation(seen));
    assert_settled(&mut world);
}

/// Every `on_failure` answers the loss of a node, and not only a crash.
#[test]
fn hazard_5_what_is_to_follow_a_crash_follows_a_loss_as_well() {
    for crash in [false, true] {
        let mut world = shop(OnFailure::StopApp);
        await_that(&mut world, "it runs", is_up);
        let fault = if crash { Fault::JobCrash(name("web")) } else { Fault::Crash(name("b")) };
        world.inflict(fault);
        await_that(&mut world, "the app is down", |seen| runs_nowhere(seen, "db"));
        world.inflict(Fault::Boot(name("b")));
        assert_settled(&mut world);
        assert!(runs_nowhere(&world.observe(), "db"), "{}", world.trace);
        let mut world = shop(OnFailure::RestartApp);
        await_that(&mut world, "it runs", is_up);
        let fault = if crash { Fault::JobCrash(name("web")) } else { Fault::Crash(name("b")) };
        world.inflict(fault);
        await_that(&mut world, "the app goes down", |seen| !runs(seen, "db", "a"));
        await_that(&mut world, "it is up again", |seen| {
            runs(seen, "db", "a") && seen.homes(&name("web")).count() == 1
        });
        world.inflict(Fault::Boot(name("b")));
        assert_settled(&mut world);
    }
}

/// Hazard 6: `continue` is respected; the job waits for its node, and comes back with it.
#[test]
fn hazard_6_a_repair_starts_nothing_that_was_to_be_left() {
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

/// An app that always crashes is restarted five times, and rests.
#[test]
fn hazard_7_an_app_that_always_crashes_rests_in_the_end() {
    let mut world = shop(OnFailure::RestartApp);
    await_that(&mut world, "it runs", |seen| runs(seen, "web", "b") && is_in_operation(seen));
    for _ in 0..6 {
        world.inflict(Fault::JobCrash(name("db")));
        pass(&mut world, 12);
    }
    assert_eq!(world.observe().homes(&name("db")).count(), 0, "{}", world.trace);
    assert_eq!(world.observe().homes(&name("web")).count(), 0, "{}", world.trace);
}

/// Arguments go along when a job fails over, also to a master that has joined late.
#[test]
fn hazard_8_arguments_go_along() {
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

/// What an app of one machine has been given so far counts for its next job.
#[test]
fn hazard_9_jobs_that_stay_together_count_each_others_load() {
    let plan = AppPlan { distribution: Distribution::OneMachine, ..AppPlan::new(name("shop")) };
    let mut scenario = Scenario::of("a b c d").app_of(plan);
    scenario.machines = ["a", "b"].map(|node| (name(node), "m1".to_owned())).into();
    scenario.machines.extend(["c", "d"].map(|node| (name(node), "m2".to_owned())));
    for job in ["one", "two", "three"] {
        scenario = scenario.job(job, 1, 45);
    }
    let mut world = FleetWorld::new(scenario.clone(), quiet());
    await_that(&mut world, "OPERATION", is_in_operation);
    let placed = |world: &FleetWorld| {
        let seen = world.observe();
        ["one", "two", "three"].iter().filter(|job| !runs_nowhere(&seen, job)).count()
    };
    assert_eq!(placed(&world), 0, "there is no machine for all of it\n{}", world.trace);
    for job in ["one", "two", "three"] {
        scenario = scenario.job(job, 1, 30);
    }
    let mut world = FleetWorld::new(scenario, quiet());
    await_that(&mut world, "OPERATION", is_in_operation);
    assert_eq!(placed(&world), 3, "{}", world.trace);
    assert_settled(&mut world);
}

/// Two requests at two nodes at once overload no machine.
#[test]
fn hazard_10_concurrent_requests_share_the_loads() {
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

/// A job that is to exit and does not holds its app up for `wait_timeout` and no longer.
#[test]
fn hazard_11_a_job_that_never_exits_does_not_block_the_starter() {
    let setup =
        Place { wait_exit: true, wait_timeout: Duration::from_millis(200), ..Place::default() };
    let scenario = Scenario::of("a b c")
        .app("shop", OnFailure::Continue)
        .job_of("setup", 10, setup)
        .job("web", 2, 10);
    let mut world = FleetWorld::new(scenario, quiet());
    let took = await_that(&mut world, "the next sequence", |seen| runs(seen, "web", "a"));
    assert!(took < Duration::from_secs(3), "{took:?}");
}

/// A node that stands still is given up like one that is gone; when it goes on, one copy stays.
#[test]
fn hazard_12_a_frozen_node_is_seen() {
    let mut world = shop(OnFailure::RestartProcess);
    await_that(&mut world, "it runs", is_up);
    world.inflict(Fault::Freeze(name("b")));
    let took = await_that(&mut world, "web runs elsewhere", |seen| runs(seen, "web", "c"));
    assert!(took < Duration::from_millis(2_700), "{took:?}");
    world.inflict(Fault::Thaw(name("b")));
    await_that(&mut world, "one copy", |seen| seen.homes(&name("web")).count() == 1);
    assert_settled(&mut world);
}

/// A lost master is isolated like anybody, over its reboot, until it is readmitted.
#[test]
fn hazard_13_a_lost_master_is_fenced() {
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
