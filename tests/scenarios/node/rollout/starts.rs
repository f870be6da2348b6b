//! How a node with a rollout starts and ends: what is in place counts, and who started it hears when
//! that is so.

use super::{put, rendered, rolled_out, rollout, until_rollout};
use mainstay_tests::{Node, RolledOut, signal, until};
use rustix::process::Signal;
use std::{fs, os::unix::net::UnixDatagram, time::Duration};

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
fn managed(rolled_out: RolledOut) -> (Node, UnixDatagram) {
    let path = rolled_out.path().join("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a limit");
    (rolled_out.launch_as(|setup| setup.env("NOTIFY_SOCKET", &path)), socket)
}

fn hears(socket: &UnixDatagram) -> String {
    let mut words = [0; 4096];
    let length = socket.recv(&mut words).expect("a word in time");
    String::from_utf8_lossy(&words[..length]).into_owned()
}

/// Nothing but a template, whose profile is not there yet.
fn alone(failure_timeout: &str) -> RolledOut {
    RolledOut::new()
        .template("conf", "web.conf", "port = {{ app.port }}\n", "")
        .with(&format!("[rollout]\nfailure_timeout = \"{failure_timeout}\""))
}

#[test]
fn ready_is_said_when_the_files_are_in_place_and_the_start_takes_longer_until_then() {
    let (node, socket) = managed(alone("40s"));
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
    assert_eq!(rendered(&node), "port = 80\n");
}

#[test]
fn a_node_that_only_rolls_out_ends_with_1_when_that_has_failed() {
    let mut node = alone("300ms").launch();
    assert_eq!(node.wait().code(), Some(1));
}
