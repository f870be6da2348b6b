//! The end of a node and of a fleet on purpose, and what begins after it.

use super::{SHOP, TestFleet, home, is_whole, shop, status, until_home};
use mainstay_tests::{Node, until};
use serde_json::Value;

fn run(node: &Node) -> Value {
    node.status()["run"].clone()
}

fn is_drained(node: &Node, name: &str) -> bool {
    let fleet = status(node);
    let nodes = fleet["nodes"].as_array().expect("a list of nodes");
    nodes.iter().any(|it| it["name"] == name && it["drained"] == true)
}

#[test]
fn a_fleet_restarts_in_place() {
    let mut fleet = shop();
    fleet.until_in_operation();
    until_home(&fleet.nodes[2], "db", "n1");
    until_home(&fleet.nodes[2], "web", "n2");
    let keepers: Vec<u32> = fleet.nodes.iter().map(Node::keeper).collect();
    let runs: Vec<Value> = fleet.nodes.iter().map(run).collect();
    let pid = fleet.nodes[1].pid("web");
    fleet.nodes[2].must(&["fleet", "restart"]);
    for (node, before) in fleet.nodes.iter().zip(&runs) {
        until("it has a new run", || {
            let answer = node.ask(&["status", "--json"]);
            let status: Value = serde_json::from_slice(&answer.stdout).ok()?;
            // Between two runs the answer is a problem, which names none.
            let run = status.get("run").filter(|run| *run != before)?;
            (run.is_string() && is_whole(node)).then_some(())
        });
    }
    until_home(&fleet.nodes[0], "db", "n1");
    until_home(&fleet.nodes[0], "web", "n2");
    assert_ne!(fleet.nodes[1].pid("web"), pid);
    for node in &fleet.nodes {
        node.running("lone");
    }
    let now: Vec<u32> = fleet.nodes.iter().map(Node::keeper).collect();
    assert_eq!(now, keepers, "each in its own process");
    // What somebody asks for then is done as ever.
    fleet.nodes[0].must(&["fleet", "shutdown"]);
    for node in &mut fleet.nodes {
        assert_eq!(node.wait().code(), Some(0), "{}", node.stderr());
    }
}

#[test]
fn a_node_hands_over_what_it_runs_before_it_ends() {
    let mut fleet = shop();
    fleet.until_in_operation();
    until_home(&fleet.nodes[0], "web", "n2");
    fleet.nodes[1].must(&["shutdown", "--drain"]);
    fleet.nodes[1].wait();
    assert_eq!(home(&fleet.nodes[0], "web").as_deref(), Some("n3"), "it runs elsewhere already");
    fleet.nodes[1].launch_again();
    fleet.nodes[1].wait_until_ready();
    until("n2 is back", || is_whole(&fleet.nodes[0]).then_some(()));
    until("jobs may be placed on it again", || (!is_drained(&fleet.nodes[0], "n2")).then_some(()));
}

#[test]
fn a_node_whose_jobs_have_no_other_home_does_not_end() {
    let fleet = TestFleet::launch(2, SHOP);
    fleet.until_in_operation();
    let [first, second] = fleet.nodes.as_slice() else { panic!("two nodes") };
    until_home(first, "web", "n2");
    let told = second.ask(&["shutdown", "--drain"]);
    assert_eq!(told.status.code(), Some(1));
    let text = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(text.contains("web"), "{text}");
    assert_eq!(home(first, "web").as_deref(), Some("n2"));
    until("it is not drained", || (!is_drained(first, "n2")).then_some(()));
}
