//! One incarnation after the other, with a client that never stops asking.
//!
//! At any instant: who is refused finds the state of a run that has ended, and who is connected
//! never finds the state of an older run beside it.

use super::{held::Held, job, node};
use mainstay_tests::{Reached, Watched, until};
use serde_json::Value;
use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

/// Which run a state tells of.
type RunOf = fn(&Value) -> Option<u64>;

#[derive(Debug, Default)]
struct Seen {
    connected: u64,
    refused: u64,
    missing: u64,
}

struct Hammer {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Seen>,
}

impl Hammer {
    fn start(watched: Watched, run_of: RunOf) -> Hammer {
        let over = Arc::new(AtomicBool::new(false));
        let flag = over.clone();
        let thread = thread::spawn(move || {
            let mut seen = Seen::default();
            while !flag.load(Ordering::Relaxed) {
                strike(&watched, run_of, &mut seen);
            }
            seen
        });
        Hammer { over, thread }
    }

    fn stop(self) -> Seen {
        self.over.store(true, Ordering::Relaxed);
        match self.thread.join() {
            Ok(seen) => seen,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

fn strike(watched: &Watched, run_of: RunOf, seen: &mut Seen) {
    let file = || fs::read(watched.path().join("state")).ok();
    let before = file();
    match watched.try_connect() {
        Reached::NoSuchFile => seen.missing += 1,
        Reached::Refused => {
            seen.refused += 1;
            let after = file();
            // Unchanged, so it was like this at the moment of the refusal.
            if let (true, Some(text)) = (before == after, after) {
                let state: Value = serde_json::from_slice(&text).expect("never torn");
                assert_eq!(state["status"], "DOWN", "refused while it lives: {state}");
            }
        }
        Reached::Connected(mut client) => {
            seen.connected += 1;
            let Some(told) = client.next_state() else { return };
            let state = watched.state().expect("a state beside a socket that listens");
            let (file, stream) = (run_of(&state), run_of(&told));
            // A run that is up does not know yet how it will end; one that is over does.
            if let (Some(file), Some(stream)) = (file, stream) {
                assert!(file >= stream, "beside {told} the file told of an older run: {state}");
            }
        }
    }
}

#[test]
fn a_client_that_never_stops_asking_is_never_misled_by_a_holder() {
    // Each run ends with its own number.
    let number: RunOf = |state| state["container_process_state"]["exit_status"].as_u64();
    let mut held = Held::nothing();
    let hammer = Hammer::start(held.watched(), number);
    for run in 1..=60 {
        held.hold(&format!("sleep 0.0{}; exit {run}", run % 5));
        assert_eq!(held.wait().code(), Some(run));
    }
    let seen = hammer.stop();
    assert!(seen.connected > 5 && seen.refused > 5 && seen.missing > 5, "{seen:?}");
}

#[test]
fn a_client_that_never_stops_asking_is_never_misled_by_a_job() {
    let script = "sleep 0.02; exit 1";
    let node = node(script, "restart = { on = \"any\", delay = \"10ms\", max_delay = \"10ms\" }");
    let node = node.start();
    let incarnation: RunOf = |state| state["incarnation"].as_u64();
    let hammer = Hammer::start(job(&node, "job"), incarnation);
    until("it has been restarted often", || {
        (node.job("job")["incarnation"].as_u64() >= Some(60)).then_some(())
    });
    node.kill_agent();
    let before = node.job("job")["incarnation"].as_u64().expect("a number");
    until("and again under another agent", || {
        (node.job("job")["incarnation"].as_u64() >= Some(before + 30)).then_some(())
    });
    let seen = hammer.stop();
    // From its first exec on there is one socket, however often it is restarted.
    assert!(seen.connected > 5 && seen.refused == 0, "{seen:?}");
}

#[test]
fn a_command_that_never_runs_leaves_a_refusal_and_the_reason() {
    let node = super::Setup::config(
        "[node]\nexit = \"never\"\n[jobs.job]\nexec = \"/no/such/command\"\nrestart = \"never\"",
    )
    .start();
    node.until_state("job", "FATAL");
    let watched = job(&node, "job");
    assert!(watched.is_refused());
    let state = watched.state().expect("a state");
    assert_eq!(state["status"], "DOWN");
    assert!(state["err"].as_str().expect("a reason").contains("no such file"), "{state}");
    let process = &state["container_process_state"];
    for end in ["exited", "signaled", "oomed"] {
        assert!(process[end].is_null(), "it never ran: {state}");
    }
}
