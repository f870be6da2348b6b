//! `why` in the world: the line of the configuration, also after another agent has taken over.

use mainstay_tests::{Setup, signal, until};
use rustix::process::Signal;

#[test]
fn why_names_the_line_and_so_does_the_next_agent() {
    let config = "[node]\nexit = \"never\"\n[jobs.db]\nexec = [\"sleep\", \"1000\"]\n[jobs.web]\n\
                  exec = [\"sleep\", \"1000\"]\nwhen = { source = \"db\", once = \"exitFailed\" }\n";
    let node = Setup::config(config).start();
    node.running("db");
    let told = |lines: [&str; 2]| {
        let why = node.must(&["why", "web"]);
        assert!(lines.iter().all(|line| why.contains(line)), "{why}");
    };
    told(["mainstay.toml:5)", "db exitFailed (/"]);
    told(["mainstay.toml:7)", "db is RUNNING"]);
    signal(node.agent(), Signal::KILL);
    node.wait_until_ready();
    told(["mainstay.toml:5)", "mainstay.toml:7)"]);

    // A reload brings the lines of today, although nothing else has changed.
    node.configure(&format!("\n\n{config}"));
    assert!(node.must(&["reload"]).contains("nothing has changed"));
    told(["mainstay.toml:7)", "mainstay.toml:9)"]);
    signal(node.agent(), Signal::KILL);
    node.wait_until_ready();
    told(["mainstay.toml:7)", "mainstay.toml:9)"]);
}

#[test]
fn a_job_given_up_by_its_timeout_says_what_has_not_come() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.db]
        exec = ["sleep", "1000"]
        [jobs.web]
        exec = ["sleep", "1000"]
        when = { source = "db", once = "exitFailed", timeout = "100ms" }
    "#;
    let node = Setup::config(config).start();
    node.until_state("web", "FATAL");
    let why = node.must(&["why", "web"]);
    assert!(
        why.contains("db exitFailed has not come") && why.contains("mainstay.toml:8)"),
        "{why}"
    );
}

#[test]
fn a_follower_of_what_has_ended_for_good_is_explained_and_ends_the_run_with_70() {
    let config = r#"
        [jobs.once]
        exec = ["sleep", "0.3"]
        [jobs.web]
        exec = ["sleep", "1000"]
        while = { source = "once" }
    "#;
    let mut node = Setup::config(config).launch();
    assert_eq!(node.wait().code(), Some(70), "{}", node.stderr());

    let forever = format!("[node]\nexit = \"never\"\n{config}");
    let node = Setup::config(forever).start();
    until("it can never come back", || {
        let reason = node.job("web")["waiting"][0]["reason"].clone();
        reason.as_str().is_some_and(|text| text.contains("once has ended")).then_some(())
    });
}
