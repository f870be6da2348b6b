//! What played seeds have found, each in the smallest story that shows it.

use crate::shop::{
    ask, assert_settled, await_that, is_in_operation, is_up, master, pass, quiet, runs,
    runs_nowhere, scenario, world as shop,
};
use mainstay_core::{
    fleet::{CopyState, FleetRequest},
    plan::OnFailure,
};
use mainstay_sim::fleet::{
    Fault, FleetWorld, Observation, Script, Written, invariants,
    scenario::{Scenario, name},
};
use std::time::Duration;

fn is(seen: &Observation, job: &str, node: &str, state: CopyState) -> bool {
    seen.nodes.get(&name(node)).and_then(|it| it.jobs.get(&name(job))) == Some(&state)
}

fn pass_ms(world: &mut FleetWorld, ms: u64) {
    let end = world.now() + Duration::from_millis(ms);
    world.run_until(end);
}

fn reload(job: &str, node: &str, to: Written) -> Fault {
    Fault::Reload { node: name(node), job: name(job), to }
}

/// The node that was to stop it has taken the order, and says nothing of the job any more.
#[test]
fn seed_68582_a_reload_takes_a_job_from_its_node_while_it_stops() {
    let mut world = shop(OnFailure::Continue);
    await_that(&mut world, "it runs", is_up);
    ask(&mut world, "a", FleetRequest::StopJob { job: name("web") });
    await_that(&mut world, "it stops", |seen| is(seen, "web", "b", CopyState::Stopping));
    pass_ms(&mut world, 15);
    world.inflict(reload("web", "b", Written::Not));
    assert_settled(&mut world);
    world.inflict(reload("web", "b", Written::AsElsewhere));
    assert_settled(&mut world);
    assert!(runs_nowhere(&world.observe(), "web"), "{}", world.trace);
}

#[test]
fn a_reload_takes_a_job_from_its_node_while_it_starts() {
    let mut world = shop(OnFailure::Continue);
    await_that(&mut world, "it runs", is_up);
    ask(&mut world, "a", FleetRequest::RestartJob { job: name("web"), args: None });
    await_that(&mut world, "it starts", |seen| is(seen, "web", "b", CopyState::Starting));
    pass_ms(&mut world, 10);
    world.inflict(reload("web", "b", Written::Not));
    await_that(&mut world, "it runs where it is known", |seen| runs(seen, "web", "c"));
    assert_settled(&mut world);
}

/// They wait for the first master together, and no node knows the clock of another.
#[test]
fn seed_3670_requests_that_wait_for_a_master_are_taken_in_the_order_of_asking() {
    let app = || name("shop");
    for stops_last in [false, true] {
        let mut scenario = scenario(OnFailure::Continue);
        scenario.rules.nodes.clear();
        scenario.skew = 100;
        let mut world = FleetWorld::new(scenario, quiet());
        let (stop, start) =
            (FleetRequest::StopApp { app: app() }, FleetRequest::StartApp { app: app() });
        let (first, last) = if stops_last { (start, stop) } else { (stop, start) };
        pass(&mut world, 4);
        ask(&mut world, "c", first);
        pass(&mut world, 5);
        ask(&mut world, "b", last);
        await_that(&mut world, "both are answered", |seen| seen.replies.len() == 2);
        assert_settled(&mut world);
        let seen = world.observe();
        assert_eq!(runs_nowhere(&seen, "db"), stops_last, "{}", world.trace);
    }
}

/// Both core nodes are back, one of them with a new run, before they have heard of the third, which
/// takes part with the run before and has the jobs.
#[test]
fn seed_3014_core_nodes_meet_whoever_is_there_before_they_begin() {
    for (phase, gap) in (0..25).flat_map(|phase| [200, 400].map(|gap| (phase, gap))) {
        let mut scenario = scenario(OnFailure::Continue);
        scenario.rules.core = ["b", "c"].map(name).into();
        let mut world = FleetWorld::new(scenario, quiet());
        await_that(&mut world, "it runs", |seen| is_in_operation(seen) && runs(seen, "db", "a"));
        pass_ms(&mut world, 3_000 + 40 * phase);
        world.inflict(Fault::Reboot(name("b")));
        pass_ms(&mut world, gap);
        world.inflict(Fault::NewAgent(name("c")));
        pass(&mut world, 10);
        let broken = invariants::always(&world.observe());
        assert_eq!(broken, Vec::<String>::new(), "{phase} {gap}\n{}", world.trace);
    }
}

/// The next agent of the master has heard of an order for a node that it has not met yet: that node is
/// slow, and not lost.
#[test]
fn seed_82881_an_agent_that_takes_over_meets_all_before_it_leads() {
    for phase in 0..30 {
        let mut world = shop(OnFailure::Continue);
        await_that(&mut world, "it runs", is_up);
        world.inflict(Fault::Reboot(name("b")));
        pass_ms(&mut world, 900);
        world.inflict(Fault::Slow { node: name("b"), by: 720 });
        pass_ms(&mut world, 700 + 40 * phase);
        world.inflict(Fault::NewAgent(name("a")));
        pass(&mut world, 10);
        let broken = invariants::always(&world.observe());
        assert_eq!(broken, Vec::<String>::new(), "{phase}\n{}", world.trace);
        world.inflict(Fault::Slow { node: name("b"), by: 0 });
        assert_settled(&mut world);
    }
}

/// The shop with other phases of what its nodes do by the clock.
fn shops(count: u64) -> impl Iterator<Item = FleetWorld> {
    (0..count).map(|seed| {
        let mut world = FleetWorld::new(scenario(OnFailure::Continue), Script::quiet(seed));
        await_that(&mut world, "it runs", is_up);
        pass_ms(&mut world, 3_000 + 70 * seed);
        world
    })
}

/// The only node that the next agent of b has met goes again: there are others that it can reach, and
/// a master among them.
#[test]
fn seed_28675_an_agent_that_takes_over_claims_nothing_before_it_has_met_all() {
    for (gap, mut world) in
        [300, 800].into_iter().flat_map(|gap| shops(60).map(move |it| (gap, it)))
    {
        world.inflict(Fault::NewAgent(name("b")));
        pass_ms(&mut world, gap);
        world.inflict(Fault::Shutdown(name("c")));
        pass(&mut world, 5);
        let seen = world.observe();
        assert_eq!(invariants::always(&seen), Vec::<String>::new(), "{}", world.trace);
        assert_eq!(seen.reigns.len(), 1, "{}", world.trace);
    }
}

/// It hears of the end of a fleet that it is not one of, and is still there when that begins again.
#[test]
fn seed_54252_a_fleet_that_was_shut_down_begins_anew_with_one_that_came_late() {
    for mut world in shops(40) {
        world.inflict(Fault::Shutdown(name("c")));
        pass(&mut world, 3);
        world.inflict(Fault::Slow { node: name("b"), by: 300 });
        ask(&mut world, "a", FleetRequest::EndFleet { again: false });
        world.inflict(Fault::Boot(name("c")));
        pass(&mut world, 5);
        for node in ["a", "b", "c"] {
            world.inflict(Fault::Boot(name(node)));
        }
        assert_settled(&mut world);
        assert!(is_up(&world.observe()), "{}", world.trace);
    }
}

/// The others hold it for its run before until then.
#[test]
fn seed_46117_whoever_asks_for_the_end_of_the_fleet_as_it_joins_ends_with_it() {
    for (again, mut world) in
        [false, true].into_iter().flat_map(|again| shops(30).map(move |it| (again, it)))
    {
        world.inflict(Fault::Reboot(name("c")));
        pass_ms(&mut world, 200);
        ask(&mut world, "c", FleetRequest::EndFleet { again });
        pass(&mut world, 10);
        let seen = world.observe();
        assert_eq!(seen.ended_with_fleet.len(), 3, "{}", world.trace);
        assert_eq!(seen.nodes.is_empty(), !again, "{}", world.trace);
        for node in ["a", "b", "c"] {
            world.inflict(Fault::Boot(name(node)));
        }
        assert_settled(&mut world);
        assert_eq!(world.observe().ended_with_fleet.len(), 3, "{}", world.trace);
    }
}

/// Two fleets have fenced each other off, and a node of each takes part with one of the other: the
/// terms of either would go through both.
#[test]
fn seed_400_masters_that_do_not_hear_each_other_do_not_outbid_each_other() {
    let mut scenario = Scenario::of("a b c d").app("shop", OnFailure::Continue).job("db", 1, 60);
    scenario.rules.auto_fence = true;
    let mut world = FleetWorld::new(scenario, quiet());
    let cut = |one: &[&str], other: &str| Fault::Cut {
        one: one.iter().map(|node| name(node)).collect(),
        other: vec![name(other)],
        one_way: false,
    };
    await_that(&mut world, "it runs", is_in_operation);
    // Whoever is ended on purpose is not fenced off.
    world.inflict(Fault::Shutdown(name("c")));
    pass(&mut world, 2);
    world.inflict(cut(&["a", "b"], "d"));
    pass(&mut world, 4);
    world.inflict(Fault::Shutdown(name("b")));
    world.inflict(Fault::Heal);
    world.inflict(Fault::Boot(name("c")));
    pass(&mut world, 4);
    world.inflict(cut(&["a"], "c"));
    pass(&mut world, 4);
    world.inflict(Fault::Heal);
    world.inflict(Fault::Boot(name("b")));
    pass(&mut world, 10);
    let seen = world.observe();
    assert_eq!(master(&seen), ["a", "d"], "{}", world.trace);
    assert!(seen.reigns.len() < 12, "{}", world.trace);
}

/// Its order has reached the node, and nobody has heard of that when it is to be stopped there.
#[test]
fn seed_77076_a_job_starts_elsewhere_only_once_a_start_that_is_under_way_is_taken_back() {
    let mut world = shop(OnFailure::Continue);
    await_that(&mut world, "it runs", is_up);
    let app = || name("shop");
    ask(&mut world, "a", FleetRequest::StopApp { app: app() });
    ask(&mut world, "a", FleetRequest::Drain { node: name("a"), on: true });
    pass(&mut world, 3);
    ask(&mut world, "a", FleetRequest::StartApp { app: app() });
    ask(&mut world, "a", FleetRequest::Drain { node: name("b"), on: true });
    ask(&mut world, "a", FleetRequest::RestartApp { app: app(), wave: None });
    await_that(&mut world, "it runs elsewhere", |seen| runs(seen, "db", "c"));
    assert_settled(&mut world);
}

/// The stop is done, and what runs there now is somebody else's.
#[test]
fn seed_10862_what_is_started_by_hand_while_it_stops_ends_the_stop() {
    let mut world = shop(OnFailure::Continue);
    await_that(&mut world, "it runs", is_up);
    ask(&mut world, "a", FleetRequest::StopJob { job: name("web") });
    await_that(&mut world, "it stops", |seen| is(seen, "web", "b", CopyState::Stopping));
    world.inflict(Fault::StartHere { job: name("web"), node: name("b") });
    assert_settled(&mut world);
    assert!(runs(&world.observe(), "web", "b"), "{}", world.trace);
}

/// A node that is away is asked to start the app: that says nothing of the arguments that a user has
/// given meanwhile.
#[test]
fn seed_7920_arguments_outlive_a_start_on_the_other_side_of_a_cut() {
    let mut world = shop(OnFailure::RestartProcess);
    await_that(&mut world, "it runs", is_up);
    let (one, other) = (vec![name("a"), name("b")], vec![name("c")]);
    world.inflict(Fault::Cut { one, other, one_way: false });
    pass(&mut world, 5);
    let args = Some(vec!["-v".to_owned()]);
    ask(&mut world, "a", FleetRequest::RestartJob { job: name("web"), args });
    ask(&mut world, "c", FleetRequest::StartApp { app: name("shop") });
    pass(&mut world, 5);
    // The other copy is gone before the cut heals.
    world.inflict(Fault::Reboot(name("c")));
    world.inflict(Fault::Heal);
    assert_settled(&mut world);
    let seen = world.observe();
    assert!(runs(&seen, "web", "b"), "{}", world.trace);
    assert_eq!(seen.nodes[&name("b")].args[&name("web")], ["-v"]);
}

fn args<'a>(seen: &'a Observation, job: &str, node: &str) -> &'a [String] {
    &seen.nodes[&name(node)].args[&name(job)]
}

fn restart_with_args(job: &str) -> FleetRequest {
    FleetRequest::RestartJob { job: name(job), args: Some(vec!["-v".to_owned()]) }
}

fn cut(one: &str, other: &[&str]) -> Fault {
    let other = other.iter().map(|node| name(node)).collect();
    Fault::Cut { one: vec![name(one)], other, one_way: false }
}

/// A master that is cut off is asked for it, and has no room for the job: that runs on the other side.
#[test]
fn seed_33163_what_a_cut_has_kept_from_its_arguments_gets_them_when_it_heals() {
    let mut world = shop(OnFailure::Continue);
    await_that(&mut world, "it runs", is_up);
    world.inflict(cut("a", &["b", "c"]));
    pass(&mut world, 5);
    ask(&mut world, "a", restart_with_args("web"));
    pass(&mut world, 5);
    world.inflict(Fault::Heal);
    assert_settled(&mut world);
    let seen = world.observe();
    assert!(is_up(&seen), "{}", world.trace);
    assert_eq!(args(&seen, "web", "b"), ["-v"], "{}", world.trace);
}

/// A node that has lost its disk starts the job before it meets those who know its arguments.
#[test]
fn seed_6197_what_was_started_by_one_that_knew_no_arguments_gets_them() {
    let mut world = shop(OnFailure::Continue);
    await_that(&mut world, "it runs", is_up);
    ask(&mut world, "a", restart_with_args("db"));
    pass(&mut world, 5);
    ask(&mut world, "a", FleetRequest::EndFleet { again: false });
    pass(&mut world, 5);
    world.inflict(Fault::Tear(name("c")));
    world.inflict(Fault::Boot(name("c")));
    await_that(&mut world, "it runs there", |seen| runs(seen, "db", "c"));
    assert_eq!(args(&world.observe(), "db", "c"), [""; 0]);
    world.inflict(Fault::Boot(name("a")));
    world.inflict(Fault::Boot(name("b")));
    assert_settled(&mut world);
    let seen = world.observe();
    assert!(runs(&seen, "db", "c"), "{}", world.trace);
    assert_eq!(args(&seen, "db", "c"), ["-v"], "{}", world.trace);
}

/// Nobody stops it for its arguments if it could not start again.
#[test]
fn seed_11812_what_could_not_start_where_it_runs_goes_on_without_its_arguments() {
    let shop = Scenario::of("a b").app("shop", OnFailure::Continue);
    let mut world = FleetWorld::new(shop.job("db", 1, 60).job("web", 2, 60), quiet());
    await_that(&mut world, "it runs", is_up);
    ask(&mut world, "a", FleetRequest::Drain { node: name("b"), on: true });
    pass(&mut world, 3);
    world.inflict(cut("a", &["b"]));
    pass(&mut world, 5);
    ask(&mut world, "a", restart_with_args("web"));
    pass(&mut world, 5);
    world.inflict(Fault::Heal);
    pass(&mut world, 20);
    let seen = world.observe();
    assert!(is_up(&seen), "{}", world.trace);
    assert_eq!(args(&seen, "web", "b"), [""; 0], "{}", world.trace);
    ask(&mut world, "a", FleetRequest::Drain { node: name("b"), on: false });
    assert_settled(&mut world);
    let seen = world.observe();
    assert!(is_up(&seen), "{}", world.trace);
    assert_eq!(args(&seen, "web", "b"), ["-v"], "{}", world.trace);
}

/// So many milliseconds after nodes that were switched on at first have said that they are there.
fn await_phase(world: &mut FleetWorld, ms: u64) {
    let now = u64::try_from(world.now().as_millis()).unwrap_or(0);
    world.run_until(Duration::from_millis((now / 400 + 1) * 400 + ms));
}

/// The master gives the job back to the node that it waits for, and ends. The next one has not met that
/// node yet, which has taken the order.
#[test]
fn seed_55185_a_new_master_meets_those_that_the_last_one_has_met() {
    for gap in (0..80).step_by(5) {
        let shop = Scenario::of("a b c d").app("shop", OnFailure::Continue);
        let shop = shop.job("db", 1, 60).job("mail", 1, 60).job("web", 2, 60);
        let mut world = FleetWorld::new(shop, quiet());
        let is_up = |seen: &Observation| is_in_operation(seen) && runs(seen, "web", "c");
        await_that(&mut world, "it runs", is_up);
        // From here on b says that it is there at another time than a.
        await_phase(&mut world, 300);
        world.inflict(Fault::Reboot(name("b")));
        pass(&mut world, 5);
        world.inflict(Fault::Crash(name("c")));
        pass(&mut world, 3);
        await_phase(&mut world, 310);
        world.inflict(Fault::Boot(name("c")));
        pass_ms(&mut world, gap);
        world.inflict(Fault::Shutdown(name("a")));
        await_that(&mut world, "it runs there again", |seen| runs(seen, "web", "c"));
        pass(&mut world, 5);
        let seen = world.observe();
        assert_eq!(invariants::always(&seen), Vec::<String>::new(), "{gap}\n{}", world.trace);
        world.inflict(Fault::Boot(name("a")));
        assert_settled(&mut world);
        assert!(is_up(&world.observe()), "{gap}\n{}", world.trace);
    }
}

/// It was there when another one joined, and about to go.
#[test]
fn seed_55185_what_a_node_runs_that_ends_waits_for_it_whoever_joins_meanwhile() {
    for gap in (0..120).step_by(5) {
        let mut world = shop(OnFailure::Continue);
        await_that(&mut world, "it runs", is_up);
        world.inflict(Fault::Shutdown(name("c")));
        pass(&mut world, 3);
        await_phase(&mut world, 300);
        world.inflict(Fault::Boot(name("c")));
        pass_ms(&mut world, gap);
        world.inflict(Fault::Shutdown(name("b")));
        pass(&mut world, 5);
        assert!(runs_nowhere(&world.observe(), "web"), "{gap}\n{}", world.trace);
        world.inflict(Fault::Boot(name("b")));
        assert_settled(&mut world);
        assert!(is_up(&world.observe()), "{gap}\n{}", world.trace);
    }
}

/// It has no sequence, and no room on that side. Here somebody had started it by hand, and a reload has
/// ended that.
#[test]
fn seed_91966_what_a_user_wants_beyond_a_cut_beside_its_app_starts_when_it_heals() {
    let shop = Scenario::of("a b").app("shop", OnFailure::Continue);
    let shop = shop.job("db", 1, 30).job("web", 2, 80).job("spare", 0, 40);
    let mut world = FleetWorld::new(shop, quiet());
    await_that(&mut world, "it runs", is_up);
    world.inflict(Fault::StartHere { job: name("spare"), node: name("a") });
    pass(&mut world, 3);
    world.inflict(reload("spare", "a", Written::Not));
    pass(&mut world, 3);
    world.inflict(reload("spare", "a", Written::AsElsewhere));
    world.inflict(cut("a", &["b"]));
    pass(&mut world, 5);
    ask(&mut world, "b", FleetRequest::StartJob { job: name("spare"), args: None });
    pass(&mut world, 5);
    assert!(runs_nowhere(&world.observe(), "spare"), "{}", world.trace);
    world.inflict(Fault::Heal);
    assert_settled(&mut world);
    assert!(runs(&world.observe(), "spare", "a"), "{}", world.trace);
}
