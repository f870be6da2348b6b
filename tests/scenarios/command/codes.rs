//! Exit codes and what is said with them.

use mainstay_tests::{Command, Scratch, Setup, binary};
use serde_json::Value;
use std::process::Output;

const CONFIG: &str = r#"
    [node]
    exit = "never"
    [jobs.well]
    exec = "sleep 1000"
    [jobs.broken]
    exec = "/no/such/command"
    restart = "never"
"#;

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn status_is_0_when_all_is_as_desired_and_3_when_not() {
    let node = Setup::config(CONFIG).start();
    node.running("well");
    node.until_state("broken", "FATAL");
    assert_eq!(node.ask(&["status", "well"]).status.code(), Some(0));
    assert_eq!(node.ask(&["status"]).status.code(), Some(3));
    assert_eq!(node.ask(&["status", "broken", "--json"]).status.code(), Some(3));
    node.must(&["stop", "broken"]);
    node.must(&["stop", "well"]);
    assert_eq!(node.ask(&["status", "well"]).status.code(), Some(0), "a user wants it so");
}

#[test]
fn what_was_tried_and_failed_is_1() {
    let node = Setup::config(CONFIG).start();
    node.running("well");
    let start = node.ask(&["start", "broken"]);
    assert_eq!(start.status.code(), Some(1));
    assert!(
        told(&start).contains("broken is FATAL: cannot execute '/no/such/command'"),
        "{}",
        told(&start)
    );
    for args in [
        &["start", "nobody"][..],
        &["stop", "nobody"],
        &["restart", "nobody"],
        &["kill", "nobody"],
        &["signal", "HUP", "nobody"],
        &["status", "nobody"],
        &["logs", "nobody"],
    ] {
        let output = node.ask(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {}", told(&output));
        assert!(told(&output).contains("nobody"), "{args:?}: {}", told(&output));
    }
    for args in [&["status", "nobody"][..], &["why", "nobody"], &["start", "nobody"]] {
        let output = node.ask(&[args, &["--json"]].concat());
        let problem: Value = serde_json::from_slice(&output.stdout).expect("a problem in JSON");
        assert_eq!(problem["status"], 404, "{args:?}: {problem}");
        assert!(problem["detail"].as_str().expect("a text").contains("mainstay status"));
    }
    // One of several: nothing is done.
    let pid = node.running("well");
    let both = node.ask(&["restart", "nobody", "well"]);
    assert_eq!((both.status.code(), node.running("well")), (Some(1), pid));
    assert!(told(&both).contains("there is no job 'nobody'"), "{}", told(&both));
    // A signal needs somebody to take it.
    let signal = node.ask(&["signal", "HUP", "broken"]);
    assert_eq!(signal.status.code(), Some(1));
    assert!(told(&signal).contains("not running"), "{}", told(&signal));
}

#[test]
fn wrong_usage_is_2() {
    let node = Setup::config(CONFIG).start();
    for args in [
        &["dance"][..],
        &["start"],
        &["status", "--colour"],
        &["signal", "NOSUCH", "well"],
        &["stop", "well", "--timeout", "soon"],
        &["run", "--restart", "always"],
    ] {
        let output = node.ask(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", told(&output));
        assert!(!told(&output).is_empty());
    }
}

#[test]
fn without_a_node_it_is_4_and_says_where_it_looked() {
    let scratch = Scratch::new();
    let ask = |args: &[&str]| {
        let dir = scratch.path().join("nowhere");
        let output = Command::new(binary()).args(args).env("MAINSTAY_RUN_DIR", &dir).output();
        let output = output.expect("the binary can be started");
        assert!(told(&output).contains(&dir.display().to_string()), "{args:?}: {}", told(&output));
        output.status.code()
    };
    for args in [
        &["status"][..],
        &["start", "x"],
        &["events"],
        &["events", "-f"],
        &["shutdown"],
        &["upgrade"],
    ] {
        assert_eq!(ask(args), Some(4), "{args:?}");
    }
}

#[test]
fn a_node_that_has_ended_is_4_too() {
    let mut node = Setup::config(CONFIG).start();
    node.must(&["shutdown"]);
    node.wait();
    assert_eq!(node.ask(&["status"]).status.code(), Some(4));
    // A keeper that was killed leaves its socket.
    node.launch_again();
    node.wait_until_ready();
    mainstay_tests::signal(node.keeper(), rustix::process::Signal::KILL);
    node.wait();
    let status = node.ask(&["status"]);
    assert_eq!(status.status.code(), Some(4));
    assert!(told(&status).contains("is `mainstay run` still running?"), "{}", told(&status));
}

#[test]
fn a_mistyped_key_is_78_with_line_caret_and_hint() {
    let text = "[jobs.web]\nexec = \"sleep 1\"\nrestrat = \"always\"\n\n[jobs.db]\nexec = \"\"\n";
    let mut node = Setup::config(text).launch();
    assert_eq!(node.wait().code(), Some(78));
    for told in [node.stderr(), {
        let file = node.path().join("mainstay.toml").display().to_string();
        let check = node.ask(&["check", "-c", &file]);
        assert_eq!(check.status.code(), Some(78));
        told(&check)
    }] {
        assert!(told.contains("mainstay.toml:3:1"), "{told}");
        assert!(told.contains("restrat = \"always\"") && told.contains("^^^^^^^"), "{told}");
        assert!(told.contains("restart"), "the nearest key: {told}");
        assert!(told.contains("mainstay.toml:6"), "all mistakes in one go: {told}");
    }
    assert!(!node.run_dir().join("mainstay.sock").exists());
}

#[test]
fn a_configuration_that_is_not_there_is_78() {
    let scratch = Scratch::new();
    let output = Command::new(binary())
        .args(["run", "-c", "nowhere.toml"])
        .env("MAINSTAY_RUN_DIR", scratch.path().join("run"))
        .env("MAINSTAY_STATE_DIR", scratch.path().join("state"))
        .current_dir(scratch.path())
        .output()
        .expect("the binary can be started");
    assert_eq!(output.status.code(), Some(78), "{}", told(&output));
    assert!(told(&output).contains("nowhere.toml"), "{}", told(&output));
}

#[test]
fn a_run_ends_with_0_when_all_jobs_ended_well_and_1_when_one_did_not() {
    let run = |second: &str| {
        let config = format!(
            "[jobs.a]\nexec = \"true\"\n[jobs.b]\nexec = \"{second}\"\nrestart = \"never\"\n"
        );
        let mut node = Setup::config(config).launch();
        node.wait().code()
    };
    assert_eq!(run("true"), Some(0));
    assert_eq!(run("false"), Some(1));
}
