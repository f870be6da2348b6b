//! A fleet of twenty.

use super::{TestFleet, bridge, kill, status};
use mainstay_tests::{Node, within};
use std::time::Duration;

/// Longer than usual: sixty processes begin at once.
const PATIENCE: Duration = Duration::from_secs(90);

fn all<'a>(nodes: impl IntoIterator<Item = &'a Node>, what: &str, is: impl Fn(&Node) -> bool) {
    for node in nodes {
        within(PATIENCE, what, || is(node).then_some(()));
    }
}

fn running(node: &Node) -> usize {
    let fleet = status(node);
    let jobs = fleet["jobs"].as_array().expect("a list of jobs");
    jobs.iter().filter(|it| it["copies"][0]["state"] == "RUNNING").count()
}

#[test]
fn twenty_nodes_are_one_fleet_that_loses_its_master_and_a_cable() {
    let network = bridge(20);
    let jobs = "[apps.shop]\non_failure = \"restart-process\"\nstrategy = \"less-loaded\"\n[jobs.web]\nexec = \"sleep 1000\"\n\
                instances = 40\napp = \"shop\"\nplace = { load = 20 }\n";
    let fleet = TestFleet::launch_on(&network, "conciliation = \"infanticide\"", jobs);
    all(&fleet.nodes, "all are one fleet", super::is_whole);
    all(&fleet.nodes, "all jobs run", |it| running(it) == 40);
    kill(&fleet.nodes[0]);
    let others = &fleet.nodes[1..];
    all(others, "the next one is master", |it| status(it)["master"] == "n10");
    all(others, "what it ran runs elsewhere", |it| running(it) == 40);
    network.cut(7);
    let others = others.iter().enumerate().filter(|(at, _)| *at != 5).map(|(_, it)| it);
    all(others, "what n7 ran runs elsewhere", |it| {
        running(it) == 40 && status(it)["jobs"].to_string().matches("\"n7\"").count() == 0
    });
    network.heal(7);
    let rest = &fleet.nodes[1..];
    all(rest, "one copy of each is left", |it| {
        let fleet = status(it);
        let jobs = fleet["jobs"].as_array().expect("a list of jobs");
        let once = jobs.iter().all(|it| super::homes(it) == 1);
        once && fleet["state"] == "OPERATION" && fleet["master"] == "n10"
    });
}
