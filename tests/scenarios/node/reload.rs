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
fn a_reload_names_every_table_that_has_changed() {
    const JOB: &str = "[node]\nexit = \"never\"\n[jobs.web]\nexec = [\"sleep\", \"1000\"]\n";
    let node = Setup::config(JOB).start();
    let web = node.running("web");
    let mut config = JOB.to_owned();
    for (table, keys) in [
        ("log", "level = \"debug\""),
        ("discovery", "engine = \"file\"\ndir = \"services\""),
        ("watches.cache", ""),
        ("apps.shop", ""),
    ] {
        config += &format!("[{table}]\n{keys}\n");
        node.configure(&config);
        let line = format!("~ [{}]", table.split('.').next().unwrap_or_default());
        for command in ["plan", "reload"] {
            let said = node.must(&[command]);
            let told: Vec<&str> = said.lines().collect();
            assert!(told.len() == 1 && told[0].starts_with(&line), "{command} {table}: {said}");
        }
        assert!(node.must(&["plan"]).contains("nothing would change"), "{table}");
    }
    assert_eq!(node.running("web"), web);
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
    // The keeper hears of another log a moment after the reload is answered.
    let say_until_shown = |word: &str, line: &str| {
        until("it is forwarded", || {
            say(word);
            node.stdout().lines().any(|it| it == line).then_some(())
        });
    };
    say("one");
    node.until_logged("job", "one");
    node.configure(&config("forward = true, format = \"raw\""));
    node.must(&["reload"]);
    say_until_shown("two", "two");
    node.until_logged("job", "two");
    assert!(node.stdout().lines().all(|it| it == "two"), "{}", node.stdout());

    node.configure(&config("file = \"none\""));
    node.must(&["reload"]);
    node.kill_agent();
    node.must(&["upgrade"]);
    say_until_shown("three", "job | three");
    let mut logged = node.log("job");
    logged.dedup();
    assert_eq!(logged, ["one", "two"]);
    assert_eq!(node.running("job"), pid);
}

#[test]
fn those_who_follow_a_changed_job_are_in_the_plan_and_go_down_before_it() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.db]
        exec = ["sleep", "1000"]
        [jobs.web]
        exec = ["sleep", "1000"]
        while = { source = "db" }
        [jobs.tick]
        exec = "true"
        when = { interval = "15m" }
        [jobs.night]
        exec = "true"
        when = { cron = "0 3 * * *" }
        [jobs.still]
        exec = ["sleep", "1000"]
    "#;
    let node = Setup::config(config).start();
    let before = ["db", "web", "still"].map(|job| node.running(job));
    node.until_state("tick", "EXITED");
    let after = config
        .replacen("[\"sleep\", \"1000\"]", "[\"sleep\", \"2000\"]", 1)
        .replace("15m", "30m")
        .replace("0 3", "0 4");
    node.configure(&after);
    let plan = node.must(&["plan"]);
    for line in [
        "~ db  is restarted (exec)",
        "~ web  is restarted (follows db)",
        "~ tick  waits for interval 1800s (when)",
        "~ night  waits for cron 0 4 * * * (when)",
    ] {
        assert!(plan.lines().any(|it| it == line), "no '{line}' in\n{plan}");
    }
    assert!(!plan.contains("still"), "{plan}");

    let mut events = node.events();
    assert_eq!(node.must(&["reload"]), plan);
    let told = events.wait_for("web", "stopped")["seq"].as_u64();
    assert!(told < events.wait_for("db", "stopping")["seq"].as_u64(), "the follower goes first");
    until("both run anew", || {
        (node.running("db") != before[0] && node.running("web") != before[1]).then_some(())
    });
    assert_eq!(node.running("still"), before[2]);
    assert_eq!(node.job("tick")["incarnation"], 1, "an interval counts from the last start");
}

#[test]
fn a_disabled_job_that_leaves_comes_back_disabled_over_runs_too() {
    let config = "[node]\nexit = \"never\"\n[jobs.same]\nexec = [\"sleep\", \"1000\"]\n";
    let with = format!("{config}[jobs.web]\nexec = [\"sleep\", \"1000\"]\n");
    let mut node = Setup::config(&with).start();
    node.running("web");
    node.must(&["disable", "web"]);
    node.configure(config);
    node.must(&["reload"]);
    node.configure(&with);
    node.must(&["reload"]);
    assert_eq!(node.job("web")["desired"], "disabled");

    // A run that does not know the job keeps its name.
    node.configure(config);
    node.must(&["shutdown"]);
    assert!(node.wait().success());
    node.launch_again();
    node.wait_until_ready();
    node.running("same");
    node.must(&["disable", "same"]);
    node.must(&["enable", "same"]);
    node.configure(&with);
    node.must(&["reload"]);
    assert_eq!(node.job("web")["desired"], "disabled");
}

#[test]
fn what_is_removed_with_its_hooks_or_is_one_instance_fewer_is_drained_first() {
    const WEB: &str = r#"
        [node]
        exit = "never"
        [jobs.web]
        exec = ["sh", "-c", "trap 'echo closed >> told; exit 0' TERM; echo up; while :; do sleep 0.05; done"]
        stop = { to = "leader" }
        instances = 2
        [jobs.drain]
        exec = ["sh", "-c", "echo drained >> told"]
        when = { source = "web", each = "stopping" }
    "#;
    const ALONE: &str = "[node]\nexit = \"never\"\n[jobs.alone]\nexec = \"sleep 1000\"\n";
    let node = Setup::config(WEB).start();
    for job in ["web-1", "web-2"] {
        node.running(job);
        until("its trap is set", || node.must(&["logs", job]).contains("up").then_some(()));
    }
    let told = || std::fs::read_to_string(node.path().join("told")).unwrap_or_default();
    node.configure(&WEB.replace("instances = 2", "instances = 1"));
    node.must(&["reload"]);
    assert_eq!(told(), "drained\nclosed\n");
    node.configure(ALONE);
    node.must(&["reload"]);
    assert_eq!(told(), "drained\nclosed\n".repeat(2));
}
