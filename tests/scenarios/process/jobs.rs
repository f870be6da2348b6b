//! Jobs that are started, restarted, stopped, reported.

use mainstay_tests::{Setup, is_alive, signal, until};
use rustix::process::Signal;

#[test]
fn a_command_passes_its_exit_code_on_and_its_output_is_in_the_log() {
    let mut node = Setup::command(&["sh", "-c", "echo out; echo err >&2; exit 7"]).launch();
    assert_eq!(node.wait().code(), Some(7));
    assert_eq!(node.log("sh"), ["out", "err"]);
    assert_eq!(node.stdout(), "sh | out\nsh | err\n");
}

#[test]
fn a_job_that_crashes_is_started_again_and_every_exit_is_told_once() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.flaky]
        exec = ["sh", "-c", "exit 9"]
        restart = { on = "any", delay = "0s", limit = 5 }
    "#;
    let node = Setup::config(config).start();
    let mut events = node.events();
    events.wait("flaky is given up", |event| {
        event["event"] == "state" && event["detail"]["to"] == "FATAL"
    });
    let exits: Vec<u64> = events
        .seen()
        .iter()
        .filter(|event| event["event"] == "exitFailed")
        .map(|event| event["detail"]["incarnation"].as_u64().expect("a number"))
        .collect();
    assert_eq!(exits, [1, 2, 3, 4, 5, 6]);
    assert_eq!(node.job("flaky")["restarts"], 5);
}

#[test]
fn what_a_process_had_used_is_told_with_its_end_and_kept() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.busy]
        exec = ["sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; exit 3"]
        restart = "never"
        [jobs.absent]
        exec = ["/no/such/command"]
        restart = "never"
    "#;
    let node = Setup::config(config).start();
    let mut events = node.events();
    let usage = events.wait_for("busy", "exitFailed")["detail"]["usage"].clone();
    assert!(usage["cpu_user"].as_f64().is_some_and(|seconds| seconds > 0.0), "{usage}");
    assert!(usage["cpu_system"].as_f64().is_some_and(|seconds| seconds >= 0.0), "{usage}");
    assert!(usage["max_rss"].as_u64().is_some_and(|bytes| bytes > 0), "{usage}");
    assert_eq!(node.until_state("busy", "EXITED")["usage"], usage);
    // What never ran has used nothing.
    let absent = node.until_state("absent", "FATAL");
    assert!(absent["exit"]["error"].is_string() && absent.get("usage").is_none(), "{absent}");
    node.kill_agent();
    assert_eq!(node.job("busy")["usage"], usage);
}

#[test]
fn a_stop_ends_the_whole_tree_although_it_ignores_the_signal_and_hides() {
    for setup in [Setup::config(STUBBORN), Setup::config(STUBBORN).without_cgroups()] {
        let node = setup.start();
        node.running("stubborn");
        until("all of the tree is there", || (node.log("stubborn").len() == 3).then_some(()));
        let tree: Vec<u32> =
            node.log("stubborn").iter().map(|pid| pid.trim().parse().expect("a pid")).collect();
        assert!(tree.iter().all(|pid| is_alive(*pid)));
        let mut events = node.events();
        node.must(&["stop", "stubborn"]);
        events.wait_for("stubborn", "stopped");
        assert_eq!(tree.iter().filter(|pid| is_alive(**pid)).count(), 0, "{tree:?}");
        assert_eq!(node.job("stubborn")["state"], "STOPPED");
    }
}

/// Three processes that ignore SIGTERM: the leader, a child, and one in a session of its own.
const STUBBORN: &str = r#"
    [node]
    exit = "never"
    [jobs.stubborn]
    exec = ["sh", "-c", """
        trap '' TERM
        echo $$
        (sh -c 'echo $$; exec sleep 1000' &)
        (setsid sh -c 'echo $$; exec sleep 1000' > /dev/stdout 2>&1 &)
        while :; do sleep 1; done
    """]
    stop = { timeout = "200ms" }
"#;

#[test]
fn a_killed_keeper_takes_everything_with_it() {
    for setup in [Setup::config(STUBBORN), Setup::config(STUBBORN).without_cgroups()] {
        let node = setup.start();
        node.running("stubborn");
        until("all of the tree is there", || (node.log("stubborn").len() == 3).then_some(()));
        signal(node.keeper(), Signal::KILL);
        until("nobody is left", || node.processes().is_empty().then_some(()));
    }
}

#[test]
fn those_who_die_together_are_all_started_again() {
    let names: Vec<String> = (0..20).map(|number| format!("job{number}")).collect();
    let job = |name: &String| {
        format!(
            "[jobs.{name}]\nexec = \"sleep 1000\"\nrestart = {{ on = \"any\", delay = \"0s\" }}\n"
        )
    };
    let node = Setup::config(names.iter().map(job).collect::<String>()).start();
    let before: Vec<u32> = names.iter().map(|name| node.running(name)).collect();
    let keeper = node.keeper();
    // One signal tells of all deaths that it does not see at once.
    signal(keeper, Signal::STOP);
    for pid in &before {
        signal(*pid, Signal::KILL);
    }
    until("all are dead", || before.iter().all(|pid| !is_alive(*pid)).then_some(()));
    signal(keeper, Signal::CONT);
    for (name, before) in names.iter().zip(&before) {
        until("it runs again", || node.pid(name).filter(|pid| pid != before));
    }
}
