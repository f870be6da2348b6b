//! What people ask of a node: start, enable, maintenance, apps; and what it answers.

use super::{position, said};
use mainstay_tests::{Setup, until};
use serde_json::Value;

#[test]
fn a_disabled_job_stays_disabled_over_runs() {
    let config = "[node]\nexit = \"never\"\n[jobs.web]\nexec = [\"sleep\", \"1000\"]\n";
    let mut node = Setup::config(config).start();
    node.running("web");
    node.must(&["disable", "web"]);
    node.until_state("web", "STOPPED");
    let refused = node.ask(&["start", "web"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("enable"));
    node.must(&["shutdown"]);
    node.wait();
    node.launch_again();
    node.wait_until_ready();
    assert_eq!(node.job("web")["desired"], "disabled");
    node.must(&["enable", "web"]);
    node.must(&["start", "web"]);
    node.running("web");
}

#[test]
fn more_arguments_hold_for_as_long_as_the_job_is_wanted() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.echo]
        exec = ["sh", "-c", "echo $*; exec sleep 1000", "sh", "one"]
    "#;
    let node = Setup::config(config).start();
    node.running("echo");
    node.must(&["stop", "echo"]);
    node.must(&["start", "echo", "--", "two", "three"]);
    until("it has said so", || (node.log("echo") == ["one", "one two three"]).then_some(()));
    assert_eq!(node.job("echo")["args"], serde_json::json!(["two", "three"]));
    node.must(&["restart", "echo"]);
    until("it has said it again", || (node.log("echo").len() == 3).then_some(()));
    assert_eq!(node.log("echo")[2], "one two three");
}

#[test]
fn start_waits_for_latches_unless_it_is_to_be_now() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.gate]
        exec = ["sleep", "1000"]
        [jobs.web]
        exec = ["sleep", "1000"]
        when = { source = "gate", once = "exitSuccess" }
    "#;
    let node = Setup::config(config).start();
    node.running("gate");
    let waiting = node.ask(&["start", "web", "--timeout", "300ms"]);
    assert_eq!(waiting.status.code(), Some(1));
    let why = node.must(&["why", "web"]);
    assert!(why.contains("gate") && why.contains("exitSuccess"), "{why}");
    node.must(&["start", "web", "--now"]);
    node.running("web");
}

#[test]
fn maintenance_is_an_event_and_a_state() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.note]
        exec = ["echo", "entered"]
        when = { source = "global", each = "enterMaintenance" }
    "#;
    let node = Setup::config(config).start();
    let mut events = node.events();
    node.must(&["maintenance", "on"]);
    events.wait_for("note", "exitSuccess");
    assert_eq!(node.status()["state"], "maintenance");
    node.must(&["maintenance", "off"]);
    events.wait_for("global", "exitMaintenance");
    assert_eq!(node.status()["state"], "running");
}

#[test]
fn instances_have_numbers_and_a_job_reloads_in_its_own_way() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.web]
        instances = 2
        exec = ["sh", "-c", "trap 'echo again {instance}' HUP; echo first {instance}; while :; do sleep 0.05; done"]
        reload = { signal = "SIGHUP" }
    "#;
    let node = Setup::config(config).start();
    for job in ["web-1", "web-2"] {
        node.running(job);
    }
    until("both have begun", || {
        (node.log("web-1") == ["first 1"] && node.log("web-2") == ["first 2"]).then_some(())
    });
    node.must(&["reload", "web-2"]);
    until("it has heard", || (node.log("web-2") == ["first 2", "again 2"]).then_some(()));
    assert_eq!(node.log("web-1"), ["first 1"]);
}

#[test]
fn an_app_starts_and_stops_as_one() {
    let config = r#"
        [node]
        exit = "never"
        [apps.shop]
        start_sequence = 0
        [jobs.cart]
        exec = ["sleep", "1000"]
        app = "shop"
        place = { start_sequence = 2 }
        [jobs.stock]
        exec = ["sleep", "1000"]
        app = "shop"
        place = { start_sequence = 1 }
    "#;
    let node = Setup::config(config).start();
    assert_eq!(node.job("cart")["state"], "STOPPED");
    node.must(&["app", "start", "shop"]);
    assert_eq!(node.job("cart")["state"], "RUNNING");
    assert_eq!(node.job("stock")["app"], "shop");
    node.must(&["app", "stop", "shop"]);
    assert_eq!(node.job("cart")["state"], "STOPPED");
    assert_eq!(node.job("stock")["state"], "STOPPED");
    assert_eq!(node.ask(&["app", "start", "shoe"]).status.code(), Some(1));
}

#[test]
fn the_command_describes_itself() {
    let config = "[node]\nexit = \"never\"\n[jobs.web]\nexec = [\"sleep\", \"1000\"]\n";
    let node = Setup::config(config).start();
    let schema: Value = serde_json::from_str(&node.must(&["schema"])).expect("JSON");
    assert!(schema["properties"]["jobs"].is_object(), "{schema}");
    for shell in ["bash", "zsh", "fish"] {
        assert!(node.must(&["completions", shell]).contains("maintenance"));
    }
    assert!(node.must(&["man"]).contains(".TH mainstay"));
}

#[test]
fn a_status_of_many_jobs_can_be_narrowed_down() {
    let mut config = "[node]\nexit = \"never\"\n".to_owned();
    for number in 0..30 {
        config += &format!("[jobs.job-{number}]\nexec = [\"sleep\", \"1000\"]\n");
    }
    config += "[jobs.broken]\nexec = [\"false\"]\nrestart = \"never\"\n";
    let node = Setup::config(config).start();
    node.until_state("broken", "EXITED");
    let failed = node.ask(&["status", "--failed"]);
    let text = String::from_utf8_lossy(&failed.stdout).into_owned();
    assert!(text.contains("broken") && !text.contains("job-7"), "{text}");
    assert_eq!(failed.status.code(), Some(3));
    assert!(node.ask(&["status"]).stdout.len() > failed.stdout.len());
}

#[test]
fn arguments_for_a_job_that_runs_are_refused_and_taken_by_a_restart() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.web]
        exec = ["sh", "-c", "echo got $*; exec sleep 1000", "sh"]
    "#;
    let node = Setup::config(config).start();
    let first = node.running("web");
    let refused = node.ask(&["start", "web", "--", "-v"]);
    assert_eq!(refused.status.code(), Some(1));
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(text.contains("mainstay restart web -- ARGS"), "{text}");
    assert_eq!(node.running("web"), first);
    node.must(&["restart", "web", "--", "-v"]);
    assert_ne!(node.running("web"), first);
    node.until_logged("web", "got -v");
    assert_eq!(node.job("web")["args"], serde_json::json!(["-v"]));
}

#[test]
fn a_restart_of_several_is_one_request_and_each_waits_for_the_new_other() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.web]
        exec = ["sleep", "1000"]
        when = { source = "db", once = "healthy" }
        [jobs.db]
        exec = ["sh", "-c", "rm -f up; sleep 0.3; touch up; exec sleep 1000"]
        health = { exec = ["test", "-e", "up"], interval = "50ms", timeout = "10s" }
    "#;
    let node = Setup::config(config).start();
    let web = node.running("web");
    let mut events = node.events();
    let told = node.must(&["restart", "db", "web"]);
    assert!(told.contains("db: RUNNING, healthy, pid") && told.contains("web: RUNNING, pid"));
    assert_ne!(node.running("web"), web);
    events.wait("the second web", |event| {
        event["source"] == "web" && event["detail"]["incarnation"] == 2
    });
    let order = said(&events);
    let last = |source: &str, event: &str| {
        order.iter().rposition(|it| *it == (source.to_owned(), event.to_owned()))
    };
    assert!(last("db", "healthy").is_some() && last("db", "healthy") < last("web", "state"));
}

#[test]
fn all_names_are_looked_up_before_anything_is_done() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.web]
        exec = ["sleep", "1000"]
        [jobs.worker]
        exec = ["sleep", "1000"]
    "#;
    let node = Setup::config(config).start();
    let pids = (node.running("web"), node.running("worker"));
    for verb in ["restart", "stop", "start", "kill", "disable"] {
        let refused = node.ask(&[verb, "web", "nope"]);
        assert_eq!(refused.status.code(), Some(1), "{verb}");
        let told = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(told.contains("there is no job 'nope'"), "{verb}: {told}");
        let refused = node.ask(&[verb, "web", "wroker"]);
        let told = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(told.contains("did you mean 'worker'?"), "{verb}: {told}");
    }
    assert_eq!((node.running("web"), node.running("worker")), pids, "nothing was done");
}

#[test]
fn start_returns_when_a_job_has_started_or_says_how_it_ended() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.fails]
        exec = ["sh", "-c", "sleep 0.1; exit 3"]
        restart = "never"
        [jobs.well]
        exec = "true"
        [jobs.lives]
        exec = ["sleep", "1000"]
        [jobs.slow]
        exec = ["sh", "-c", "rm -f up; sleep 0.3; touch up; exec sleep 1000"]
        health = { exec = ["test", "-e", "up"], interval = "50ms", timeout = "10s" }
        [jobs.sick]
        exec = ["sleep", "1000"]
        health = { name = "deep", exec = ["sh", "-c", "echo out of order; exit 1"], interval = "50ms" }
    "#;
    let node = Setup::config(config).start();
    node.until_state("fails", "EXITED");
    node.must(&["stop", "lives", "slow", "sick"]);
    let failed = node.ask(&["start", "fails"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("EXITED: exit code 3"));
    assert!(node.must(&["start", "well"]).contains("well: EXITED, exit code 0"));
    let begun = std::time::Instant::now();
    assert!(node.must(&["start", "lives"]).contains("lives: RUNNING, pid"));
    assert!(begun.elapsed() >= std::time::Duration::from_millis(500), "it has lived for a while");
    assert!(node.must(&["start", "slow"]).contains("slow: RUNNING, healthy, pid"));
    let sick = node.ask(&["start", "sick", "--timeout", "300ms"]);
    assert_eq!(sick.status.code(), Some(1));
    let told = String::from_utf8_lossy(&sick.stderr).into_owned();
    assert!(told.contains("not healthy: deep: exit code 1: out of order"), "{told}");
    node.must(&["start", "sick", "--no-wait"]);
}

#[test]
fn the_start_of_an_app_is_done_when_all_with_checks_are_healthy() {
    let config = r#"
        [node]
        exit = "never"
        [apps.shop]
        start_sequence = 0
        [jobs.db]
        exec = ["sh", "-c", "rm -f up; sleep 0.5; touch up; exec sleep 1000"]
        app = "shop"
        place = { start_sequence = 1 }
        health = { exec = ["test", "-e", "up"], interval = "50ms", timeout = "10s" }
        [jobs.web]
        exec = ["sleep", "1000"]
        app = "shop"
        place = { start_sequence = 2 }
    "#;
    let node = Setup::config(config).start();
    let mut events = node.events();
    assert!(node.must(&["app", "start", "shop"]).contains("db: RUNNING, healthy, pid"));
    events.wait_for("db", "healthy");
    let order = said(&events);
    assert!(position(&order, "web", "healthy") < position(&order, "db", "healthy"), "{order:?}");
    node.must(&["app", "stop", "shop"]);
    let early = node.ask(&["app", "start", "shop", "--timeout", "200ms"]);
    assert_eq!(early.status.code(), Some(1), "db is not healthy yet");
}

#[test]
fn how_a_job_ended_before_says_nothing_about_the_start_of_its_app() {
    let config = r#"
        [node]
        exit = "never"
        [apps.shop]
        start_sequence = 0
        [jobs.prepare]
        exec = ["sleep", "0.3"]
        app = "shop"
        place = { start_sequence = 1, wait_exit = true }
        [jobs.migrate]
        exec = ["test", "-e", "data"]
        restart = "never"
        app = "shop"
        place = { start_sequence = 2, wait_exit = true }
    "#;
    let node = Setup::config(config).start();
    let failed = |words: &[&str]| {
        let answer = node.ask(words);
        assert_eq!(answer.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&answer.stderr).contains("migrate is EXITED: exit code 1"));
    };
    let data = node.path().join("data");
    for action in ["start", "restart"] {
        failed(&["app", action, "shop"]);
        std::fs::write(&data, "").unwrap();
        let told = node.must(&["app", action, "shop"]);
        assert!(told.contains("migrate: EXITED, exit code 0"), "{told}");
        std::fs::remove_file(&data).unwrap();
        failed(&["app", action, "shop"]);
    }
}
