//! The end of a node in the middle of an update: the service that is told is finished if there is
//! time, and the next start goes on.

use super::until_rollout;
use mainstay_tests::{Node, RolledOut, put_profile, signal, until};
use rustix::process::Signal;
use serde_json::json;
use std::{fs, process::Command, thread};

/// Two services whose commands end when somebody opens the gate.
fn gated(stop_timeout: &str) -> Node {
    let gated = RolledOut::new().template("conf", "web.conf", "{{ app.word }}\n", "").with(&format!(
        r#"
        [node]
        stop_timeout = "{stop_timeout}"
        [services.first]
        templates = ["conf"]
        reload = {{ exec = ["sh", "-c", "echo first begins with $(cat out/web.conf) >>told; cat gate; echo first ends >>told"] }}
        [services.second]
        templates = ["conf"]
        reload = {{ exec = ["sh", "-c", "echo second has $(cat out/web.conf) >>told"] }}
        [jobs.other]
        exec = "sleep 1000"
        "#
    ));
    let made = Command::new("mkfifo").arg(gated.path().join("gate")).status();
    assert!(made.expect("mkfifo").success());
    put_profile(gated.path(), &json!({ "word": "one" }));
    let node = gated.launch();
    node.wait_until_ready();
    open_gate(&node);
    until_rollout(&node, "running");
    assert_eq!(told(&node), ["first begins with one", "first ends", "second has one"]);
    fs::remove_file(node.path().join("told")).expect("there");
    put_profile(node.path(), &json!({ "word": "two" }));
    until("it is told", || (told(&node) == ["first begins with two"]).then_some(()));
    node
}

/// Lets one command pass.
fn open_gate(node: &Node) {
    // Returns when somebody has opened it to read.
    fs::write(node.path().join("gate"), "").expect("written");
}

fn told(node: &Node) -> Vec<String> {
    let told = fs::read_to_string(node.path().join("told")).unwrap_or_default();
    told.lines().map(ToOwned::to_owned).collect()
}

#[test]
fn a_service_that_is_told_when_the_node_ends_is_finished_first() {
    let mut node = gated("60s");
    signal(node.keeper(), Signal::TERM);
    until("the node ends", || {
        let status = node.ask(&["status"]);
        let said = String::from_utf8_lossy(&status.stdout).into_owned();
        said.contains("STOPPED").then_some(())
    });
    assert!(node.try_wait().is_none(), "it waits for the service");
    open_gate(&node);
    assert_eq!(node.wait().code(), Some(0));
    assert_eq!(told(&node), ["first begins with two", "first ends"], "and nobody else is told");

    node.launch_again();
    open_gate(&node);
    until_rollout(&node, "running");
    let again = ["first begins with two", "first ends", "second has two"];
    assert_eq!(told(&node)[2..], again, "the next start goes on");
}

#[test]
fn a_job_that_is_told_when_the_node_ends_is_finished_before_it_is_stopped() {
    let gated = RolledOut::new().template("conf", "web.conf", "{{ app.word }}\n", "").with(
        r#"
        [node]
        stop_timeout = "60s"
        [services.web]
        job = "web"
        templates = ["conf"]
        checks = [{ exec = ["sh", "-c", "echo checked >>told"] }]
        bake_time = "200ms"
        [jobs.web]
        exec = ["sh", "-c", "trap 'echo stopped >>told; exit' TERM; while :; do sleep 0.05; done"]
        reload = { exec = ["sh", "-c", "echo reloaded >>told; cat gate"] }
        when = { source = "template.conf", once = "healthy" }
        [jobs.other]
        exec = "sleep 1000"
        "#,
    );
    let made = Command::new("mkfifo").arg(gated.path().join("gate")).status();
    assert!(made.expect("mkfifo").success());
    put_profile(gated.path(), &json!({ "word": "one" }));
    let mut node = gated.launch();
    node.wait_until_ready();
    node.running("web");
    put_profile(node.path(), &json!({ "word": "two" }));
    until("it is told", || (told(&node) == ["reloaded"]).then_some(()));
    signal(node.keeper(), Signal::TERM);
    until("the other one ends", || (node.job("other")["state"] == "STOPPED").then_some(()));
    assert_eq!(node.job("web")["state"], "RUNNING");
    open_gate(&node);
    assert_eq!(node.wait().code(), Some(0));
    let all = told(&node);
    assert_eq!((all[0].as_str(), all.last().map(String::as_str)), ("reloaded", Some("stopped")));
    assert!(all[1..all.len() - 1].iter().all(|it| it == "checked") && all.len() > 2, "{all:?}");
    // It is applied: nobody is told again.
    node.launch_again();
    until_rollout(&node, "running");
    node.running("web");
    assert_eq!(told(&node), all);
}

#[test]
fn a_service_that_takes_longer_than_the_end_of_the_node_is_told_again_by_the_next_start() {
    let mut node = gated("1s");
    signal(node.keeper(), Signal::TERM);
    assert_eq!(node.wait().code(), Some(0));
    assert_eq!(told(&node), ["first begins with two"]);
    node.launch_again();
    let gate = node.path().join("gate");
    // What the end of the node has left of the first one may read as well.
    let opens = thread::spawn(move || fs::write(gate, "").expect("written"));
    until("it is told again", || told(&node).contains(&"second has two".to_owned()).then_some(()));
    opens.join().expect("no panic");
    until_rollout(&node, "running");
    assert_eq!(fs::read_to_string(node.path().join("out/web.conf")).expect("there"), "two\n");
}
