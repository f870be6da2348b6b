//! Nothing of ours leaks into a job: signals, descriptors, terminals; and it does not outlive us.

use mainstay_tests::{Node, Setup, is_alive, proc, signal, until};
use rustix::process::Signal;
use std::path::Path;

const CONFIG: &str = r#"
    [node]
    exit = "never"
    [jobs.one]
    exec = "sleep 1000"
    [jobs.holder]
    exec = "sleep 1000"
    sockets = { a = "127.0.0.1:0", b = "udp:127.0.0.1:0" }
    notify = true
    stderr = "separate"
"#;

fn assert_clean(node: &Node, job: &str, sockets: u32) {
    let pid = node.running(job);
    for set in ["SigBlk", "SigIgn", "SigCgt"] {
        assert_eq!(proc::status(pid, set), "0000000000000000", "{set} of {job}");
    }
    let open = proc::descriptors(pid);
    assert_eq!(open.len() as u32, 3 + sockets, "{open:?}");
    assert_eq!(open[0].1, Path::new("/dev/null"), "stdin");
    let kind = |number: usize| open[number].1.display().to_string();
    assert!(kind(1).starts_with("pipe:") && kind(2).starts_with("pipe:"), "{open:?}");
    assert_eq!(kind(1) == kind(2), job == "one", "stdout and stderr");
    for number in 3..open.len() {
        assert!(kind(number).starts_with("socket:"), "{open:?}");
    }
    // A session of its own: no terminal, no group of ours.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    let own = pid.to_string();
    assert_eq!((fields[2], fields[3], fields[4]), (own.as_str(), own.as_str(), "0"));
}

#[test]
fn a_job_begins_with_clean_signals_and_its_own_descriptors_only() {
    let node = Setup::config(CONFIG).start();
    assert_clean(&node, "one", 0);
    assert_clean(&node, "holder", 2);
}

#[test]
fn what_mainstay_was_started_with_does_not_reach_jobs() {
    // As nohup and careless parents do: ignored signals, open files.
    let node = Setup::config(CONFIG)
        .after("trap '' HUP INT QUIT PIPE USR1 CHLD\nexec 7</etc/passwd 8>/dev/null")
        .start();
    assert_clean(&node, "one", 0);
    assert_clean(&node, "holder", 2);
    let agent = proc::descriptors(node.agent());
    assert!(!agent.iter().any(|(_, path)| path == Path::new("/etc/passwd")), "{agent:?}");
    // Signals reach us all the same.
    let mut events = node.events();
    signal(node.keeper(), Signal::HUP);
    events.wait("the signal is told", |event| {
        event["event"] == "signal" && event["detail"]["signal"] == "SIGHUP"
    });
    node.must(&["upgrade"]);
    node.must(&["restart", "one", "holder"]);
    assert_clean(&node, "one", 0);
    assert_clean(&node, "holder", 2);
    node.kill_agent();
    node.must(&["restart", "one"]);
    assert_clean(&node, "one", 0);
}

#[test]
fn a_job_does_not_outlive_its_keeper() {
    for setup in [Setup::config(CONFIG), Setup::config(CONFIG).without_cgroups()] {
        let node = setup.start();
        let pid = node.running("one");
        // Only the kernel can do it: the agent is frozen.
        signal(node.agent(), Signal::STOP);
        signal(node.keeper(), Signal::KILL);
        until("the job is gone", || (!is_alive(pid)).then_some(()));
    }
}
