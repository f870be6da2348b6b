//! `when`: what starts a job, in which order, and what becomes of one that can never start.

use super::{position, said};
use mainstay_tests::{Setup, signal, until};
use rustix::process::Signal;

#[test]
fn a_chain_runs_in_order_and_the_node_ends_with_it() {
    let config = r#"
        [jobs.third]
        exec = "true"
        when = { source = "second", once = "exitSuccess" }
        [jobs.second]
        exec = "true"
        when = { source = "first", once = "exitSuccess" }
        [jobs.first]
        exec = ["sleep", "0.3"]
    "#;
    let mut node = Setup::config(config).start();
    let mut events = node.events();
    events.to_end();
    let order = said(&events);
    let [first, second, third] =
        ["first", "second", "third"].map(|job| position(&order, job, "exitSuccess"));
    assert!(first < second && second < third, "{order:?}");
    assert_eq!(node.wait().code(), Some(0));
}

#[test]
fn what_can_never_start_is_explained_and_ends_the_run_with_70() {
    let config = r#"
        [jobs.db]
        exec = ["sh", "-c", "exit 3"]
        restart = "never"
        when = { interval = "1h" }
        [jobs.web]
        exec = "true"
        when = { source = "gate", once = "exitSuccess" }
        [jobs.gate]
        exec = ["sh", "-c", "exit 4"]
        restart = "never"
    "#;
    // A triggered job may always come again: as long as it is there, the node waits.
    let node = Setup::config(config).start();
    node.until_state("gate", "EXITED");
    let why = node.must(&["why", "web"]);
    assert!(why.lines().count() <= 5, "{why}");
    assert!(why.contains("gate") && why.contains("exitSuccess"), "{why}");
    let waiting = &node.job("web")["waiting"][0];
    assert_eq!((&waiting["source"], &waiting["event"]), (&"gate".into(), &"exitSuccess".into()));
    assert!(waiting["reason"].as_str().is_some_and(|text| text.contains("gate")), "{waiting}");

    let alone = config.replace("when = { interval = \"1h\" }", "");
    let mut node = Setup::config(alone).launch();
    assert_eq!(node.wait().code(), Some(70), "{}", node.stderr());
}

#[test]
fn an_interval_runs_at_once_and_again_and_a_signal_triggers() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.tick]
        exec = ["echo", "tick"]
        when = { interval = "200ms" }
        [jobs.hup]
        exec = ["echo", "hup"]
        when = { each = "SIGHUP" }
    "#;
    let node = Setup::config(config).start();
    let mut events = node.events();
    for _ in 0..3 {
        events.wait_for("tick", "exitSuccess");
    }
    assert!(node.log("hup").is_empty());
    signal(node.keeper(), Signal::HUP);
    events.wait_for("hup", "exitSuccess");
    signal(node.keeper(), Signal::HUP);
    events.wait_for("hup", "exitSuccess");
    until("both are written", || (node.log("hup") == ["hup", "hup"]).then_some(()));
}

#[test]
fn hooks_run_before_the_signal_and_after_the_end_of_their_job() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.web]
        exec = ["sh", "-c", "trap 'echo told >> log; exit 0' TERM; while :; do sleep 0.05; done"]
        [jobs.before]
        exec = ["sh", "-c", "echo before >> log"]
        when = { source = "web", each = "stopping" }
        [jobs.after]
        exec = ["sh", "-c", "echo after >> log"]
        when = { source = "web", each = "stopped" }
    "#;
    let node = Setup::config(config).start();
    node.running("web");
    let mut events = node.events();
    node.must(&["stop", "web"]);
    events.wait_for("after", "exitSuccess");
    let log = std::fs::read_to_string(node.path().join("log")).expect("they have written");
    assert_eq!(log, "before\ntold\nafter\n");
}

#[test]
fn a_shutdown_goes_against_the_order_of_the_start() {
    let job = |name: &str, when: &str| {
        format!(
            "[jobs.{name}]\nexec = [\"sh\", \"-c\", \"trap 'sleep 0.1; exit 0' TERM; while :; do \
             sleep 0.05; done\"]\n{when}\n"
        )
    };
    let after = |source: &str| format!("when = {{ source = \"{source}\", once = \"healthy\" }}");
    let config = job("web", &after("cache")) + &job("cache", &after("db")) + &job("db", "");
    let mut node = Setup::config(config).start();
    node.running("web");
    let mut events = node.events();
    signal(node.keeper(), Signal::TERM);
    events.to_end();
    let order = said(&events);
    let [web, cache, db] = ["web", "cache", "db"].map(|job| position(&order, job, "stopped"));
    assert!(web < cache && cache < db, "{order:?}");
    assert_eq!(node.wait().code(), Some(0));
}

#[test]
fn a_wait_that_takes_too_long_is_given_up() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.db]
        exec = ["sleep", "1000"]
        health = { exec = "false", interval = "100ms" }
        [jobs.web]
        exec = "true"
        when = { source = "db", once = "healthy", timeout = "300ms" }
    "#;
    let node = Setup::config(config).start();
    let mut events = node.events();
    events.wait_for("web", "timerExpired");
    node.until_state("web", "FATAL");
}

#[test]
fn cron_waits_for_its_moment_and_a_user_need_not() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.report]
        exec = ["echo", "now"]
        when = { cron = "0 3 29 2 *", tz = "Asia/Kolkata" }
    "#;
    let node = Setup::config(config).start();
    let waiting = node.job("report")["waiting"][0].clone();
    assert_eq!(waiting["source"], "cron", "{waiting}");
    assert!(node.log("report").is_empty());
    node.must(&["start", "report", "--now"]);
    until("it has written", || (node.log("report") == ["now"]).then_some(()));
}

/// As a shutdown and a restart: who waits for another stops before it, whatever comes first in the
/// command.
#[test]
fn jobs_that_are_stopped_together_go_against_the_edges() {
    let stubborn = r#"["sh", "-c", "trap 'sleep 0.3; exit 0' TERM; while :; do sleep 0.05; done"]"#;
    let config = format!(
        r#"
        [jobs.db]
        exec = {stubborn}
        [jobs.web]
        exec = {stubborn}
        when = {{ source = "db", once = "healthy" }}
        [jobs.beside]
        exec = "sleep 1000"
    "#
    );
    for order in [["db", "web"], ["web", "db"]] {
        let node = Setup::config(&config).start();
        node.until_state("web", "RUNNING");
        let mut events = node.events();
        let told = node.must(&["stop", order[0], order[1]]);
        assert_eq!(told.matches("STOPPED").count(), 2, "{told}");
        node.must(&["shutdown"]);
        events.to_end();
        let order = said(&events);
        assert!(
            position(&order, "web", "stopped") < position(&order, "db", "stopping"),
            "{order:?}"
        );
        assert!(position(&order, "db", "stopped") < position(&order, "beside", "stopping"));
    }
}
