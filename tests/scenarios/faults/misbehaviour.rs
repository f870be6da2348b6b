//! Jobs that do what jobs should not do.

use mainstay_tests::{Setup, is_alive, proc, until, until_it_rests};
use std::time::Duration;

/// In KiB. Far below what a job writes, far above what a node needs for it.
const BOUND: u64 = 24 << 10;

#[test]
fn a_flood_without_a_newline_is_kept_in_pieces_and_in_bounds() {
    let config = r#"
        [node]
        exit = "never"
        [log]
        keep = { size = "1M", files = 2 }
        [jobs.flood]
        exec = "head -c 200M /dev/zero"
        [jobs.lines]
        exec = ["sh", "-c", "yes 'a line of no interest, again and again' | head -c 50M"]
        [jobs.other]
        exec = "sleep 1000"
    "#;
    let node = Setup::config(config).after("exec >/dev/null").start();
    let (keeper, agent, other) = (node.keeper(), node.agent(), node.running("other"));
    // Most of it is the binary itself, which is large in a debug build.
    let before = [keeper, agent].map(proc::high_water);
    for job in ["flood", "lines"] {
        until(&format!("{job} got rid of all"), || {
            (node.job(job)["state"] == "EXITED").then_some(())
        });
    }
    until("all of it was read", || {
        (node.job("flood")["log"]["bytes"].as_u64() == Some(200 << 20)).then_some(())
    });
    for (pid, before) in [keeper, agent].into_iter().zip(before) {
        let more = proc::high_water(pid).saturating_sub(before);
        assert!(more < BOUND, "{more} KiB beside {before}");
    }
    let files = node.log_files("flood");
    assert!(files.len() <= 3, "{files:?}");
    let size: u64 = files.iter().map(|file| file.metadata().expect("a log file").len()).sum();
    assert!(size < 4 << 20, "{size}");
    assert_eq!(node.pid("other"), Some(other));
}

#[test]
fn a_job_that_closes_its_stdout_runs_on_and_nobody_spins() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.silent]
        exec = ["sh", "-c", "echo last; exec >&- 2>&-; while :; do sleep 0.2; done"]
    "#;
    let node = Setup::config(config).start();
    let pid = node.running("silent");
    node.until_logged("silent", "last");
    until_it_rests(node.keeper());
    assert_eq!(node.pid("silent"), Some(pid));
    node.must(&["restart", "silent"]);
    until("it has spoken twice", || (node.log("silent") == ["last", "last"]).then_some(()));
}

#[test]
fn a_job_that_ends_at_once_for_ever_does_not_keep_others_waiting() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.mayfly]
        exec = "true"
        restart = { on = "any", delay = "0s" }
        [jobs.other]
        exec = "sleep 1000"
    "#;
    let node = Setup::config(config).start();
    until("it has ended often", || {
        (node.job("mayfly")["restarts"].as_u64() > Some(200)).then_some(())
    });
    for _ in 0..5 {
        let before = node.running("other");
        node.must(&["restart", "other"]);
        assert_ne!(node.running("other"), before);
    }
    node.kill_agent();
    let restarts = node.job("mayfly")["restarts"].as_u64();
    until("it goes on", || (node.job("mayfly")["restarts"].as_u64() > restarts).then_some(()));
    assert!(proc::high_water(node.keeper()) < 2 * BOUND);
    node.must(&["stop", "mayfly"]);
    assert_eq!(node.job("mayfly")["state"], "STOPPED");
    until_it_rests(node.keeper());
    until_it_rests(node.agent());
}

#[test]
fn a_job_that_fails_at_once_is_backed_off_by_default() {
    let config = "[node]\nexit = \"never\"\n[jobs.broken]\nexec = \"false\"\n";
    let node = Setup::config(config).start();
    let mut events = node.events();
    let mut times = Vec::new();
    while times.len() < 5 {
        let event = events.wait_for("broken", "exitFailed");
        let time: jiff::Timestamp =
            event["time"].as_str().expect("a time").parse().expect("RFC 3339");
        times.push(time);
    }
    let waits: Vec<Duration> =
        times.windows(2).map(|pair| pair[1].duration_since(pair[0]).unsigned_abs()).collect();
    // 200 ms, doubling, with some spread.
    assert!(waits[3] >= Duration::from_secs(1), "{waits:?}");
    assert_eq!(node.until_state("broken", "BACKOFF")["desired"], "run");
}

/// Leaves its group, its session and its cookie, and holds on to the pipe.
const RUNAWAY: &str = r#"
    [node]
    exit = "never"
    [jobs.leaver]
    exec = ["sh", "-c", "(env -i setsid sh -c 'echo $$ >runaway; exec sleep 1000' &); while [ ! -s runaway ]; do sleep 0.01; done; echo bye"]
    restart = "never"
    [jobs.other]
    exec = "sleep 1000"
"#;

#[test]
fn left_over_children_end_with_their_job_where_there_are_cgroups() {
    let node = Setup::config(RUNAWAY).start();
    let job = node.until_state("leaver", "EXITED");
    assert_eq!(job["exit"]["code"], 0);
    if job["tree"] != "cgroup" {
        eprintln!("skipped: there are no cgroups to be had here");
        return;
    }
    let runaway = std::fs::read_to_string(node.path().join("runaway")).expect("it ran");
    assert!(!is_alive(runaway.trim().parse().expect("a pid")));
    assert_eq!(node.until_logged("leaver", "bye").len(), 1);
}

#[test]
fn without_cgroups_one_that_hides_is_a_stray_holds_nobody_up_and_ends_with_the_node() {
    let mut node = Setup::config(RUNAWAY).without_cgroups().start();
    let job = node.until_state("leaver", "EXITED");
    assert_eq!((&job["tree"], &job["exit"]["code"]), (&"group".into(), &0.into()));
    let runaway = std::fs::read_to_string(node.path().join("runaway")).expect("it ran");
    let runaway: u32 = runaway.trim().parse().expect("a pid");
    assert!(is_alive(runaway));
    let strays = node.status()["strays"].clone();
    assert_eq!(strays[0]["pid"], runaway, "{strays}");
    assert_eq!(node.until_logged("leaver", "bye").len(), 1);
    until_it_rests(node.keeper());
    node.must(&["shutdown"]);
    assert_eq!(node.wait().code(), Some(0));
    assert!(!is_alive(runaway));
    assert!(node.stderr().contains("killed a stray process"), "{}", node.stderr());
}
