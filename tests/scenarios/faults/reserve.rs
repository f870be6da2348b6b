//! What is kept in reserve: with every process and descriptor in use a node can still be asked,
//! stopped and killed, and a dead agent comes back.

use super::threads::as_user;
use mainstay_tests::{Node, Setup, is_alive, signal, until, within};
use rustix::process::Signal;
use std::{io::Write, os::unix::net::UnixStream, time::Duration};

const BOMB: &str = r#"
    [node]
    exit = "never"
    stop_timeout = "3s"
    [log]
    forward = false
    [jobs.bomb]
    exec = ["sh", "-c", "while :; do (sleep 1000 &) ; done"]
    [jobs.web]
    exec = "sleep 1000"
"#;

/// Until a start fails for want of a process.
fn until_used_up(node: &Node) {
    until("there are no processes left", || {
        node.ask(&["restart", "web", "--no-wait"]);
        let error = node.job("web")["exit"]["error"].as_str().unwrap_or_default().to_owned();
        error.contains("clone").then_some(())
    });
}

fn killed_and_back(node: &Node) {
    let (agent, restarts) = (node.agent(), node.status()["agent_restarts"].as_u64());
    signal(agent, Signal::KILL);
    until("another agent answers", || {
        (node.status()["agent_restarts"].as_u64() > restarts).then_some(())
    });
    assert_ne!(node.agent(), agent);
}

#[test]
fn a_spare_that_somebody_has_stopped_holds_up_the_next_agent_for_some_seconds_only() {
    let node = Setup::config(TWO).start();
    let web = node.running("web");
    let spare =
        until("it has its spare", || node.processes().into_iter().find(|pid| node.is_spare(*pid)));
    signal(spare, Signal::STOP);
    signal(node.agent(), Signal::KILL);
    within(Duration::from_secs(9), "another agent answers", || {
        node.ask(&["status"]).status.code().filter(|code| *code == 0)
    });
    assert!(!is_alive(spare));
    assert_eq!(node.running("web"), web);
    node.must(&["shutdown"]);
}

#[test]
fn an_agent_killed_while_a_bomb_holds_all_processes_comes_back_and_ends_it() {
    let uid = 64_000 + std::process::id() % 1000;
    let mut node = as_user(Setup::config(BOMB).without_cgroups(), uid, 40);
    node.wait_until_ready();
    until_used_up(&node);
    killed_and_back(&node);
    node.must(&["kill", "bomb"]);
    node.must(&["shutdown"]);
    node.wait();
    node.leaves_nothing();
}

#[test]
fn a_node_with_all_processes_used_up_ends_at_a_signal() {
    let uid = 65_000 + std::process::id() % 500;
    let mut node = as_user(Setup::config(BOMB).without_cgroups(), uid, 40);
    node.wait_until_ready();
    until_used_up(&node);
    signal(node.keeper(), Signal::TERM);
    node.wait();
    node.leaves_nothing();
}

const TWO: &str = r#"
    [node]
    exit = "never"
    [log]
    forward = false
    [jobs.web]
    exec = "sleep 1000"
"#;

#[test]
fn with_32_descriptors_a_killed_agent_comes_back_again_and_again() {
    let node = Setup::config(TWO).after("ulimit -n 32").start();
    node.until_told("only 32 files may be open here");
    // Where the test itself was given descriptors there may be no room for it.
    let web = node.pid("web");
    for _ in 0..3 {
        killed_and_back(&node);
    }
    assert!(web.is_none_or(|web| is_alive(web) && node.pid("web") == Some(web)));
    node.must(&["shutdown"]);
}

/// Follows the events: a client that has asked, and stays.
fn follow(node: &Node) -> UnixStream {
    let mut stream = UnixStream::connect(node.run_dir().join("mainstay.sock")).expect("a socket");
    stream.write_all(b"GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n").expect("it is taken");
    stream
}

#[test]
fn with_all_descriptors_of_the_agent_in_use_it_still_answers() {
    let mut node = Setup::config(TWO).after("ulimit -n 64").start();
    let web = node.running("web");
    let agent = node.agent();
    let followers: Vec<UnixStream> = (0..200).map(|_| follow(&node)).collect();
    for _ in 0..5 {
        assert_eq!(node.ask(&["status"]).status.code(), Some(0));
    }
    node.must(&["stop", "web"]);
    assert!(!is_alive(web));
    node.must(&["start", "web"]);
    node.must(&["kill", "web"]);
    assert_eq!(node.agent(), agent);
    node.must(&["shutdown"]);
    node.wait();
    drop(followers);
}

#[test]
fn with_64_descriptors_a_node_can_be_upgraded() {
    let node = Setup::config(TWO).after("ulimit -n 64").start();
    let web = node.running("web");
    node.must(&["upgrade"]);
    assert_eq!(node.pid("web"), Some(web));
    node.must(&["shutdown"]);
}

#[test]
fn with_32_descriptors_an_upgrade_is_refused_and_a_killed_agent_comes_back() {
    let mut node = Setup::config(TWO).after("ulimit -n 32").start();
    let keeper = node.keeper();
    for _ in 0..2 {
        let refused = node.ask(&["upgrade"]);
        assert!(!refused.status.success(), "{refused:?}");
        assert!(!refused.stderr.is_empty());
        node.kill_agent();
        assert_eq!(node.keeper(), keeper);
    }
    node.must(&["shutdown"]);
    node.wait();
}
