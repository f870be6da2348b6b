//! Jobs that are told of an update, and what does not count as their answer.

use super::{TEMPLATE, put, rendered, rollout, until_rollout};
use mainstay_tests::{Node, RolledOut, until};
use serde_json::json;
use std::{fs, process::Command};

/// A job that is reloaded by a command, which reads the file, says so, and ends when somebody opens
/// the gate.
const GATED: &str = r#"
    [services.web]
    job = "web"
    templates = ["conf"]
    reload_timeout = "30s"
    [jobs.web]
    exec = ["sh", "-c", "cp out/web.conf has; echo >&3; exec sleep 1000"]
    health = { fd = 3 }
    reload = { exec = ["sh", "-c", "cp out/web.conf read; echo read $(head -n1 read) >>told; cat gate; mv read has"] }
    when = { source = "template.conf", once = "healthy" }
"#;

fn told(node: &Node) -> Vec<String> {
    let told = fs::read_to_string(node.path().join("told")).unwrap_or_default();
    told.lines().map(ToOwned::to_owned).collect()
}

#[test]
fn a_reload_that_was_begun_before_does_not_confirm_what_has_come_since() {
    let gated = RolledOut::new().template("conf", "web.conf", TEMPLATE, "").with(GATED);
    let made = Command::new("mkfifo").arg(gated.path().join("gate")).status();
    assert!(made.expect("mkfifo").success());
    let node = gated.serving(&json!({ "port": 80, "name": "one" })).launch();
    node.wait_until_ready();
    node.running("web");
    until_rollout(&node, "running");
    // By hand, of the first version; it has read that, and goes on.
    let (dir, gate) = (node.path().to_owned(), node.path().join("gate"));
    let by_hand = node.command(&["reload", "web"]).spawn().expect("it starts");
    until("it has read", || (told(&node) == ["read port = 80"]).then_some(()));
    put(node.path(), 81, "two");
    until("the file is switched", || rendered(&node).contains("two").then_some(()));
    until("the service is told", || (rollout(&node)["subject"] == "web").then_some(()));
    // Each opening is met by one that reads.
    fs::write(&gate, "").expect("written");
    until("it has read again", || {
        (told(&node) == ["read port = 80", "read port = 81"]).then_some(())
    });
    assert_eq!(rollout(&node)["state"], "updating", "the first one has confirmed nothing");
    fs::write(&gate, "").expect("written");
    until_rollout(&node, "running");
    assert_eq!(fs::read_to_string(dir.join("has")).expect("there"), "port = 81\nname = two\n");
    drop(by_hand.wait_with_output());
}
