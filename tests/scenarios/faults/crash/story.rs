//! A short life of a node with a bit of everything, and what is told of it.

use mainstay_tests::{Events, Node, Scratch, Setup, Watched, is_alive, signal, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::{collections::BTreeMap, fs, path::Path};

#[derive(Debug)]
pub(super) struct Story {
    /// What the agent was to die of.
    crash: Option<(String, u64)>,
    died: bool,
    /// What was told about each job, without what differs from run to run.
    told: BTreeMap<String, Vec<String>>,
}

impl Story {
    /// Lives through it; the agent dies when it gets to a point for the so manieth time.
    pub(super) fn tell(crash: Option<(&str, u64)>) -> Story {
        let scratch = Scratch::new();
        let once = scratch.path().join("once");
        fs::write(&once, "").expect("a scratch directory");
        let mut setup = Setup::config(config(scratch.path()))
            .env("MAINSTAY_CRASH_ONCE", once.display().to_string());
        if let Some((point, count)) = crash {
            setup = setup.env("MAINSTAY_CRASH_AT", format!("{point}:{count}"));
        }
        let mut node = setup.start();
        let mut events = node.events();
        live(&mut node, &mut events, scratch.path());
        let all = events.to_end();
        check_order(all);
        let told = told(all);
        node.leaves_nothing();
        check_scratch(scratch.path());
        Story {
            crash: crash.map(|(point, count)| (point.to_owned(), count)),
            died: !once.exists(),
            told,
        }
    }

    pub(super) fn died(&self) -> bool {
        self.died
    }

    pub(super) fn compare(&self, other: &Story) {
        for (source, wanted) in &other.told {
            let found = self.told.get(source).cloned().unwrap_or_default();
            assert_eq!(
                &found, wanted,
                "what is told of {source} after a death at {:?}",
                self.crash
            );
        }
        assert_eq!(self.told.len(), other.told.len());
    }
}

/// `calm` runs from beginning to end, `flaky` crashes when it is told to, `busy` has something to
/// do before it stops, `held` is stopped at its control socket.
fn config(scratch: &Path) -> String {
    let dir = scratch.display();
    let job = |name: &str, rest: &str| {
        format!(
            r#"
            [jobs.{name}]
            exec = ["sh", "-c", """
                mkdir {dir}/{name}.lives || touch {dir}/{name}.twice
                trap 'rmdir {dir}/{name}.lives; exit 0' TERM
                trap 'rmdir {dir}/{name}.lives; exit 3' USR1
                trap 'echo hup >> {dir}/{name}.hups' HUP
                touch {dir}/{name}.up
                while :; do sleep 0.02; done
            """]
            restart = {{ on = "failure", delay = "0s" }}
            {rest}
            "#
        )
    };
    format!(
        "[node]\nexit = \"never\"\n{}{}{}{}",
        job("calm", ""),
        job("flaky", ""),
        job(
            "busy",
            &format!("stop = {{ exec = [\"sh\", \"-c\", \"echo run >> {dir}/drained\"] }}")
        ),
        job("held", ""),
    )
}

/// Waits until the traps of a job are set, and forgets it for the next time.
fn until_up(scratch: &Path, job: &str) {
    let mark = scratch.join(format!("{job}.up"));
    until(&format!("{job} is up"), || fs::remove_file(&mark).ok());
}

fn live(node: &mut Node, events: &mut Events, scratch: &Path) {
    for job in ["calm", "flaky", "busy", "held"] {
        until_up(scratch, job);
    }
    let calm = node.running("calm");

    signal(node.running("flaky"), Signal::USR1);
    events.wait_for("flaky", "exitFailed");
    until_up(scratch, "flaky");
    node.running("flaky");

    insist(node, &["stop", "flaky"], || node.job("flaky")["state"] == "STOPPED");
    insist(node, &["start", "flaky"], || node.job("flaky")["state"] == "RUNNING");
    until_up(scratch, "flaky");

    insist(node, &["signal", "HUP", "calm"], || scratch.join("calm.hups").exists());
    insist(node, &["stop", "busy"], || node.job("busy")["state"] == "STOPPED");

    let watched = Watched::new(node.run_dir().join("jobs/held"));
    let mut client = watched.connect();
    client.say(b"event: stop\n\n").expect("it listens");
    let last = client.last_state().expect("a last state");
    assert_eq!(last["container_process_state"]["exit_status"], 0);
    node.until_state("held", "STOPPED");

    assert_eq!(node.running("calm"), calm, "nobody has touched it");
    assert!(is_alive(calm));
    insist(node, &["shutdown"], || node.ask(&["status"]).status.code() == Some(4));
    assert_eq!(node.wait().code(), Some(0));
}

/// Asks until it is so. An agent that dies may leave open whether it has taken a request.
fn insist(node: &Node, args: &[&str], so: impl Fn() -> bool) {
    if node.ask(args).status.success() {
        return until(&format!("{args:?} was done"), || so().then_some(()));
    }
    until(&format!("{args:?}"), || {
        let done = so();
        if !done {
            node.ask(args);
        }
        done.then_some(())
    });
}

fn check_order(events: &[Value]) {
    for (number, event) in (1..).zip(events) {
        assert_eq!(event["seq"], json!(number), "the events are not consecutive at {event}");
    }
}

/// Per source, without times, numbers, pids, usage, and without what only tells of agents.
fn told(events: &[Value]) -> BTreeMap<String, Vec<String>> {
    let mut told: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for event in events.iter().filter(|event| event["event"] != "agentRestarted") {
        let mut detail = event["detail"].clone();
        if let Some(detail) = detail.as_object_mut() {
            detail.remove("pid");
            detail.remove("usage");
        }
        let source = event["source"].as_str().expect("a source").to_owned();
        let text = format!("{} {detail}", event["event"].as_str().expect("a name"));
        told.entry(source).or_default().push(text);
    }
    told
}

fn check_scratch(scratch: &Path) {
    for entry in fs::read_dir(scratch).expect("our own") {
        let name = entry.expect("our own").file_name().to_string_lossy().into_owned();
        assert!(!name.ends_with(".twice"), "two incarnations were alive: {name}");
        assert!(!name.ends_with(".lives"), "it was not stopped as it should be: {name}");
    }
    let drained = fs::read_to_string(scratch.join("drained")).expect("busy was drained");
    assert_eq!(drained, "run\n", "its stop command ran once");
}
