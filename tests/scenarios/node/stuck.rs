//! A run that ends because nothing can progress any more says so, and no other run does.

use mainstay_tests::Setup;

const WORDS: &str = "nothing can progress any more";

#[test]
fn hooks_that_run_each_time_do_not_keep_a_run_from_ending_well() {
    for (work, hook, code) in [("true", "true", 0), ("false", "true", 1), ("true", "false", 1)] {
        let config = format!(
            r#"
            [jobs.work]
            exec = "{work}"
            restart = "never"
            [jobs.drain]
            exec = "{hook}"
            when = {{ source = "work", each = "stopping" }}
            [jobs.tidy]
            exec = "{hook}"
            when = {{ source = "work", each = "stopped" }}
            "#
        );
        let mut node = Setup::config(config).launch();
        assert_eq!(node.wait().code(), Some(code), "{}", node.stderr());
        assert!(!node.stderr().contains(WORDS), "{}", node.stderr());
    }
}

#[test]
fn a_run_that_is_stuck_names_the_jobs_that_never_ran() {
    let config = r#"
        [jobs.first]
        exec = "false"
        restart = "never"
        [jobs.second]
        exec = "true"
        when = { source = "first", once = "exitSuccess" }
    "#;
    let mut node = Setup::config(config).launch();
    assert_eq!(node.wait().code(), Some(70));
    let told = node.stderr();
    assert!(told.contains("second never ran: it waited for first exitSuccess"), "{told}");
    assert!(told.contains(WORDS), "{told}");
}

#[test]
fn handlers_of_bad_news_that_never_came_were_not_needed() {
    for (how, code) in [("true", 0), ("false", 1)] {
        let config = format!(
            r#"
            [jobs.work]
            exec = "{how}"
            restart = "never"
            health = {{ exec = "true" }}
            [jobs.once]
            exec = "true"
            when = {{ source = "work", once = "timerExpired" }}
            [jobs.each]
            exec = "true"
            when = {{ source = "work", each = "unhealthy" }}
            [jobs.crashed]
            exec = "true"
            when = {{ source = "work", each = "exitFailed" }}
            [jobs.behind]
            exec = "true"
            when = {{ source = "once", once = "exitSuccess" }}
            "#
        );
        let mut node = Setup::config(config).launch();
        assert_eq!(node.wait().code(), Some(code), "{}", node.stderr());
        assert!(!node.stderr().contains(WORDS), "{}", node.stderr());
    }
}

#[test]
fn a_run_that_is_stuck_names_those_that_can_run_no_more_and_those_whose_app_was_aborted() {
    let config = r#"
        [apps.shop]
        [jobs.once]
        exec = ["sleep", "0.2"]
        [jobs.follower]
        exec = ["sleep", "1000"]
        while = { source = "once" }
        [jobs.cart]
        exec = "/nowhere/cart"
        restart = "never"
        app = "shop"
        place = { required = true }
        [jobs.till]
        exec = ["sleep", "1000"]
        app = "shop"
        place = { start_sequence = 2 }
    "#;
    let mut node = Setup::config(config).launch();
    assert_eq!(node.wait().code(), Some(70), "{}", node.stderr());
    let told = node.stderr();
    for line in [
        "follower can run no more: it waited for once healthy, which can never come: once has ended",
        "till never ran: the start of its app shop was aborted",
    ] {
        assert!(told.contains(line), "no '{line}' in {told}");
    }
}

#[test]
fn a_main_job_that_ends_with_the_same_code_is_not_called_stuck() {
    let mut node = Setup::command(&["sh", "-c", "exit 70"]).launch();
    assert_eq!(node.wait().code(), Some(70));
    assert!(!node.stderr().contains(WORDS), "{}", node.stderr());
}
