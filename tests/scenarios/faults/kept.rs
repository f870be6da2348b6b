//! What was answered is kept: over an agent that is killed at once, and refused where there is no
//! room for it.

use super::full_disk::fill;
use mainstay_tests::{Node, Setup, needs_root, signal, until};
use rustix::process::Signal;
use std::{fs, path::Path};

fn sleepers(count: usize) -> String {
    let jobs = (0..count).map(|n| format!("[jobs.job{n}]\nexec = \"sleep 1000\"\n"));
    format!("[node]\nexit = \"never\"\n{}", jobs.collect::<String>())
}

fn disabled(node: &Node) -> Vec<String> {
    let text = fs::read_to_string(node.state_dir().join("disabled")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn refused(node: &Node, args: &[&str]) -> String {
    let output = node.ask(args);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{args:?}: {told}");
    assert!(told.contains("nothing is changed") && told.contains("No space left"), "{told}");
    told
}

#[test]
fn every_disable_that_was_answered_is_kept_over_a_killed_agent() {
    const JOBS: usize = 40;
    let node = Setup::config(sleepers(JOBS)).start();
    for n in 0..JOBS {
        node.running(&format!("job{n}"));
    }
    for n in 0..JOBS {
        node.must(&["disable", &format!("job{n}"), "--no-wait"]);
        assert_eq!(disabled(&node).len(), n + 1, "on the disk before the answer");
        // More often, and the keeper would wait before it starts another one.
        if n % 4 == 3 {
            signal(node.agent(), Signal::KILL);
        }
    }
    node.wait_until_ready();
    let status = node.status();
    let jobs = status["jobs"].as_array().expect("a list");
    assert!(jobs.iter().all(|job| job["desired"] == "disabled"), "{status}");
    node.must(&["enable", "job7", "--no-wait"]);
    signal(node.agent(), Signal::KILL);
    assert_eq!(disabled(&node).len(), JOBS - 1);
    node.running("job7");
}

#[test]
fn a_state_directory_without_room_refuses_to_disable_and_changes_nothing() {
    needs_root();
    let node = Setup::config(sleepers(3))
        .with_mounts(
            "mkdir -p \"$MAINSTAY_STATE_DIR\"
             mount -t tmpfs -o size=256k,mode=755 none \"$MAINSTAY_STATE_DIR\"",
        )
        .start();
    let pid = node.running("job0");
    node.must(&["disable", "job1"]);
    node.must(&["disable", "job2"]);
    let filling = node.state_dir().join("filling");
    fill(&filling);
    refused(&node, &["disable", "job0"]);
    refused(&node, &["enable", "job1", "--no-wait"]);
    assert_eq!((node.job("job0")["desired"].as_str(), node.pid("job0")), (Some("run"), Some(pid)));
    assert_eq!(node.job("job1")["desired"], "disabled");
    assert_eq!(disabled(&node), ["job1", "job2"]);
    let told = node.must(&["events", "--json", "--since", "0"]);
    assert_eq!(told.matches("\"disabled\"").count(), 2, "{told}");

    fs::remove_file(&filling).expect("our own file");
    node.must(&["disable", "job0"]);
    assert_eq!(disabled(&node), ["job0", "job1", "job2"]);
}

/// Takes the room until not even a page is left for the journal.
fn fill_run_dir(node: &Node, refused_by_now: impl Fn() -> bool) -> impl AsRef<Path> {
    let filling = node.run_dir().join("filling");
    until("there is no room", || {
        fill(&filling);
        refused_by_now().then_some(())
    });
    filling
}

#[test]
fn a_run_directory_without_room_refuses_a_reload_and_a_variable_and_changes_nothing() {
    needs_root();
    let node = Setup::config(sleepers(2))
        .with_mounts(
            "mkdir -p \"$MAINSTAY_RUN_DIR\"
             mount -t tmpfs -o size=256k,mode=711 none \"$MAINSTAY_RUN_DIR\"",
        )
        .start();
    let pid = node.running("job0");
    let taken = std::cell::Cell::new(0);
    let filling = fill_run_dir(&node, || {
        let answer = node.ask(&["environ", &format!("NUMBER={}", taken.get() + 1)]);
        let done = answer.status.success();
        taken.set(taken.get() + u32::from(done));
        !done
    });
    refused(&node, &["environ", "COLOUR=red"]);
    node.configure(&sleepers(3));
    refused(&node, &["reload"]);
    assert_eq!(node.status()["jobs"].as_array().map(Vec::len), Some(2));
    // What needs no promise goes on.
    node.must(&["restart", "job1"]);

    node.kill_agent();
    let status = node.status();
    assert_eq!(status["jobs"].as_array().map(Vec::len), Some(2), "{status}");
    assert_eq!(node.running("job0"), pid);
    fs::remove_file(filling).expect("our own file");
    node.must(&["reload"]);
    let job = node.running("job2");
    let environ = fs::read(format!("/proc/{job}/environ")).expect("it runs");
    let number = format!("NUMBER={}\0", taken.get()).into_bytes();
    let has = |text: &[u8]| environ.windows(text.len()).any(|it| it == text);
    assert!(taken.get() == 0 || has(&number), "what was answered counts");
    assert!(!has(b"COLOUR=red"));
    node.kill_agent();
    assert_eq!(node.running("job2"), job);
}
