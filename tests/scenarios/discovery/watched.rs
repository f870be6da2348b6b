//! Watches: what changes at others starts, stops and informs jobs.

use super::{start, watch, with_consul};
use mainstay_tests::{Consul, Setup, until};
use serde_json::Value;
use std::fs;

/// The lines that a job has written into a file of its own, once the last is as wanted.
fn until_last(path: &std::path::Path, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    until("the last line is as wanted", || {
        let text = fs::read_to_string(path).ok()?;
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.last().is_some_and(|line| wanted(line)).then_some(lines)
    })
}

#[test]
fn a_watch_says_changed_healthy_and_unhealthy_and_hands_the_list_over() {
    let consul = Consul::new();
    let node = start(
        &consul,
        r#"
        [watches.cache]
        service = "redis"
        [jobs.render]
        exec = ["sh", "-c", "cmp -s $MAINSTAY_WATCH_CACHE_FILE - <<X && echo \"$MAINSTAY_WATCH_CACHE\" >> rendered\n$MAINSTAY_WATCH_CACHE\nX"]
        when = { source = "watch.cache", each = "changed" }
        [jobs.app]
        exec = ["sleep", "1000"]
        when = { source = "watch.cache", once = "healthy" }
        [jobs.follower]
        exec = ["sleep", "1000"]
        while = { source = "watch.cache" }
        [jobs.alarm]
        exec = ["sh", "-c", "echo alarm >> alarms"]
        when = { source = "watch.cache", each = "unhealthy" }
        "#,
    );
    let mut events = node.events();
    assert_eq!(node.job("app")["waiting"][0]["source"], "watch.cache");
    until("asked", || (watch(&node, "cache")["state"] == "unhealthy").then_some(()));

    consul.register("r1", "redis", 6379, &["a"]);
    assert_eq!(events.wait_for("watch.cache", "changed")["detail"]["instances"], 1);
    events.wait_for("watch.cache", "healthy");
    node.running("app");
    node.running("follower");
    let lines = until_last(&node.path().join("rendered"), |line| line.contains("6379"));
    let list: Value = serde_json::from_str(lines.last().expect("one")).expect("JSON");
    assert_eq!((&list[0]["id"], &list[0]["tags"][0]), (&"r1".into(), &"a".into()));

    consul.register("r2", "redis", 6380, &[]);
    until_last(&node.path().join("rendered"), |line| {
        line.contains("6379") && line.contains("6380")
    });
    consul.deregister("r1");
    consul.deregister("r2");
    events.wait_for("watch.cache", "unhealthy");
    until_last(&node.path().join("alarms"), |line| line == "alarm");
    node.until_state("follower", "STOPPED");
    node.running("app");
    until_last(&node.path().join("rendered"), |line| line == "[]");
    consul.register("r3", "redis", 6381, &[]);
    node.running("follower");
}

#[test]
fn two_watches_of_one_service_by_tag_and_one_of_an_unknown_data_centre_do_not_disturb_each_other() {
    let consul = Consul::new();
    let node = start(
        &consul,
        r#"
        [watches.blue]
        service = "web"
        tag = "blue"
        [watches.green]
        service = "web"
        tag = "green"
        [watches.elsewhere]
        service = "web"
        dc = "nowhere"
        [jobs.x]
        exec = ["sleep", "1000"]
        "#,
    );
    consul.register("b", "web", 1, &["blue"]);
    until("blue", || (watch(&node, "blue")["instances"] == 1).then_some(()));
    until("green is answered", || (watch(&node, "green")["state"] == "unhealthy").then_some(()));
    until("told", || watch(&node, "elsewhere")["trouble"].as_str().map(str::to_owned));
    assert_eq!(watch(&node, "elsewhere")["state"], "unknown");
    consul.register("g", "web", 2, &["green"]);
    until("green", || (watch(&node, "green")["instances"] == 1).then_some(()));
    assert_eq!(watch(&node, "blue")["instances"], 1);
}

#[test]
fn a_list_that_changes_a_hundred_times_a_second_is_debounced_and_its_last_state_told() {
    let consul = Consul::new();
    let node = start(
        &consul,
        r#"
        [watches.busy]
        debounce = "500ms"
        [jobs.render]
        exec = ["sh", "-c", "echo \"$MAINSTAY_WATCH_BUSY\" >> rendered"]
        when = { source = "watch.busy", each = "changed" }
        "#,
    );
    until("asked", || (watch(&node, "busy")["state"] == "unhealthy").then_some(()));
    let mut last = 0;
    let begun = std::time::Instant::now();
    while begun.elapsed() < std::time::Duration::from_secs(3) {
        last += 1;
        consul.register("one", "busy", last, &[]);
    }
    assert!(last > 100, "only {last} changes");
    let lines =
        until_last(&node.path().join("rendered"), |line| line.contains(&format!(":{last},")));
    assert!(lines.len() < usize::from(last) / 5, "{} runs for {last} changes", lines.len());
}

#[test]
fn a_restarted_agent_tells_nothing_twice_and_misses_no_change() {
    let consul = Consul::new();
    let node = start(
        &consul,
        r#"
        [watches.cache]
        [jobs.render]
        exec = ["sh", "-c", "echo \"$MAINSTAY_WATCH_CACHE\" >> rendered"]
        when = { source = "watch.cache", each = "changed" }
        "#,
    );
    consul.register("c1", "cache", 1, &[]);
    until_last(&node.path().join("rendered"), |line| line.contains("c1"));
    node.kill_agent();
    consul.register("c2", "cache", 2, &[]);
    let lines = until_last(&node.path().join("rendered"), |line| line.contains("c2"));
    assert_eq!(lines.len(), 2, "{lines:?}");
}

#[test]
fn a_reload_adds_changes_and_removes_watches() {
    let consul = Consul::new();
    let config = |watches: &str| format!("{watches}\n[jobs.x]\nexec = [\"sleep\", \"1000\"]");
    let node = start(&consul, &config(""));
    assert_eq!(node.status()["watches"], Value::Array(Vec::new()));
    consul.register("a", "a", 1, &[]);
    let to = |watches: &str| {
        node.configure(&with_consul(&consul, &config(watches)));
        node.must(&["reload"]);
    };
    to("[watches.w]\nservice = \"a\"");
    until("found", || (watch(&node, "w")["instances"] == 1).then_some(()));
    to("[watches.w]\nservice = \"b\"");
    until("none", || (watch(&node, "w")["instances"] == 0).then_some(()));
    to("");
    assert_eq!(node.status()["watches"], Value::Array(Vec::new()));
}

#[test]
fn a_file_is_watched_without_any_discovery() {
    let node = Setup::config(
        r#"
        [node]
        exit = "never"
        [watches.conf]
        file = "x.conf"
        interval = "1h"
        debounce = 0
        [jobs.render]
        exec = ["sh", "-c", "cat $MAINSTAY_WATCH_CONF_FILE >> seen"]
        when = { source = "watch.conf", each = "changed" }
        [jobs.app]
        exec = ["sleep", "1000"]
        while = { source = "watch.conf" }
        "#,
    )
    .start();
    until("looked", || (watch(&node, "conf")["state"] == "unhealthy").then_some(()));
    let put = |text: &str| {
        fs::write(node.path().join("new"), text).expect("written");
        fs::rename(node.path().join("new"), node.path().join("x.conf")).expect("renamed");
    };
    put("one\n");
    until_last(&node.path().join("seen"), |line| line == "one");
    node.running("app");
    put("two\n");
    until_last(&node.path().join("seen"), |line| line == "two");
    fs::remove_file(node.path().join("x.conf")).expect("removed");
    node.until_state("app", "STOPPED");
}
