//! How a node with a rollout starts and ends: what is in place counts, and who started it hears when
//! that is so.

use super::{put, rendered, rolled_out, rollout, until_rollout};
use mainstay_tests::{Node, Scratch, Setup, signal, until};
use rustix::process::Signal;
use std::{fs, os::unix::net::UnixDatagram, path::Path, time::Duration};

#[test]
fn a_boot_without_its_source_keeps_what_was_applied_and_says_how_old_it_is() {
    let mut node = rolled_out();
    until_rollout(&node, "running");
    signal(node.keeper(), Signal::TERM);
    node.wait();
    fs::remove_file(node.path().join("app.json")).expect("removed");
    node.launch_again();
    node.wait_until_ready();
    node.running("web");
    let rollout = until_rollout(&node, "pending");
    assert_eq!(rendered(&node), "port = 80\nname = one\n");
    let profile = &rollout["profiles"][0];
    assert_eq!(profile["in_place"], true, "{profile}");
    assert!(profile["age"].is_u64() && profile["applied_at"].is_string(), "{profile}");
    assert!(profile["error"].as_str().is_some_and(|it| it.contains("app.json")), "{profile}");
    put(node.path(), 81, "two");
    until_rollout(&node, "running");
    assert_eq!(rendered(&node), "port = 81\nname = two\n");
}

#[test]
fn a_file_that_somebody_else_has_edited_is_not_overwritten() {
    let node = rolled_out();
    until_rollout(&node, "running");
    let before = node.running("web");
    let edited = "port = 80\nname = by hand\n";
    fs::write(node.path().join("out/web.conf"), edited).expect("written");
    put(node.path(), 81, "two");
    let rollout = until_rollout(&node, "pending");
    let failure = rollout["failure"]["failure"].as_str().unwrap_or_default();
    assert!(failure.contains("-name = by hand") && failure.contains("+name = two"), "{failure}");
    assert_eq!(rendered(&node), edited);
    assert_eq!(node.running("web"), before, "nobody was told");
}

/// A node whose service manager is this test.
fn managed(config: &str, prepare: impl FnOnce(&Path)) -> (Node, UnixDatagram) {
    let scratch = Scratch::new();
    let path = scratch.path().join("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a limit");
    prepare(scratch.path());
    let node = Setup::config(config).env("NOTIFY_SOCKET", &path).launch_in(scratch);
    (node, socket)
}

fn hears(socket: &UnixDatagram) -> String {
    let mut words = [0; 4096];
    let length = socket.recv(&mut words).expect("a word in time");
    String::from_utf8_lossy(&words[..length]).into_owned()
}

const ALONE: &str = r#"
    [rollout]
    failure_timeout = "40s"
    [profiles.app]
    source = "file"
    path = "app.json"
    [templates.conf]
    src = "web.conf.j2"
    dst = "web.conf"
    profiles = ["app"]
"#;

fn template(dir: &Path) {
    fs::write(dir.join("web.conf.j2"), "port = {{ app.port }}\n").expect("written");
}

#[test]
fn ready_is_said_when_the_files_are_in_place_and_the_start_takes_longer_until_then() {
    let (node, socket) = managed(ALONE, template);
    let first = loop {
        let words = hears(&socket);
        assert!(!words.contains("READY=1"), "{words}");
        if words.contains("EXTEND_TIMEOUT_USEC=") {
            break words;
        }
    };
    let (_, time) = first.split_once("EXTEND_TIMEOUT_USEC=").expect("it is there");
    let time: u64 = time.lines().next().expect("a line").parse().expect("a number");
    assert!((38_000_000..60_000_000).contains(&time), "{first}");
    until("it is pending", || (rollout(&node)["state"] == "pending").then_some(()));
    put(node.path(), 80, "one");
    while !hears(&socket).contains("READY=1") {}
    assert_eq!(fs::read_to_string(node.path().join("web.conf")).expect("there"), "port = 80\n");
}

#[test]
fn a_node_that_only_rolls_out_ends_with_1_when_that_has_failed() {
    let config = ALONE.replace("40s", "300ms");
    let scratch = Scratch::new();
    template(scratch.path());
    let mut node = Setup::config(config).launch_in(scratch);
    assert_eq!(node.wait().code(), Some(1));
}
