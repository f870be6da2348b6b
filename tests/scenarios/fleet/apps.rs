//! Apps of a fleet: what is wrong with them is told on every node.

use super::TestFleet;
use mainstay_tests::{Node, until};
use serde_json::Value;

const JOBS: &str = r#"
    [apps.shop]
    on_failure = "continue"
    [jobs.db]
    exec = "sleep 1000"
    app = "shop"
    place = { load = 60, required = true }
    [jobs.web]
    exec = "sleep 1000"
    app = "shop"
    place = { load = 60 }
    "#;

fn app(node: &Node) -> Value {
    serde_json::from_str(&node.must(&["app", "status", "shop", "--json"])).expect("JSON")
}

fn until_failure(node: &Node, expected: &str) {
    until(&format!("the failure is {expected}"), || {
        (app(node)["failure"] == expected).then_some(())
    });
}

#[test]
fn what_is_wrong_with_an_app_is_told_on_every_node() {
    let mut fleet = TestFleet::launch(3, JOBS);
    fleet.until_in_operation();
    for node in &fleet.nodes {
        until_failure(node, "none");
        assert_eq!(app(node)["state"], "running");
    }
    // web is lost with its node, and nobody wants it elsewhere: the app can do without.
    fleet.nodes[1].must(&["shutdown"]);
    fleet.nodes[1].wait();
    for node in [&fleet.nodes[0], &fleet.nodes[2]] {
        until_failure(node, "minor");
        let jobs = app(node)["jobs"].clone();
        assert_eq!(jobs[1]["name"], "web");
        assert_eq!(jobs[1]["failure"], "minor");
        assert!(node.must(&["app", "list"]).contains("minor"));
        let why = node.must(&["why", "db"]);
        assert!(why.contains("its app shop has a minor failure: web"), "{why}");
    }
    // The required one goes with the master.
    fleet.nodes[0].must(&["shutdown"]);
    fleet.nodes[0].wait();
    until_failure(&fleet.nodes[2], "major");
}

#[test]
fn a_plan_says_where_each_job_would_go_and_why_not() {
    let jobs = r#"
        [apps.shop]
        start_sequence = 0
        [jobs.db]
        exec = "sleep 1000"
        app = "shop"
        place = { load = 60 }
        [jobs.web]
        exec = "sleep 1000"
        app = "shop"
        place = { load = 60, start_sequence = 2 }
        [jobs.more]
        exec = "sleep 1000"
        app = "shop"
        place = { load = 60, start_sequence = 3 }
        "#;
    let fleet = TestFleet::launch(2, jobs);
    fleet.until_in_operation();
    for node in &fleet.nodes {
        let plan = node.ask(&["app", "start", "shop", "--plan"]);
        assert_eq!(plan.status.code(), Some(1), "one of them has no home");
        let plan = String::from_utf8_lossy(&plan.stdout).into_owned();
        let row = |job: &str| {
            let row = plan.lines().find(|line| line.split_whitespace().nth(1) == Some(job));
            row.unwrap_or_else(|| panic!("{job}: {plan}")).to_owned()
        };
        assert!(row("db").contains("n1"), "{plan}");
        assert!(row("web").contains("n2"), "{plan}");
        assert!(row("more").contains("not placed: n1 is at 60 of 100"), "{plan}");
    }
    assert!(fleet.nodes[0].must(&["app", "list"]).contains("stopped"), "nothing is started");
    // The start itself, asked on the other node.
    fleet.nodes[1].ask(&["app", "start", "shop"]);
    super::until_home(&fleet.nodes[0], "db", "n1");
    super::until_home(&fleet.nodes[0], "web", "n2");
    let none = fleet.nodes[0].ask(&["app", "start", "shpo", "--plan"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&none.stderr).contains("did you mean 'shop'?"));
}
