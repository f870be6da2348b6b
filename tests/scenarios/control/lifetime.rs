//! One socket for the life of a job: over restarts and BACKOFF, agents and upgrades, until it rests.

use super::{job, node, pid};
use mainstay_tests::{Control, Node, is_alive, signal, until};
use rustix::process::Signal;
use serde_json::Value;

const LONG: &str = "restart = { on = \"any\", delay = \"1h\", max_delay = \"1h\" }";

/// The next state for which this holds.
fn state_where(client: &mut Control, holds: impl Fn(&Value) -> bool) -> Value {
    until("that state is told", || {
        let state = client.next_state().expect("the stream goes on");
        holds(&state).then_some(state)
    })
}

fn is_down(state: &Value) -> bool {
    state["status"] == "DOWN"
}

/// A node whose job has ended by itself and will be restarted in an hour, and a client of it.
fn backing_off() -> (Node, Control) {
    let node = node("exit 3", LONG).start();
    node.until_state("job", "BACKOFF");
    let mut client = job(&node, "job").connect();
    let state = client.next_state().expect("a state on connect");
    assert_eq!(state["status"], "DOWN", "{state}");
    assert_eq!(state["container_process_state"]["exit_status"], 3, "{state}");
    (node, client)
}

#[test]
fn a_client_stays_connected_over_restarts() {
    let script = "read x < $FIFO; exit 1";
    let rest = "restart = { on = \"any\", delay = \"10ms\", max_delay = \"10ms\" }";
    let fifo = std::env::temp_dir().join(format!("mainstay-life-{}", std::process::id()));
    let made = mainstay_tests::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo");
    assert!(made.success());
    let node = node(script, rest).env("FIFO", fifo.to_str().expect("text")).start();
    let first = node.running("job");
    let mut client = job(&node, "job").connect();
    for incarnation in 1..=3 {
        let up = |state: &Value| state["container_process_state"]["up"] == true;
        let state = state_where(&mut client, up);
        assert_eq!(state["incarnation"], incarnation);
        std::fs::write(&fifo, "go\n").expect("somebody reads");
        let down = state_where(&mut client, is_down);
        assert_eq!(down["incarnation"], incarnation);
        assert_eq!(down["container_process_state"]["exit_status"], 1);
    }
    assert_ne!(node.running("job"), first);
    node.must(&["stop", "job"]);
    assert_eq!(client.last_state().expect("a last state")["status"], "DOWN");
    std::fs::remove_file(fifo).expect("our own");
}

#[test]
fn a_stop_or_kill_during_backoff_cancels_the_restart() {
    for text in [&b"event: stop\n\n"[..], b"event: kill\n\n"] {
        let (node, mut client) = backing_off();
        client.say(text).expect("it listens");
        let last = client.last_state();
        assert!(last.is_none_or(|state| is_down(&state)), "nothing was started");
        let stopped = node.until_state("job", "STOPPED");
        assert_eq!(stopped["desired"], "rest");
        assert!(job(&node, "job").is_refused());
        assert_eq!(job(&node, "job").state().expect("as it ended")["incarnation"], 1);
    }
}

#[test]
fn with_no_agent_a_stop_during_backoff_waits_for_the_next() {
    let (node, mut client) = backing_off();
    let agent = node.agent();
    signal(agent, Signal::STOP);
    client.say(b"event: stop\n\n").expect("it listens");
    // The keeper has taken it, and nobody else has.
    let again = client.next_state().expect("the regular word");
    assert!(is_down(&again), "{again}");
    signal(agent, Signal::KILL);
    let last = client.last_state();
    assert!(last.is_none_or(|state| is_down(&state)), "nothing was started");
    assert_eq!(node.until_state("job", "STOPPED")["incarnation"], 1);
}

#[test]
fn a_restart_that_is_due_is_cancelled_by_a_stop_that_came_before_it() {
    let rest = "restart = { on = \"any\", delay = \"1s\", max_delay = \"1s\" }";
    let node = node("exit 3", rest).start();
    node.until_state("job", "BACKOFF");
    let agent = node.agent();
    signal(agent, Signal::STOP);
    let mut client = job(&node, "job").connect();
    let first = client.next_state().expect("a state");
    client.say(b"event: stop\n\n").expect("it listens");
    // Two regular words: the second that it had to wait is over.
    client.next_state().expect("a state");
    let due = client.next_state().expect("a state");
    assert_eq!(due["incarnation"], first["incarnation"]);
    signal(agent, Signal::KILL);
    let stopped = node.until_state("job", "STOPPED");
    assert_eq!(stopped["incarnation"], first["incarnation"]);
}

#[test]
fn a_job_that_rests_by_itself_closes_its_socket() {
    for (rest, state) in [
        ("restart = \"never\"", "EXITED"),
        ("restart = { on = \"any\", delay = \"0s\", limit = 2 }", "FATAL"),
    ] {
        let node = node("exit 3", rest).start();
        node.until_state("job", state);
        let watched = job(&node, "job");
        until("nobody listens", || watched.is_refused().then_some(()));
        let state = watched.state().expect("how it ended");
        assert_eq!(state["container_process_state"]["exit_status"], 3, "{state}");
    }
}

#[test]
fn the_socket_of_a_backoff_goes_through_an_upgrade_and_an_agent() {
    let (node, mut client) = backing_off();
    node.must(&["upgrade"]);
    node.kill_agent();
    let again = client.next_state().expect("the regular word");
    assert!(is_down(&again), "{again}");
    let mut late = job(&node, "job").connect();
    assert!(is_down(&late.next_state().expect("a state on connect")));
    client.say(b"event: stop\n\n").expect("it listens");
    for client in [&mut client, &mut late] {
        assert!(client.last_state().is_none_or(|state| is_down(&state)));
    }
    node.until_state("job", "STOPPED");
}

#[test]
fn a_run_that_ends_closes_the_sockets_of_those_that_wait() {
    let (mut node, mut client) = backing_off();
    node.must(&["shutdown"]);
    assert!(client.last_state().is_none_or(|state| is_down(&state)));
    assert_eq!(node.wait().code(), Some(0));
    let (mut node, mut client) = backing_off();
    signal(node.agent(), Signal::STOP);
    signal(node.keeper(), Signal::TERM);
    assert!(client.last_state().is_none_or(|state| is_down(&state)), "without an agent, too");
    node.wait();
}

#[test]
fn a_stop_for_a_life_that_is_over_does_not_reach_the_next() {
    let node = node("while :; do sleep 0.02; done", "").start();
    let first = node.running("job");
    let mut client = job(&node, "job").connect();
    client.next_state().expect("a state");
    node.must(&["restart", "job"]);
    assert!(client.last_state().is_some_and(|state| is_down(&state)), "that life is over");
    assert!(client.say(b"event: stop\n\n").is_err(), "nobody reads it any more");
    let next = job(&node, "job").connect().next_state().expect("a state");
    assert!(pid(&next) != first && is_alive(pid(&next)));
}
