//! An agent that is frozen, or cannot begin: the keeper keeps.

use mainstay_tests::{Setup, is_alive, signal, until};
use rustix::process::Signal;
use std::time::Instant;

const CONFIG: &str = r#"
    [node]
    exit = "never"
    stop_timeout = "5s"
    [jobs.one]
    exec = ["sh", "-c", "while :; do echo tick; sleep 0.05; done"]
    [jobs.stubborn]
    exec = ["sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.1; done"]
    stop = { timeout = "300ms" }
    [jobs.main]
    exec = "sleep 1000"
"#;

#[test]
fn a_frozen_agent_harms_no_job_and_control_sockets_work_without_it() {
    let node = Setup::config(CONFIG).start();
    let (one, stubborn) = (node.running("one"), node.running("stubborn"));
    node.until_logged("stubborn", "up");
    let agent = node.agent();
    signal(agent, Signal::STOP);

    let lines = node.log("one").len();
    until("one goes on", || (node.log("one").len() > lines + 5).then_some(()));
    let mut client = node.control("stubborn");
    assert_eq!(client.next_state().expect("a state")["status"], "UP");
    client.say(b"event: stop\n\n").expect("it listens");
    let last = client.last_state().expect("its last state");
    assert_eq!(last["status"], "DOWN");
    assert!(!is_alive(stubborn) && is_alive(one));

    // It wakes up, hears of it, and of nothing else.
    signal(agent, Signal::CONT);
    let job = until("the agent knows", || {
        Some(node.job("stubborn")).filter(|job| job["exit"]["signal"] == "SIGKILL")
    });
    assert!(
        ["STOPPED", "BACKOFF", "RUNNING", "STARTING"]
            .contains(&job["state"].as_str().expect("a state"))
    );
    assert_eq!(node.running("one"), one);
    assert_eq!(node.agent(), agent);
}

#[test]
fn a_frozen_agent_does_not_keep_a_node_from_ending_in_time() {
    let mut node = Setup::config(CONFIG.replace("[jobs.main]", "[jobs.main]\nmain = true")).start();
    let pids = ["one", "stubborn", "main"].map(|job| node.running(job));
    node.until_logged("stubborn", "up");
    signal(node.agent(), Signal::STOP);
    let start = Instant::now();
    signal(node.keeper(), Signal::TERM);
    assert_eq!(node.wait().code(), Some(143), "the main job's own code");
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
    assert!(pids.iter().all(|pid| !is_alive(*pid)));
    node.leaves_nothing();
}

#[test]
fn a_second_signal_ends_a_node_with_a_frozen_agent_at_once() {
    let config =
        CONFIG.replace("300ms", "1h").replace("stop_timeout = \"5s\"", "stop_timeout = \"1h\"");
    let mut node = Setup::config(config).start();
    node.running("stubborn");
    node.until_logged("stubborn", "up");
    signal(node.agent(), Signal::STOP);
    signal(node.keeper(), Signal::TERM);
    node.until_told("the keeper stops everything");
    signal(node.keeper(), Signal::TERM);
    node.wait();
    node.leaves_nothing();
}

#[test]
fn commands_say_that_the_agent_does_not_answer_and_shutdown_works_all_the_same() {
    let mut node = Setup::config(CONFIG).start();
    node.running("one");
    signal(node.agent(), Signal::STOP);
    let status = node.ask(&["status"]);
    assert_eq!(status.status.code(), Some(4));
    let told = String::from_utf8_lossy(&status.stderr).into_owned();
    assert!(told.contains("every job goes on"), "{told}");
    node.must(&["shutdown"]);
    node.wait();
    node.leaves_nothing();
}

#[test]
fn an_agent_that_cannot_begin_is_backed_off_and_told_while_jobs_run_on() {
    // Every agent dies after its first step: the first one has started the jobs by then.
    let node = Setup::config(CONFIG).env("MAINSTAY_CRASH_AT", "commanded:1");
    let mut node = node.launch();
    node.until_told("a new one starts in 400 ms");
    let told = node.stderr();
    for delay in ["in 100 ms", "in 200 ms"] {
        assert!(told.contains(delay), "{told}");
    }
    assert!(told.contains("was killed by signal 9; 3 jobs run on"), "{told}");
    node.until_logged("stubborn", "up");
    let lines = node.log("one").len();
    until("one goes on", || (node.log("one").len() > lines + 5).then_some(()));

    // Without any agent: control sockets, and the end.
    let mut client = node.control("stubborn");
    client.say(b"event: stop\n\n").expect("it listens");
    assert_eq!(client.last_state().expect("its last state")["status"], "DOWN");
    node.must(&["shutdown"]);
    node.wait();
    node.leaves_nothing();
}

#[test]
fn an_agent_that_dies_before_anything_has_begun_leaves_a_node_that_can_be_ended() {
    let mut node = Setup::config(CONFIG).env("MAINSTAY_CRASH_AT", "input:1").launch();
    node.until_told("a new one starts in 200 ms");
    assert!(node.stderr().contains("0 jobs run on"));
    signal(node.keeper(), Signal::TERM);
    assert_eq!(node.wait().code(), Some(0));
    node.leaves_nothing();
}

#[test]
fn a_job_that_is_stopping_is_not_signalled_again_by_the_next_agent() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.slow]
        exec = ["sh", "-c", "trap 'echo asked' TERM; echo ready; while :; do sleep 0.05; done"]
        stop = { timeout = "3s" }
    "#;
    let node = Setup::config(config).start();
    node.until_logged("slow", "ready");
    node.must(&["stop", "slow", "--no-wait"]);
    node.until_logged("slow", "asked");
    for _ in 0..3 {
        node.kill_agent();
        node.wait_until_ready();
        assert_eq!(node.job("slow")["state"], "STOPPING");
    }
    node.until_state("slow", "STOPPED");
    assert_eq!(node.log("slow").iter().filter(|line| *line == "asked").count(), 1);
}
