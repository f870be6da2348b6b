//! The terminal that a node was started at: when it is closed, and when that is nobody's end.

use mainstay_tests::{Node, Setup, Terminal, is_alive, needs, signal, until};
use rustix::process::Signal;
use std::fs;

/// Each says when it is told to stop, in which order. `late` must go before `early`.
const ORDERED: &str = r#"
    [node]
    exit = "never"
    [jobs.early]
    exec = ["sh", "-c", "trap 'echo early >>order; exit' TERM; echo up; while :; do sleep 0.05; done"]
    [jobs.late]
    exec = ["sh", "-c", "trap 'sleep 0.3; echo late >>order; exit' TERM; echo up; while :; do sleep 0.05; done"]
    while = { source = "early" }
    [jobs.told]
    exec = ["sh", "-c", "echo SIGHUP >>hups"]
    when = { each = "SIGHUP" }
"#;

/// In a session of its own, whose terminal this is. The tests themselves may run under nohup.
fn at(terminal: &Terminal, setup: Setup) -> Setup {
    needs("setsid");
    let name = terminal.name();
    setup
        .under(&["env", "--default-signal=HUP"])
        .under(&["setsid", "--ctty"])
        .after(&format!("exec <>{name} >&0 2>&0"))
}

fn started(setup: Setup) -> Node {
    let node = setup.start();
    for job in ["early", "late"] {
        node.running(job);
        node.until_logged(job, "up");
    }
    node
}

fn written(node: &Node, name: &str) -> String {
    fs::read_to_string(node.path().join(name)).unwrap_or_default()
}

/// A node that nobody has ended answers, and its jobs have the pids they had.
fn goes_on(node: &Node, pid: u32) {
    // The keeper has gone round since.
    node.must(&["start", "told"]);
    assert_eq!(node.pid("early"), Some(pid));
    assert_eq!(written(node, "order"), "");
}

#[test]
fn closing_the_terminal_of_a_foreground_run_ends_it_in_order() {
    let terminal = Terminal::new();
    let mut node = started(at(&terminal, Setup::config(ORDERED)));
    let pid = node.running("early");
    drop(terminal);
    let code = node.wait().code();
    assert_eq!(written(&node, "order"), "late\nearly\n");
    assert!(!is_alive(pid));
    let own = node.log("mainstay");
    assert!(own.iter().any(|line| line.contains("the terminal is closed")), "{own:#?}");
    assert_eq!(written(&node, "hups"), "", "it is no event");

    // As SIGTERM does.
    let mut node = started(Setup::config(ORDERED));
    signal(node.keeper(), Signal::TERM);
    assert_eq!(node.wait().code(), code);
}

#[test]
fn a_signal_that_somebody_sends_is_an_event_and_no_closed_terminal() {
    let terminal = Terminal::new();
    let mut node = started(at(&terminal, Setup::config(ORDERED)));
    let pid = node.running("early");
    signal(node.keeper(), Signal::HUP);
    until("it is an event", || (written(&node, "hups") == "SIGHUP\n").then_some(()));
    goes_on(&node, pid);
    drop(terminal);
    node.wait();
    assert_eq!(written(&node, "order"), "late\nearly\n");
}

#[test]
fn a_terminal_is_watched_over_an_upgrade_and_without_an_agent() {
    let terminal = Terminal::new();
    let mut node = started(at(&terminal, Setup::config(ORDERED)));
    node.must(&["upgrade"]);
    signal(node.agent(), Signal::STOP);
    drop(terminal);
    node.wait();
    let own = node.log("mainstay");
    assert!(own.iter().any(|line| line.contains("the terminal is closed")), "{own:#?}");
}

#[test]
fn nohup_is_honoured() {
    let terminal = Terminal::new();
    let setup = Setup::config(ORDERED).under(&["nohup"]);
    let node = started(at(&terminal, setup));
    let pid = node.running("early");
    drop(terminal);
    // The kernel tells the session, and the node hears of it at once.
    until("the terminal is gone", || (written(&node, "hups") == "SIGHUP\n").then_some(()));
    goes_on(&node, pid);
}

#[test]
fn a_run_in_the_background_outlives_its_terminal() {
    needs("bash");
    let terminal = Terminal::new();
    // The shell leads the session and waits; with job control its child is in the background.
    let shell = ["bash", "-c", "set -m; trap 'echo >gone' HUP; \"$@\" & wait; wait", "bash"];
    let node = started(at(&terminal, Setup::config(ORDERED).under(&shell)));
    let pid = node.running("early");
    drop(terminal);
    until("the shell is told", || node.path().join("gone").exists().then_some(()));
    goes_on(&node, pid);
}
