//! What people see: names that stand for several jobs, failing checks, logs of runs that are over.

use mainstay_tests::{Setup, binary, until};
use std::process::Command;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_name_of_a_job_with_instances_stands_for_all_of_them() {
    let node = Setup::config(
        "[node]\nexit = \"never\"\n[jobs.web]\ninstances = 3\n\
         exec = [\"sh\", \"-c\", \"echo I am {instance}; exec sleep 1000\"]\n",
    )
    .start();
    for number in 1..=3 {
        node.until_logged(&format!("web-{number}"), &format!("I am {number}"));
    }
    let mut logs: Vec<String> = node.must(&["logs", "web"]).lines().map(str::to_owned).collect();
    logs.sort();
    assert_eq!(logs, ["web-1 | I am 1", "web-2 | I am 2", "web-3 | I am 3"]);
    assert_eq!(node.must(&["stop", "web"]), "web-1: STOPPED\nweb-2: STOPPED\nweb-3: STOPPED\n");
    assert_eq!(node.must(&["why", "web"]).matches("shall rest").count(), 3);
    assert_eq!(node.must(&["start", "web"]).matches("RUNNING, pid").count(), 3);
    assert_eq!(node.must(&["status", "web"]).matches("RUNNING").count(), 3);
    assert_eq!(node.must(&["restart", "web", "--wait"]).matches("RUNNING, pid").count(), 3);
    assert_eq!(node.must(&["disable", "web"]).matches("STOPPED").count(), 3);
    node.must(&["enable", "web", "--no-wait"]);
    node.running("web-3");
}

#[test]
fn a_job_whose_check_fails_is_not_as_it_should_be() {
    let node = Setup::config(
        "[node]\nexit = \"never\"\n[jobs.sick]\nexec = \"sleep 1000\"\n\
         health = { exec = \"false\", interval = \"1s\" }\n",
    )
    .start();
    node.until_health("sick", "unhealthy");
    for args in [&["status"][..], &["status", "sick"], &["status", "--json"]] {
        assert_eq!(node.ask(args).status.code(), Some(3), "{args:?}");
    }
    // It has never passed: that is how a start looks, and no reason for an alarm.
    let told = node.until_told("check exec does not pass yet");
    assert!(!told.contains("warning: sick"), "{told}");
}

#[test]
fn a_check_that_passed_and_fails_is_a_warning() {
    let node = Setup::config(
        "[node]\nexit = \"never\"\n[jobs.web]\nexec = \"sleep 1000\"\n\
         health = { exec = [\"sh\", \"-c\", \"test ! -e bad\"], interval = \"100ms\" }\n",
    )
    .start();
    node.until_health("web", "healthy");
    std::fs::write(node.path().join("bad"), "").expect("a scratch directory");
    node.until_told("warning: web: check exec fails");
}

#[test]
fn the_logs_of_a_run_that_is_over_are_found_where_it_kept_them() {
    let mut node = Setup::config("[jobs.web]\nexec = \"echo hello\"\n").launch();
    assert!(node.wait().success());
    let logs = |run_dir: &str| {
        let mut command = Command::new(binary());
        command.args(["logs", "web", "--run-dir", run_dir]).env_remove("MAINSTAY_STATE_DIR");
        command.output().expect("the binary can be started")
    };
    let found = logs(&node.run_dir().display().to_string());
    assert_eq!(text(&found.stdout), "hello\n", "{}", text(&found.stderr));
    let lost = logs("/no/such/run");
    assert_eq!(lost.status.code(), Some(1));
    assert!(text(&lost.stderr).contains("/no/such/run"), "{}", text(&lost.stderr));
}

#[test]
fn an_upgrade_is_told_once_and_its_refusal_as_json_where_that_was_asked_for() {
    let node = Setup::config("[node]\nexit = \"never\"\n[jobs.job]\nexec = \"sleep 1000\"").start();
    node.must(&["upgrade"]);
    let mut events = node.events();
    events.wait_for("global", "upgraded");
    until("the agent is there", || node.try_agent());
    assert_eq!(node.until_told("upgraded from").matches("upgraded from").count(), 1);
    let refused = node.ask(&["upgrade", "/bin/false", "--json"]);
    assert_eq!(refused.status.code(), Some(1));
    let answer: serde_json::Value = serde_json::from_slice(&refused.stdout).expect("JSON");
    assert!(answer["error"].as_str().is_some_and(|why| why.contains("runs on")), "{answer}");
}

#[test]
fn a_number_that_no_event_has_yet_is_refused() {
    let node = Setup::config("[node]\nexit = \"never\"\n[jobs.job]\nexec = \"sleep 1000\"").start();
    let refused = node.ask(&["events", "--since", "1000000"]);
    assert_eq!(refused.status.code(), Some(1));
    let told = text(&refused.stderr);
    assert!(told.contains("there is no event 1000000 yet"), "{told}");
}
