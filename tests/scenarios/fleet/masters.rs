//! The master is lost, in each state that a fleet can be in: the next one goes on.

use super::{TestFleet, bridge, kill, status, until_home};
use mainstay_tests::{Node, until};
use serde_json::Value;
use std::process::{Child, Stdio};

/// An app whose second job waits for a slow first, and whose jobs take their time to end. Neither
/// is on the first node, which is the master.
const SLOW: &str = r#"
[apps.shop]
on_failure = "restart-process"
[jobs.db]
exec = ["sh", "-c", "trap 'sleep 3; exit 0' TERM; while :; do sleep 0.1; done"]
app = "shop"
start_seconds = "3s"
stop = { timeout = "20s" }
place = { nodes = ["n2"], start_sequence = 1 }
[jobs.web]
exec = "sleep 1000"
app = "shop"
place = { nodes = ["n3", "n2"], start_sequence = 2 }
"#;

fn until_state(node: &Node, state: &str) {
    until(&format!("the fleet is in {state}"), || (status(node)["state"] == state).then_some(()));
}

fn until_master(node: &Node, name: &str) {
    until(&format!("{name} is the master"), || (status(node)["master"] == name).then_some(()));
}

/// A command that nobody waits for yet.
fn begin(node: &Node, args: &[&str]) -> Child {
    let mut command = node.command(args);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("the binary can be started")
}

#[test]
fn in_initialization_the_others_go_on_without_it() {
    let network = bridge(3);
    let mut fleet = TestFleet::launch_on(&network, "sync_timeout = \"10s\"", SLOW);
    // One that never comes: the others wait for it.
    drop(fleet.nodes.pop());
    let [first, second] = fleet.nodes.as_slice() else { panic!("two nodes") };
    // It may have been there for a moment, and all in operation with it.
    for node in [first, second] {
        until("its fleet has a state", || status(node)["state"].as_str().map(drop));
    }
    kill(first);
    until_master(second, "n2");
    until_state(second, "OPERATION");
    until_home(second, "web", "n2");
}

#[test]
fn in_deployment_the_next_one_starts_the_rest() {
    let network = bridge(3);
    let fleet = TestFleet::launch_on(&network, "", SLOW);
    let [first, second, third] = fleet.nodes.as_slice() else { panic!("three nodes") };
    until_state(third, "DEPLOYMENT");
    second.until_state("db", "STARTING");
    assert_eq!(third.job("web")["state"], "STOPPED");
    let pid = second.pid("db");
    kill(first);
    until_master(third, "n2");
    until_home(third, "web", "n3");
    assert_eq!(second.pid("db"), pid, "what was in hand goes on");
    assert_eq!(second.job("db")["state"], "RUNNING", "first the one, then the other");
    until_state(third, "OPERATION");
}

#[test]
fn in_conciliation_the_next_one_waits_for_the_user_too() {
    let network = bridge(3);
    let jobs = "[apps.shop]\n[jobs.web]\nexec = \"sleep 1000\"\napp = \"shop\"\n\
                place = { nodes = [\"n2\", \"n3\"] }\n";
    let fleet = TestFleet::launch_on(&network, "conciliation = \"user\"", jobs);
    let [first, second, third] = fleet.nodes.as_slice() else { panic!("three nodes") };
    fleet.until_in_operation();
    until_home(third, "web", "n2");
    third.must(&["start", "web", "--here"]);
    until_state(second, "CONCILIATION");
    kill(first);
    until_master(third, "n2");
    until_state(third, "CONCILIATION");
    assert_eq!(third.ask(&["conflicts"]).status.code(), Some(3));
    third.must(&["conciliate", "senicide", "web"]);
    until_state(third, "OPERATION");
    assert!(third.ask(&["conflicts"]).status.success());
    until_home(third, "web", "n3");
}

#[test]
fn while_the_fleet_restarts_the_next_one_goes_on_with_that() {
    let network = bridge(3);
    let fleet = TestFleet::launch_on(&network, "sync_timeout = \"5s\"", SLOW);
    let [first, second, third] = fleet.nodes.as_slice() else { panic!("three nodes") };
    until_home(third, "web", "n3");
    let run = |node: &Node| -> Value { node.status()["run"].clone() };
    let before = [run(second), run(third)];
    let mut command = begin(third, &["fleet", "restart"]);
    until_state(second, "RESTARTING");
    kill(first);
    for (node, before) in [second, third].into_iter().zip(&before) {
        until("it has a new run", || {
            let answer = node.ask(&["status", "--json"]);
            let status: Value = serde_json::from_slice(&answer.stdout).ok()?;
            status.get("run").filter(|it| it.is_string() && *it != before).map(drop)
        });
    }
    command.wait().expect("our own child");
    until_state(third, "OPERATION");
    until_home(third, "web", "n3");
}

#[test]
fn while_the_fleet_is_shut_down_the_next_one_goes_on_with_that() {
    let network = bridge(3);
    let mut fleet = TestFleet::launch_on(&network, "", SLOW);
    until_home(&fleet.nodes[2], "web", "n3");
    let mut command = begin(&fleet.nodes[2], &["fleet", "shutdown"]);
    until_state(&fleet.nodes[1], "SHUTTING_DOWN");
    kill(&fleet.nodes[0]);
    for node in &mut fleet.nodes[1..] {
        assert_eq!(node.wait().code(), Some(0), "{}", node.stderr());
    }
    command.wait().expect("our own child");
}
