//! Commands that cannot be run: the reason is in `status`, in the log, and in the exit code.

use mainstay_tests::{Scratch, Setup};
use std::{fs, net::TcpListener};

/// Runs one command that cannot be run; its exit code and what was said.
fn refused(command: &str) -> (Option<i32>, String) {
    let mut node = Setup::command(&[command]).launch();
    let code = node.wait().code();
    (code, node.stderr())
}

#[test]
fn a_command_that_cannot_be_executed_says_why_in_words_that_help() {
    let scratch = Scratch::new();
    let file = |name: &str| scratch.path().join(name).display().to_string();
    fs::write(file("plain"), "#!/bin/sh\n").expect("a scratch directory");
    scratch.script("lost", "#!/no/such/interpreter -x\n");
    scratch.script("binary", "\u{1}\u{2}\u{3}");
    for (command, code, reason) in [
        ("/no/such/command".to_owned(), 127, "there is no such file"),
        ("no-such-command".to_owned(), 127, "not found in PATH"),
        (file("plain"), 126, "not executable"),
        (file("lost"), 127, "its interpreter '/no/such/interpreter' does not exist"),
        (file("binary"), 126, "neither a program for this machine nor a script"),
        ("/".to_owned(), 126, "is a directory"),
    ] {
        let (exit, told) = refused(&command);
        assert_eq!(exit, Some(code), "{command}: {told}");
        assert!(told.contains(reason), "{command}: {told}");
        assert!(told.contains(&format!("'{command}'")), "{command}: {told}");
    }
}

#[test]
fn what_a_job_needs_and_does_not_get_is_named_and_other_jobs_run() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("bound");
    let config = format!(
        r#"
        [node]
        exit = "never"
        [jobs.user]
        exec = "sleep 1000"
        user = "no-such-user"
        [jobs.group]
        exec = "sleep 1000"
        group = "no-such-group"
        [jobs.cwd]
        exec = "sleep 1000"
        cwd = "/no/such/directory"
        [jobs.port]
        exec = "sleep 1000"
        sockets = {{ http = "{address}" }}
        restart = {{ on = "failure", delay = "100ms", max_delay = "100ms" }}
        [jobs.well]
        exec = "sleep 1000"
    "#
    );
    let node = Setup::config(config).start();
    node.running("well");
    for (job, reason) in [
        ("user", "unknown user 'no-such-user'".to_owned()),
        ("group", "unknown group 'no-such-group'".to_owned()),
        ("cwd", "'/no/such/directory'".to_owned()),
        ("port", format!("cannot listen on {address} for socket 'http'")),
    ] {
        let told = node.until_state(job, "BACKOFF")["exit"]["error"].clone();
        assert!(told.as_str().is_some_and(|told| told.contains(&reason)), "{job}: {told}");
        node.until_told(&reason);
    }
    drop(taken);
    node.running("port");
}
