//! Configuration that is rolled out: a file changes, and what is made of it with it.

mod checked;
mod crash;
mod ends;
mod limits;
mod reloaded;
mod secrets;
mod starts;
mod told;
mod units;
mod web;

use mainstay_tests::{Node, RolledOut, put_profile, until};
use serde_json::{Value, json};
use std::{fs, path::Path};

const CHECK: &str = r#"check = ["sh", "-c", "! grep -q unfit {{ staged }}"]"#;
const TEMPLATE: &str = "port = {{ app.port }}\nname = {{ app.name }}\n";
const WEB: &str = r#"
    [services.web]
    job = "web"
    templates = ["conf"]
    reload_timeout = "10s"
    bake_time = "300ms"
    [jobs.web]
    exec = ["sh", "-c", "cp out/web.conf had.$$; grep -q broken out/web.conf && exit 3; echo >&3; exec sleep 1000"]
    health = { fd = 3 }
    when = { source = "template.conf", once = "healthy" }
"#;

/// The usual configuration, with this template and a first version.
fn usual(template: &str) -> RolledOut {
    let usual = RolledOut::new().template("conf", "web.conf", template, CHECK).with(WEB);
    usual.serving(&json!({ "port": 80, "name": "one" }))
}

/// A node with a first version in place.
fn rolled_out() -> Node {
    let node = usual(TEMPLATE).launch();
    node.wait_until_ready();
    node.running("web");
    node
}

/// Another version.
fn put(dir: &Path, port: u16, name: &str) {
    put_profile(dir, &json!({ "port": port, "name": name }));
}

fn rendered(node: &Node) -> String {
    fs::read_to_string(node.path().join("out/web.conf")).unwrap_or_default()
}

fn rollout(node: &Node) -> Value {
    node.status()["rollout"].clone()
}

fn until_rollout(node: &Node, state: &str) -> Value {
    until("the rollout gets there", || {
        let rollout = rollout(node);
        (rollout["state"] == state && rollout["doing"].is_null()).then_some(rollout)
    })
}

#[test]
fn a_file_that_changes_reaches_its_job_which_is_confirmed() {
    let node = rolled_out();
    until_rollout(&node, "running");
    assert_eq!(rendered(&node), "port = 80\nname = one\n");
    let mut events = node.events();
    let before = node.running("web");
    put(node.path(), 81, "two");
    events.wait_for("template.conf", "changed");
    events.wait_for("profile.app", "changed");
    assert_eq!(rendered(&node), "port = 81\nname = two\n");
    let now = node.running("web");
    assert_ne!(now, before, "a job without reload is restarted");
    let had = fs::read_to_string(node.path().join(format!("had.{now}"))).expect("written");
    assert!(had.contains("two"), "{had}");
}

#[test]
fn a_version_that_its_job_cannot_use_comes_back() {
    let node = rolled_out();
    until_rollout(&node, "running");
    let mut events = node.events();
    put(node.path(), 82, "broken");
    let said = events.wait_for("profile.app", "rolledBack");
    assert!(said["detail"]["failure"].as_str().is_some_and(|it| it.contains("'web'")), "{said}");
    let rollout = until_rollout(&node, "pending");
    assert_eq!(rollout["failure"]["profile"], "app", "{rollout}");
    assert_eq!(rendered(&node), "port = 80\nname = one\n");
    node.running("web");
    put(node.path(), 83, "three");
    until_rollout(&node, "running");
    assert_eq!(rendered(&node), "port = 83\nname = three\n");
}

#[test]
fn a_file_that_its_check_refuses_is_not_put_in_place() {
    let node = rolled_out();
    until_rollout(&node, "running");
    let before = node.running("web");
    put(node.path(), 84, "unfit");
    until_rollout(&node, "pending");
    assert_eq!(rendered(&node), "port = 80\nname = one\n");
    assert_eq!(node.running("web"), before, "nobody was told");
}

#[test]
fn an_agent_that_is_killed_goes_on_and_the_set_is_whole() {
    let node = rolled_out();
    until_rollout(&node, "running");
    for version in 90..96 {
        put(node.path(), version, "next");
        // At another moment each time.
        until("it has begun, or is over", || {
            let state = rollout(&node)["state"].clone();
            (state == "updating" || rendered(&node).contains(&version.to_string())).then_some(())
        });
        node.kill_agent();
        until("it is applied", || {
            let there = rendered(&node) == format!("port = {version}\nname = next\n");
            (there && rollout(&node)["state"] == "running").then_some(())
        });
        node.running("web");
    }
}
