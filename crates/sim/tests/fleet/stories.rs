//! What a fleet does when one thing happens to it.

use crate::shop::{
    ask, assert_settled, await_that, is_in_operation, is_up, pass, quiet, runs, runs_nowhere,
    world as shop,
};
use mainstay_core::{
    fleet::{FleetRequest, FleetStage, RequestAnswer},
    plan::{AppPlan, Distribution, NodePattern, OnFailure, Place, Spread},
};
use mainstay_sim::fleet::{
    Fault, FleetWorld, Observation, Written,
    scenario::{Scenario, name},
};
use std::time::Duration;

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

/// A start of what runs is answered, and changes nothing: not its arguments either.
#[test]
fn a_start_of_what_runs_changes_no_arguments() {
    let mut world = shop(OnFailure::RestartProcess);
    await_that(&mut world, "it runs", is_up);
    let args = Some(vec!["-v".to_owned()]);
    ask(&mut world, "c", FleetRequest::StartJob { job: name("web"), args });
    await_that(&mut world, "it is answered", |seen| !seen.replies.is_empty());
    world.inflict(Fault::Crash(name("b")));
    await_that(&mut world, "it runs elsewhere", |seen| runs(seen, "web", "c"));
    world.inflict(Fault::Boot(name("b")));
    assert_settled(&mut world);
    assert!(world.observe().nodes[&name("c")].args[&name("web")].is_empty());
}

#[test]
fn a_job_that_a_reload_takes_from_its_node_goes_to_another() {
    let mut world = shop(OnFailure::Continue);
    await_that(&mut world, "it runs", is_up);
    let reload = |node, to| Fault::Reload { node: name(node), job: name("web"), to };
    world.inflict(reload("b", Written::Not));
    await_that(&mut world, "it runs where it is known", |seen| runs(seen, "web", "c"));
    // Where it is written otherwise it goes on, and is not placed there again.
    world.inflict(reload("c", Written::Otherwise));
    assert_settled(&mut world);
    assert!(runs(&world.observe(), "web", "c"), "{}", world.trace);
    world.inflict(Fault::Reboot(name("c")));
    pass(&mut world, 10);
    assert!(runs_nowhere(&world.observe(), "web"), "a is full\n{}", world.trace);
    world.inflict(reload("b", Written::AsElsewhere));
    await_that(&mut world, "it has a home again", |seen| runs(seen, "web", "b"));
}

/// What waits for a home gets it as soon as somebody has room, by whatever cause.
#[test]
fn what_waits_for_a_home_gets_it_when_there_is_room() {
    let scenario = Scenario::of("a b").app("shop", OnFailure::Continue);
    let scenario = scenario.job("db", 1, 60).job("web", 2, 60).job("late", 3, 60);
    let mut world = FleetWorld::new(scenario, quiet());
    await_that(&mut world, "it runs", |seen| is_up(seen) && runs_nowhere(seen, "late"));
    pass(&mut world, 5);
    ask(&mut world, "b", FleetRequest::StopJob { job: name("web") });
    await_that(&mut world, "it has a home", |seen| runs(seen, "late", "b"));
    assert_settled(&mut world);
}
