//! What a person sees who types: colours, suggestions, help, and what is not on this machine.

use mainstay_tests::{Scratch, Setup, binary, on_terminal};
use std::process::Command;

const SLEEPER: &str = "[jobs.worker]\nexec = \"sleep 1000\"\n\n[jobs.after]\nexec = \"sleep 1000\"\n\
                       when = { source = \"never\", once = \"exitSuccess\" }\n\n\
                       [jobs.never]\nexec = \"false\"\nrestart = \"never\"\n";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn colours_are_for_terminals_that_have_them_and_people_who_want_them() {
    let node = Setup::config(SLEEPER).start();
    node.running("worker");
    let colours = |args: &[&str], env: &[(&str, &str)]| {
        // After what the helper sets: the last one counts.
        let mut shell = Command::new("env");
        shell.env("MAINSTAY_RUN_DIR", node.run_dir()).env("MAINSTAY_STATE_DIR", node.state_dir());
        shell.args(env.iter().map(|(name, value)| format!("{name}={value}")));
        shell.arg(binary()).args(args);
        on_terminal(shell).1.contains('\x1b')
    };
    assert!(colours(&["status"], &[]));
    assert!(!colours(&["status"], &[("TERM", "dumb")]));
    assert!(!colours(&["status"], &[("TERM", "dumb"), ("CI", "true")]));
    assert!(!colours(&["status"], &[("NO_COLOR", "1")]));
    assert!(!colours(&["status", "--color", "never"], &[]));
    assert!(colours(&["--color", "always", "status"], &[("NO_COLOR", "1")]));
    let piped = node.ask(&["status", "--color", "always"]);
    assert!(text(&piped.stdout).contains('\x1b'));
    assert!(!text(&node.ask(&["status"]).stdout).contains('\x1b'));
}

#[test]
fn a_job_that_is_not_there_is_told_with_the_one_that_may_be_meant() {
    let node = Setup::config(SLEEPER).start();
    for args in [
        &["stop", "wroker"][..],
        &["why", "workr"],
        &["status", "Worker"],
        &["restart", "wrker"],
        &["logs", "wroker"],
    ] {
        let told = text(&node.ask(args).stderr);
        assert!(told.contains("did you mean 'worker'?"), "{args:?}: {told}");
    }
    let told = text(&node.ask(&["stop", "database"]).stderr);
    assert!(told.contains("there is no job 'database'") && !told.contains("mean"), "{told}");
}

#[test]
fn a_job_is_named_once_in_what_is_told_about_it() {
    let node = Setup::config(SLEEPER).start();
    node.until_state("never", "EXITED");
    let output = node.ask(&["start", "after"]);
    let told = text(&output.stderr);
    assert!(told.starts_with("mainstay: after waits for never exitSuccess"), "{told}");
}

#[test]
fn help_is_a_command_as_well() {
    let run = |args: &[&str]| {
        let output = Command::new(binary()).args(args).output().expect("the binary can be started");
        assert!(output.status.success(), "{args:?}");
        text(&output.stdout)
    };
    assert_eq!(run(&["help"]), run(&["--help"]));
    assert_eq!(run(&["help", "import"]), run(&["import", "--help"]));
}

#[test]
fn check_warns_of_what_is_not_on_this_machine() {
    let scratch = Scratch::new();
    let file = scratch.path().join("mainstay.toml");
    let config = "[jobs.web]\nexec = \"no-such-program --port 80\"\nuser = \"nobody-of-this-name\"\n\
                  [jobs.own]\nexec = \"./run\"\ncwd = \"/nonexistent\"\n[jobs.fine]\nexec = \"sleep 1\"\n\
                  [jobs.asked]\nexec = \"sleep 1\"\ngroup = \"group-of-nobody\"\n\
                  health = { exec = \"no-such-check\" }\n\
                  stop = { exec = \"/etc/passwd\" }\n";
    std::fs::write(&file, config).expect("a file");
    let check = |more: &[&str]| {
        let mut command = Command::new(binary());
        command.args(["check", "-c"]).arg(&file).args(more);
        command.output().expect("the binary can be started")
    };
    let output = check(&[]);
    assert_eq!(output.status.code(), Some(0));
    let told = text(&output.stderr);
    for part in [
        "jobs.web: there is no user 'nobody-of-this-name' on this machine",
        "jobs.web: there is no program 'no-such-program' on this machine",
        "jobs.own: there is no program './run' on this machine",
        "jobs.asked: there is no group 'group-of-nobody' on this machine",
        "jobs.asked: there is no program 'no-such-check' on this machine",
        "jobs.asked: '/etc/passwd' cannot be executed on this machine",
    ] {
        assert!(told.contains(part), "{told}");
    }
    assert!(!told.contains("jobs.fine"), "{told}");
    let json: serde_json::Value = serde_json::from_slice(&check(&["--json"]).stdout).expect("JSON");
    assert_eq!(json["valid"], true);
    assert_eq!(json["diagnostics"].as_array().map(Vec::len), Some(6), "{json}");
}

#[test]
fn a_program_can_ask_why_as_well() {
    let node = Setup::config(SLEEPER).start();
    node.until_state("never", "EXITED");
    let why: serde_json::Value =
        serde_json::from_str(&node.must(&["why", "after", "--json"])).expect("JSON");
    assert_eq!((&why["job"], &why["state"]), (&"after".into(), &"STOPPED".into()), "{why}");
    assert_eq!(why["waiting"][0]["source"], "never", "{why}");
    assert!(why["waiting"][0]["reason"].is_string(), "{why}");
    assert!(why["lines"].as_array().is_some_and(|lines| !lines.is_empty()), "{why}");
}
