//! No descriptors left, no processes left.

use mainstay_tests::{
    Node, Scratch, Setup, is_alive, needs, needs_root, signal, until, until_it_rests,
};
use rustix::process::Signal;
use std::{os::unix::net::UnixStream, path::Path};

/// Many jobs that sleep.
fn many_jobs(count: u32) -> String {
    let jobs = (1..=count).map(|number| {
        format!(
            "[jobs.job{number}]\nexec = \"sleep 1000\"\nrestart = {{ on = \"any\", delay = \"300ms\" }}\n"
        )
    });
    format!("[node]\nexit = \"never\"\n[log]\nforward = false\n{}", jobs.collect::<String>())
}

/// Names of jobs that run, and the reasons of those that could not be started.
fn running_and_errors(node: &Node) -> (Vec<String>, Vec<String>) {
    let status = node.status();
    let jobs = status["jobs"].as_array().expect("a list");
    let name = |job: &serde_json::Value| job["name"].as_str().expect("a name").to_owned();
    let running = jobs.iter().filter(|job| job["state"] == "RUNNING").map(name).collect();
    let errors = jobs
        .iter()
        .filter(|job| job["state"] == "BACKOFF")
        .filter_map(|job| Some(job["exit"]["error"].as_str()?.to_owned()))
        .collect();
    (running, errors)
}

/// Waits until every job either runs or has a reason why not; some of each.
fn until_divided(node: &Node, count: usize) -> (Vec<String>, Vec<String>) {
    until("some jobs run and the others say why not", || {
        let (running, errors) = running_and_errors(node);
        (running.len() + errors.len() == count && !running.is_empty() && !errors.is_empty())
            .then_some((running, errors))
    })
}

#[test]
fn without_descriptors_a_start_fails_with_its_reason_and_the_rest_goes_on() {
    let node = Setup::config(many_jobs(60)).after("ulimit -n 128").start();
    let (running, errors) = until_divided(&node, 60);
    for error in &errors {
        // EMFILE, which C libraries word differently.
        assert!(error.contains("(os error 24)"), "{error}");
    }
    let keeper = node.keeper();
    let pid = node.pid(&running[0]).expect("it runs");

    // Whoever knocks now is let in or turned away, and the keeper does not spin.
    let socket = node.run_dir().join("keeper.sock");
    let control = node.run_dir().join("jobs").join(&running[0]).join("control");
    let connect = |path: &Path| UnixStream::connect(path).expect("it listens");
    let knocking: Vec<UnixStream> =
        (0..20).flat_map(|_| [connect(&socket), connect(&control)]).collect();
    until_it_rests(keeper);
    assert!(is_alive(pid));
    node.must(&["stop", &running[0]]);
    assert!(!is_alive(pid));
    drop(knocking);

    // Room again: what could not be started is.
    for name in &running[1..] {
        node.must(&["stop", name]);
    }
    until("others take their places", || {
        let (now, _) = running_and_errors(&node);
        now.iter().any(|name| !running.contains(name)).then_some(())
    });
    node.kill_agent();
    node.must(&["shutdown"]);
}

#[test]
fn with_few_descriptors_a_node_is_upgraded_and_gets_another_agent() {
    let node = Setup::config(many_jobs(2)).after("ulimit -n 64").start();
    let pids = ["job1", "job2"].map(|job| node.running(job));
    node.must(&["upgrade"]);
    node.kill_agent();
    node.must(&["upgrade"]);
    assert_eq!(["job1", "job2"].map(|job| node.running(job)), pids);
}

#[test]
fn without_processes_a_start_fails_with_its_reason_and_the_rest_goes_on() {
    needs_root();
    needs("setpriv");
    // A user of our own: the limit counts all its processes.
    let uid = 61_000 + std::process::id() % 1000;
    let scratch = Scratch::new();
    scratch.give_to(uid);
    let id = uid.to_string();
    let node = Setup::config(many_jobs(30))
        .under(&["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"])
        .under(&["prlimit", "--nproc=24"])
        .launch_in(scratch);
    node.wait_until_ready();
    let (running, errors) = until_divided(&node, 30);
    for error in &errors {
        assert!(error.contains("clone") && error.contains("temporarily unavailable"), "{error}");
    }
    for name in &running {
        node.must(&["stop", name]);
    }
    until("others take their places", || {
        let (now, _) = running_and_errors(&node);
        now.iter().any(|name| !running.contains(name)).then_some(())
    });
}

#[test]
fn an_agent_that_cannot_be_cloned_is_tried_again_while_jobs_run_on() {
    needs_root();
    let uid = 62_000 + std::process::id() % 1000;
    let scratch = Scratch::new();
    scratch.give_to(uid);
    let id = uid.to_string();
    let node = Setup::config(many_jobs(1))
        .under(&["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"])
        .launch_in(scratch);
    node.wait_until_ready();
    let (pid, keeper) = (node.running("job1"), node.keeper());
    // As that user, since not every root may change the limits of others.
    let limit = |count: &str| {
        let set = std::process::Command::new("setpriv")
            .args(["--reuid", &id, "--regid", &id, "--clear-groups"])
            .args(["prlimit", "--pid", &keeper.to_string(), &format!("--nproc={count}")])
            .status();
        assert!(set.expect("setpriv can be started").success());
    };
    limit("1:1000");
    // The spare takes over, and there is no other.
    node.kill_agent();
    assert_eq!(node.pid("job1"), Some(pid));
    signal(node.agent(), Signal::KILL);
    node.until_told("cannot start the agent");
    assert!(is_alive(pid));
    limit("1000:1000");
    node.wait_until_ready();
    assert_eq!(node.pid("job1"), Some(pid));
}
