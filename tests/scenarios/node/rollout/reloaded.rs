//! A reload that changes what is rolled out: one more update, answered to whoever reloads.

use super::{put, rendered, rolled_out, rollout, until_rollout};
use mainstay_tests::{Node, until};
use std::fs;

fn edit(node: &Node, from: &str, to: &str) {
    let file = node.path().join("mainstay.toml");
    let config = fs::read_to_string(&file).expect("there");
    assert!(config.contains(from), "{config}");
    fs::write(file, config.replace(from, to)).expect("written");
}

/// Exit code and what was told.
fn reload(node: &Node) -> (Option<i32>, String) {
    let output = node.ask(&["reload"]);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_template_that_a_reload_changes_is_rendered_and_told_before_it_is_answered() {
    let node = rolled_out();
    until_rollout(&node, "running");
    let before = node.running("web");
    fs::write(node.path().join("more.j2"), "more = {{ app.port }}\nname = one\n").expect("written");
    edit(&node, "src = \"web.conf.j2\"", "src = \"more.j2\"");
    let (code, told) = reload(&node);
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(rendered(&node), "more = 80\nname = one\n");
    let now = node.running("web");
    assert_ne!(now, before);
    let had = fs::read_to_string(node.path().join(format!("had.{now}"))).expect("written");
    assert!(had.starts_with("more"), "{had}");
}

#[test]
fn a_template_whose_text_has_changed_is_rendered_by_a_reload() {
    let node = rolled_out();
    until_rollout(&node, "running");
    fs::write(node.path().join("web.conf.j2"), "text = {{ app.port }}\n").expect("written");
    let (code, told) = reload(&node);
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(rendered(&node), "text = 80\n");
    let before = node.running("web");
    assert_eq!(reload(&node).0, Some(0));
    assert_eq!(node.running("web"), before, "the same again");
}

#[test]
fn a_reload_whose_update_fails_says_so_and_what_was_there_is_there_again() {
    let node = rolled_out();
    until_rollout(&node, "running");
    fs::write(node.path().join("bad.j2"), "port = {{ app.port }}\nname = broken\n").expect("ok");
    edit(&node, "src = \"web.conf.j2\"", "src = \"bad.j2\"");
    let (code, told) = reload(&node);
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("service 'web'"), "{told}");
    assert_eq!(rendered(&node), "port = 80\nname = one\n");
    node.running("web");

    fs::write(node.path().join("none.j2"), "{{ app.nothing }}\n").expect("written");
    edit(&node, "src = \"bad.j2\"", "src = \"none.j2\"");
    let before = node.running("web");
    let (code, told) = reload(&node);
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("none.j2:1"), "{told}");
    assert_eq!(node.running("web"), before, "nobody was told");

    edit(&node, "src = \"none.j2\"", "src = \"web.conf.j2\"");
    let (code, told) = reload(&node);
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(rollout(&node)["state"], "running");
    put(node.path(), 81, "two");
    until("it goes on", || (rendered(&node) == "port = 81\nname = two\n").then_some(()));
}

#[test]
fn an_update_that_has_changed_nothing_is_not_said_to_be_rolled_back() {
    let node = rolled_out();
    until_rollout(&node, "running");
    let mut events = node.events();
    put(node.path(), 84, "unfit");
    let said = events.wait_for("profile.app", "updateFailed");
    assert!(said["detail"]["failure"].as_str().is_some_and(|it| it.contains("check")), "{said}");
    put(node.path(), 85, "broken");
    events.wait_for("profile.app", "rolledBack");
    let rolled_back = events.seen().iter().filter(|it| it["event"] == "rolledBack").count();
    assert_eq!(rolled_back, 1);
}

#[test]
fn a_job_that_has_died_of_a_version_and_does_not_restart_is_brought_up_with_the_old_one() {
    let node = rolled_out();
    until_rollout(&node, "running");
    // A node ends with its last job.
    let other = "health = { fd = 3 }\n    restart = \"never\"";
    edit(&node, "health = { fd = 3 }", other);
    edit(&node, "[jobs.web]", "[jobs.other]\n    exec = \"sleep 1000\"\n    [jobs.web]");
    assert_eq!(reload(&node).0, Some(0));
    let before = node.running("web");
    put(node.path(), 82, "broken");
    until_rollout(&node, "pending");
    assert_eq!(rendered(&node), "port = 80\nname = one\n");
    assert_ne!(node.running("web"), before);
}
