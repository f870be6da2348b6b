//! The disk of the logs does not answer: nothing but the logs waits for it.

use mainstay_tests::{
    FrozenDisk, Node, Setup, is_alive, no_frozen_disk, proc, signal, until, within,
};
use rustix::process::Signal;
use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

/// Skips a test that this machine has no disk for.
macro_rules! disk_or_skip {
    () => {
        if let Some(why) = no_frozen_disk() {
            eprintln!("skipped: {why}");
            return;
        }
    };
}

/// Jobs that write all the time; one of them ends and is started again and again.
const WRITING: &str = r#"
    [node]
    exit = "never"
    stop_timeout = "2s"
    [log]
    forward = false
    [jobs.talker]
    exec = ["sh", "-c", "while echo tick; do sleep 0.02; done"]
    [jobs.returns]
    exec = ["sh", "-c", "trap '' TERM; n=$(cat runs 2>/dev/null || echo 0); n=$((n+1)); echo $n >runs; echo run $n"]
    restart = { on = "any", delay = "10ms", max_delay = "10ms" }
    [jobs.bystander]
    exec = "sleep 1000"
    [jobs.stubborn]
    exec = ["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"]
    stop = { timeout = "60s" }
    [jobs.spare]
    exec = "sleep 1000"
"#;

fn runs(node: &Node) -> u64 {
    let text = fs::read_to_string(node.path().join("runs")).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

fn until_runs(node: &Node, more: u64) {
    let before = runs(node);
    until("it runs again and again", || (runs(node) >= before + more).then_some(()));
}

/// A node whose writer hangs in a frozen disk, and that has noticed.
fn frozen(config: &str) -> (Node, FrozenDisk) {
    let (node, mut disk) = FrozenDisk::below(Setup::config(config));
    for job in ["talker", "bystander", "stubborn", "spare"] {
        node.running(job);
    }
    node.until_logged("talker", "tick");
    until_runs(&node, 3);
    disk.freeze();
    node.until_told("does not answer");
    (node, disk)
}

/// What the keeper holds: descriptors and threads, between two restarts, since one that is under
/// way has descriptors of its own.
fn held(keeper: u32) -> (usize, usize) {
    let holds = || (proc::descriptors(keeper).len(), threads(keeper));
    (0..500).map(|_| holds()).min().expect("some")
}

fn threads(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").count()
}

#[test]
fn a_frozen_disk_of_the_logs_holds_up_no_command_and_no_restart_and_costs_no_descriptor() {
    disk_or_skip!();
    let (node, mut disk) = FrozenDisk::below(Setup::config(WRITING));
    until_runs(&node, 3);
    let keeper = node.keeper();
    let before = held(keeper);
    disk.freeze();
    node.until_told("does not answer");
    let (bystander, agent) = (node.running("bystander"), node.agent());

    let began = Instant::now();
    assert_eq!(node.status()["jobs"].as_array().map(Vec::len), Some(5));
    node.must(&["restart", "spare"]);
    node.must(&["stop", "spare"]);
    node.must(&["start", "spare"]);
    node.must(&["kill", "spare"]);
    node.must(&["why", "talker"]);
    node.must(&["plan"]);
    node.must(&["reload"]);
    node.must(&["events", "--since", "0"]);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());

    // While it hangs each pipe has a second end of ours, so that it outlives who writes to it, and
    // the pipes of those that ended before it was known to hang are kept.
    let hanging = held(keeper);
    let runs_before = runs(&node);
    within(Duration::from_secs(120), "it runs a thousand times", || {
        (runs(&node) >= runs_before + 1000).then_some(())
    });
    let after = held(keeper);
    assert!(after.0 <= hanging.0 + 2 && after.1 == before.1, "{hanging:?} {after:?}");

    let refused = node.ask(&["upgrade"]);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{told}");
    assert!(told.contains("logs cannot be written") && told.contains("does not answer"), "{told}");
    assert_eq!((node.running("bystander"), node.agent()), (bystander, agent));

    // Nothing was lost: all of it was in pipes.
    disk.thaw();
    node.must(&["stop", "returns"]);
    let last = runs(&node);
    node.until_logged("returns", &format!("run {last}"));
    until("it holds what it held", || (held(keeper).0 <= before.0 + 2).then_some(()));
    let wanted: Vec<String> = (1..=last).map(|run| format!("run {run}")).collect();
    assert_eq!(node.log("returns"), wanted);
    node.must(&["upgrade"]);
    assert_eq!((node.keeper(), node.running("bystander")), (keeper, bystander));
}

#[test]
fn a_long_log_of_our_own_on_a_frozen_disk_holds_up_no_command() {
    disk_or_skip!();
    let absent = "/absent".repeat(400);
    let hopeless = format!(
        "[jobs.hopeless]\nexec = \"{absent}\"\n\
         restart = {{ on = \"any\", delay = \"5ms\", max_delay = \"5ms\" }}\n"
    );
    let (node, mut disk) = frozen(&(WRITING.to_owned() + &hopeless));
    // Several times what the pipe of the agent's log holds, a line for each.
    let failures = || node.job("hopeless")["restarts"].as_u64();
    let before = failures();
    until("it fails on and on", || (failures() > before.map(|it| it + 100)).then_some(()));
    node.must(&["stop", "hopeless"]);
    disk.thaw();
    // What comes next says how much there was that nobody took.
    node.must(&["reload"]);
    node.until_told("lines of this log are lost");
}

#[test]
fn a_node_on_a_frozen_disk_ends_within_its_time() {
    disk_or_skip!();
    let (mut node, _disk) = frozen(WRITING);
    let pids = ["talker", "bystander", "stubborn"].map(|job| node.running(job));
    signal(node.keeper(), Signal::TERM);
    let asked = Instant::now();
    assert_eq!(node.wait().code(), Some(0));
    assert!(asked.elapsed() < Duration::from_secs(3), "{:?}", asked.elapsed());
    assert!(pids.iter().all(|pid| !is_alive(*pid)));
    // Whoever comes next finds the place free.
    let told = node.stderr();
    assert!(told.contains("the last output cannot be written"), "{told}");
    assert!(!node.path().join("run/mainstay.sock").exists());
}

#[test]
fn a_second_signal_ends_a_node_on_a_frozen_disk_at_once() {
    disk_or_skip!();
    let patient = WRITING.replace("stop_timeout = \"2s\"", "stop_timeout = \"60s\"");
    let (mut node, _disk) = frozen(&patient);
    let stubborn = node.running("stubborn");
    signal(node.keeper(), Signal::TERM);
    node.until_state("stubborn", "STOPPING");
    signal(node.keeper(), Signal::TERM);
    let asked = Instant::now();
    node.wait();
    assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
    assert!(!is_alive(stubborn));
}

#[test]
fn an_agent_that_hangs_in_a_frozen_disk_does_not_hold_up_the_end() {
    disk_or_skip!();
    let (mut node, mut disk) = frozen(WRITING);
    let agent = node.agent();
    // It has to be written before it is answered.
    let mut asking = node.command(&["disable", "spare"]).spawn().expect("it can be started");
    signal(node.keeper(), Signal::TERM);
    let asked = Instant::now();
    node.wait();
    assert!(asked.elapsed() < Duration::from_secs(3), "{:?}", asked.elapsed());
    disk.thaw();
    within(Duration::from_secs(5), "the agent is gone, too", || (!is_alive(agent)).then_some(()));
    let _ = asking.kill();
    let _ = asking.wait();
}

const BESIDE: &str = r#"
    [node]
    exit = "never"
    stop_timeout = "2s"
    [log]
    forward = false
    [jobs.one]
    exec = "sleep 1000"
    [jobs.two]
    exec = "sleep 1000"
    [jobs.stubborn]
    exec = ["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"]
    stop = { timeout = "60s" }
"#;

#[test]
fn a_frozen_disk_of_the_run_directory_does_not_hold_up_the_keeper() {
    disk_or_skip!();
    let (node, mut disk) = FrozenDisk::below_run_dir(Setup::config(BESIDE));
    let [one, two] = ["one", "two"].map(|job| node.running(job));
    let mut control = node.control("two");
    control.next_state().expect("a state on connect");
    disk.freeze();
    // It is reaped, and told to who listens, although nothing of it can be written.
    signal(one, Signal::KILL);
    until("the dead are buried", || (!Path::new(&format!("/proc/{one}")).exists()).then_some(()));
    control.say(b"event: stop\ndata: {}\n\n").expect("it is taken");
    let asked = Instant::now();
    let down = control.last_state().expect("its end");
    assert_eq!(down["status"], "DOWN", "{down}");
    assert!(asked.elapsed() < Duration::from_secs(4), "{:?}", asked.elapsed());
    assert!(!is_alive(two));
    disk.thaw();
    // What was decided meanwhile is there, and nothing older.
    node.until_state("two", "STOPPED");
    node.running("one");
    let state = |job: &str| {
        let text = fs::read_to_string(node.run_dir().join(format!("jobs/{job}/state"))).ok()?;
        serde_json::from_str::<serde_json::Value>(&text).ok()
    };
    until("the states are as they are", || {
        let (one, two) = (state("one")?, state("two")?);
        (one["status"] == "UP" && two["status"] == "DOWN").then_some(())
    });
    node.must(&["upgrade"]);
}

#[test]
fn a_node_whose_run_directory_is_on_a_frozen_disk_ends_within_its_time() {
    disk_or_skip!();
    let (mut node, mut disk) = FrozenDisk::below_run_dir(Setup::config(BESIDE));
    let pids = ["one", "two", "stubborn"].map(|job| node.running(job));
    disk.freeze();
    signal(node.keeper(), Signal::TERM);
    let asked = Instant::now();
    node.wait();
    // The agent hangs: the keeper gives it a second to take the signal.
    assert!(asked.elapsed() < Duration::from_secs(4), "{:?}", asked.elapsed());
    assert!(pids.iter().all(|pid| !is_alive(*pid)));
    disk.thaw();
}

#[test]
fn a_start_on_a_frozen_disk_is_refused_with_the_reason() {
    disk_or_skip!();
    let (mut node, mut disk) = FrozenDisk::from_the_start(Setup::config(BESIDE));
    let begun = Instant::now();
    let status = within(Duration::from_secs(30), "it gives up", || node.try_wait());
    assert_eq!(status.code(), Some(1));
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    assert!(node.stderr().contains("its disk does not answer"), "{}", node.stderr());
    disk.thaw();
}

#[test]
fn a_socket_on_a_frozen_disk_keeps_its_job_waiting_and_nobody_else() {
    disk_or_skip!();
    let listens = r#"
        [jobs.listens]
        exec = "sleep 1000"
        autostart = false
        sockets = { web = "unix:${MAINSTAY_STATE_DIR}/web.sock" }
        restart = { on = "any", delay = "10ms", max_delay = "10ms" }
    "#;
    let (node, mut disk) = FrozenDisk::below(Setup::config(BESIDE.to_owned() + listens));
    let one = node.running("one");
    disk.freeze();
    let started = node.ask(&["start", "listens"]);
    let told = String::from_utf8_lossy(&started.stderr).into_owned();
    assert!(told.contains("web.sock") && told.contains("the disk does not answer"), "{told}");
    until("its start fails", || (node.job("listens")["restarts"].as_u64()? > 3).then_some(()));
    node.must(&["restart", "one"]);
    assert_ne!(node.running("one"), one);
    disk.thaw();
    node.running("listens");
    assert!(node.state_dir().join("web.sock").exists());
}
