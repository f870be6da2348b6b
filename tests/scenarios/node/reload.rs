//! Reload: only what changed is touched, and `plan` says so before.

use mainstay_tests::{Setup, is_alive, until};
use serde_json::Value;

const BEFORE: &str = r#"
    [node]
    exit = "never"
    [jobs.same]
    exec = ["sleep", "1000"]
    [jobs.gone]
    exec = ["sleep", "1000"]
    [jobs.other]
    exec = ["sleep", "1000"]
    [jobs.live]
    exec = ["sleep", "1000"]
    restart = "on-failure"
"#;

const AFTER: &str = r#"
    [node]
    exit = "never"
    [jobs.fresh]
    exec = ["sleep", "1000"]
    [jobs.same]
    exec = ["sleep", "1000"]
    [jobs.other]
    exec = ["sleep", "2000"]
    [jobs.live]
    exec = ["sleep", "1000"]
    restart = "always"
"#;

#[test]
fn a_reload_touches_what_has_changed_and_does_what_plan_said() {
    let node = Setup::config(BEFORE).start();
    let [same, gone, other, live] = ["same", "gone", "other", "live"].map(|job| node.running(job));
    node.configure(AFTER);
    let plan: Value = serde_json::from_str(&node.must(&["plan", "--json"])).expect("JSON");
    assert_eq!(plan["added"], serde_json::json!(["fresh"]), "{plan}");
    assert_eq!(plan["removed"], serde_json::json!(["gone"]), "{plan}");
    let changed: Vec<&str> = plan["changed"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|change| change["job"].as_str())
        .collect();
    assert_eq!(changed, ["other", "live"], "{plan}");
    assert_eq!(node.running("same"), same, "a plan changes nothing");

    let done: Value = serde_json::from_str(&node.must(&["reload", "--json"])).expect("JSON");
    assert_eq!(done, plan);
    node.running("fresh");
    until("what was removed is gone", || (!is_alive(gone)).then_some(()));
    until("what changed runs anew", || (node.running("other") != other).then_some(()));
    assert_eq!((node.running("same"), node.running("live")), (same, live));
    let jobs = node.status()["jobs"].as_array().expect("a list").len();
    assert_eq!(jobs, 4);
    let again = node.must(&["plan"]);
    assert!(again.contains("nothing"), "{again}");

    // The next agent goes on with what is applied now.
    mainstay_tests::signal(node.agent(), rustix::process::Signal::KILL);
    node.wait_until_ready();
    assert_eq!((node.running("same"), node.running("live")), (same, live));
    node.running("fresh");
}

#[test]
fn an_invalid_configuration_changes_nothing_and_says_where() {
    let node = Setup::config(BEFORE).start();
    let same = node.running("same");
    node.configure("[jobs.same]\nexce = \"x\"\n");
    for command in ["plan", "reload"] {
        let refused = node.ask(&[command]);
        assert_eq!(refused.status.code(), Some(78), "{command}");
        let text = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(text.contains("mainstay.toml") && text.contains("exce"), "{text}");
    }
    assert_eq!(node.running("same"), same);
    node.running("gone");
}

#[test]
fn another_log_holds_at_once_for_what_a_running_job_writes() {
    let config = |log: &str| {
        format!(
            "[node]\nexit = \"never\"\n[jobs.job]\nlog = {{ {log} }}\n\
             exec = [\"sh\", \"-c\", \"while read word; do echo $word; done <>say\"]"
        )
    };
    let node = Setup::config(config("forward = false")).after("mkfifo say").start();
    let pid = node.running("job");
    let say =
        |word: &str| std::fs::write(node.path().join("say"), format!("{word}\n")).expect("a fifo");
    let until_shown = |line: &str| {
        until("it is forwarded", || node.stdout().lines().any(|it| it == line).then_some(()))
    };
    say("one");
    node.until_logged("job", "one");
    node.configure(&config("forward = true, format = \"raw\""));
    node.must(&["reload"]);
    say("two");
    until_shown("two");
    node.until_logged("job", "two");
    assert_eq!(node.stdout(), "two\n");

    node.configure(&config("file = \"none\""));
    node.must(&["reload"]);
    node.kill_agent();
    node.must(&["upgrade"]);
    say("three");
    until_shown("job | three");
    assert_eq!(node.log("job"), ["one", "two"]);
    assert_eq!(node.running("job"), pid);
}
