//! `events -f` and `logs -f`: nothing twice, nothing missing, whatever happens meanwhile.

use mainstay_tests::{Node, Setup, signal, until};
use rustix::process::Signal;
use std::{
    io::{BufRead, BufReader},
    process::{Child, Stdio},
    sync::{Arc, Mutex},
    thread,
};

/// A command whose output is read as it comes.
struct Follower {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Follower {
    fn start(node: &Node, args: &[&str]) -> Follower {
        let mut child =
            node.command(args).stdout(Stdio::piped()).spawn().expect("the binary can be started");
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (reader, sink) = (child.stdout.take().expect("piped"), lines.clone());
        thread::spawn(move || {
            for line in BufReader::new(reader).lines().map_while(Result::ok) {
                sink.lock().expect("nobody panics with it").push(line);
            }
        });
        Follower { child, lines }
    }

    fn lines(&self) -> Vec<String> {
        self.lines.lock().expect("nobody panics with it").clone()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const COUNTER: &str = r#"
    [node]
    exit = "never"
    [log]
    forward = false
    keep = { size = "4K", files = 10 }
    [jobs.counter]
    exec = ["sh", "-c", "n=0; while :; do n=$((n+1)); echo $n; sleep 0.002; done"]
"#;

#[test]
fn logs_are_followed_across_rotation_and_an_agents_death() {
    let node = Setup::config(COUNTER).start();
    node.running("counter");
    let follower = Follower::start(&node, &["logs", "-f", "-n", "all", "counter"]);
    let number = |line: &String| line.rsplit(' ').next().and_then(|word| word.parse::<u64>().ok());
    let until_beyond = |beyond: u64| {
        until(&format!("line {beyond} is shown"), || {
            (follower.lines().last().and_then(number) > Some(beyond)).then_some(())
        });
    };
    until_beyond(50);
    node.kill_agent();
    let last = |follower: &Follower| follower.lines().last().and_then(number).expect("a number");
    until_beyond(last(&follower) + 50);
    signal(node.keeper(), Signal::USR1);
    until_beyond(last(&follower) + 100);
    until("several files were closed", || (node.log_files("counter").len() > 3).then_some(()));
    until_beyond(last(&follower) + 20);
    node.must(&["upgrade"]);
    until_beyond(last(&follower) + 50);
    let shown: Vec<u64> = follower.lines().iter().filter_map(number).collect();
    assert_eq!(shown, (1..=shown.len() as u64).collect::<Vec<_>>());
}

#[test]
fn events_are_followed_across_an_agents_death() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.flaky]
        exec = ["sh", "-c", "sleep 0.02; exit 3"]
        restart = { on = "any", delay = "20ms", max_delay = "20ms" }
    "#;
    let mut node = Setup::config(config).start();
    let mut events = node.events();
    for _ in 0..6 {
        for _ in 0..5 {
            events.wait_for("flaky", "exitFailed");
        }
        signal(node.agent(), Signal::KILL);
        events.wait_for("global", "agentRestarted");
    }
    node.must(&["shutdown"]);
    assert_eq!(node.wait().code(), Some(0));
    let seen = events.to_end();
    let seqs: Vec<u64> = seen.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    // Every run ended once.
    let ends: Vec<u64> = seen
        .iter()
        .filter(|event| event["event"] == "exitFailed" || event["event"] == "exitSuccess")
        .filter_map(|event| event["detail"]["incarnation"].as_u64())
        .collect();
    assert_eq!(ends, (1..=ends.len() as u64).collect::<Vec<_>>());
    assert!(ends.len() >= 30);
}

#[test]
fn events_can_be_taken_up_where_they_were_left() {
    let config = "[node]\nexit = \"never\"\n[jobs.one]\nexec = \"sleep 1000\"\n";
    let node = Setup::config(config).start();
    node.running("one");
    let all = node.must(&["events", "--json"]);
    let from_third = node.must(&["events", "--json", "--since", "2"]);
    let tail: Vec<&str> = all.lines().skip(2).collect();
    assert_eq!(from_third.lines().collect::<Vec<_>>(), tail);
    assert!(tail.len() > 1);
}
