//! Jobs that are told of an update, and what does not count as their answer; and the node, which
//! does not end with a job that an update has killed before its way back.

use super::{TEMPLATE, WEB, put, rendered, rollout, until_rollout};
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

#[test]
fn a_node_does_not_end_with_its_last_job_that_has_died_of_a_new_version() {
    let once = WEB.replace("health = { fd = 3 }", "health = { fd = 3 }\n    restart = \"never\"");
    let once = format!("[node]\nexit = \"all\"\n{once}");
    let web = RolledOut::new().template("conf", "web.conf", TEMPLATE, "").with(&once);
    let mut node = web.serving(&json!({ "port": 80, "name": "one" })).launch();
    node.wait_until_ready();
    let before = node.running("web");
    until_rollout(&node, "running");
    let mut events = node.events();
    put(node.path(), 82, "broken");
    events.wait_for("profile.app", "rolledBack");
    until_rollout(&node, "pending");
    assert_eq!(rendered(&node), "port = 80\nname = one\n");
    assert_ne!(node.running("web"), before);
    // By itself it still is the end of the node.
    mainstay_tests::signal(node.running("web"), rustix::process::Signal::KILL);
    assert_eq!(node.wait().code(), Some(1));
}
