//! Apps that are restarted in waves, on a node alone and in a fleet.

use super::TestFleet;
use mainstay_tests::{Node, Setup, until};
use serde_json::Value;
use std::fs;

/// `web-1` to `web-3`, each healthy once `ok` is there and dead at once if `broken` is.
fn jobs(dir: &std::path::Path) -> String {
    let dir = dir.display();
    format!(
        r#"
        [apps.shop]
        [jobs.web]
        instances = 3
        exec = ["sh", "-c", "test -e {dir}/broken && exit 1; exec sleep 1000"]
        restart = "never"
        app = "shop"
        health = {{ exec = "test -e {dir}/ok", interval = "100ms" }}
        "#
    )
}

/// Who came to which state, in order.
fn states(node: &Node) -> Vec<(String, String)> {
    let events = node.must(&["events", "--json"]);
    let state = |line: &str| {
        let event: Value = serde_json::from_str(line).ok()?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let known = event["event"] == "state" && text(&event["source"]).starts_with("web-");
        known.then(|| (text(&event["source"]), text(&event["detail"]["to"])))
    };
    events.lines().filter_map(state).collect()
}

#[test]
fn a_restart_in_waves_goes_on_only_with_what_is_healthy() {
    let scratch = mainstay_tests::Scratch::new();
    let ok = scratch.path().join("ok");
    fs::write(&ok, "").expect("a scratch file");
    let node = Setup::config(jobs(scratch.path())).start();
    (1..=3).for_each(|n| drop(node.until_health(&format!("web-{n}"), "healthy")));
    let pids = |node: &Node| [1, 2, 3].map(|n| node.pid(&format!("web-{n}")));
    let before = pids(&node);
    let seen = states(&node).len();
    node.must(&["app", "restart", "shop", "--wave", "1"]);
    let after = pids(&node);
    assert!(before.iter().zip(&after).all(|(before, after)| before != after));
    // One after the other, and none before the last one ran.
    let order: Vec<String> = states(&node)[seen..]
        .iter()
        .filter(|(_, to)| ["STOPPING", "RUNNING"].contains(&to.as_str()))
        .map(|(job, to)| format!("{job} {to}"))
        .collect();
    let expected = [1, 2, 3].map(|n| [format!("web-{n} STOPPING"), format!("web-{n} RUNNING")]);
    assert_eq!(order, expected.concat());

    // The first one never becomes healthy: no other is touched, until it does.
    fs::remove_file(&ok).expect("it is there");
    node.must(&["app", "restart", "shop", "--wave", "1", "--no-wait"]);
    until("web-1 runs again", || node.pid("web-1").filter(|pid| Some(*pid) != after[0]));
    assert_eq!([node.pid("web-2"), node.pid("web-3")], [after[1], after[2]]);
    fs::write(&ok, "").expect("a scratch file");
    until("web-3 runs again", || node.pid("web-3").filter(|pid| Some(*pid) != after[2]));
}

#[test]
fn a_job_that_does_not_come_up_stops_the_waves_and_is_told() {
    let scratch = mainstay_tests::Scratch::new();
    fs::write(scratch.path().join("ok"), "").expect("a scratch file");
    let node = Setup::config(jobs(scratch.path())).start();
    (1..=3).for_each(|n| drop(node.until_health(&format!("web-{n}"), "healthy")));
    let before = [node.pid("web-2"), node.pid("web-3")];
    // Its check would pass before it has died.
    fs::remove_file(scratch.path().join("ok")).expect("it is there");
    fs::write(scratch.path().join("broken"), "").expect("a scratch file");
    let told = node.ask(&["app", "restart", "shop", "--wave", "1"]);
    assert_eq!(told.status.code(), Some(1));
    let text = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(text.contains("web-1"), "{text}");
    let events = node.must(&["events", "--json"]);
    assert!(events.contains("\"wavesStopped\""), "{events}");
    assert_eq!([node.pid("web-2"), node.pid("web-3")], before, "the others go on");
}

#[test]
fn a_fleet_restarts_an_app_in_waves_from_any_node() {
    let scratch = mainstay_tests::Scratch::new();
    fs::write(scratch.path().join("ok"), "").expect("a scratch file");
    let fleet = TestFleet::launch(3, &jobs(scratch.path()));
    fleet.until_in_operation();
    let [first, _, third] = fleet.nodes.as_slice() else { panic!("three nodes") };
    // All of them on the first node: nothing is said of loads.
    (1..=3).for_each(|n| drop(first.until_health(&format!("web-{n}"), "healthy")));
    let seen = states(first).len();
    third.must(&["app", "restart", "shop", "--wave", "2"]);
    let order: Vec<(String, String)> = states(first)[seen..].to_vec();
    let position = |job: &str, to: &str| {
        let at = order.iter().position(|it| *it == (job.to_owned(), to.to_owned()));
        at.unwrap_or_else(|| panic!("{job} {to}: {order:?}"))
    };
    assert!(position("web-2", "STOPPING") < position("web-1", "RUNNING"), "two at a time");
    assert!(position("web-3", "STOPPING") > position("web-1", "RUNNING"));
    assert!(position("web-3", "STOPPING") > position("web-2", "RUNNING"));
    // One that does not come up.
    let before = first.pid("web-3");
    fs::write(scratch.path().join("broken"), "").expect("a scratch file");
    let told = third.ask(&["app", "restart", "shop", "--wave", "1"]);
    assert_eq!(told.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&told.stderr).contains("web-1"), "{told:?}");
    assert_eq!(first.pid("web-3"), before);
    until("the app shows it", || third.must(&["app", "list"]).contains("minor").then_some(()));
}
