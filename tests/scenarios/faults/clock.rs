//! Clocks: what is measured does not depend on the time of day.

use mainstay_tests::{Node, Setup, needs, needs_root, until};
use std::{fs, process::Command};

const CONFIG: &str = r#"
    [node]
    exit = "never"
    [jobs.stubborn]
    exec = ["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"]
    stop = { timeout = "300ms" }
    [jobs.flaky]
    exec = "false"
    restart = { on = "any", delay = "100ms", limit = 3 }
"#;

/// Everything that waits: a restart, an escalation, the end.
fn goes_through_its_waits(node: &mut Node) {
    node.until_state("flaky", "FATAL");
    node.running("stubborn");
    node.must(&["stop", "stubborn"]);
    node.must(&["start", "stubborn"]);
    node.must(&["shutdown"]);
    assert_eq!(node.wait().code(), Some(0));
}

#[test]
fn a_node_whose_clocks_began_elsewhere_waits_as_long_as_any_other() {
    needs_root();
    needs("unshare");
    let shifted =
        ["unshare", "--time", "--boottime", "40000000", "--monotonic", "30000000", "--fork"];
    let can = Command::new(shifted[0]).args(&shifted[1..]).arg("true").output();
    if !can.expect("unshare can be started").status.success() {
        eprintln!("skipped: this kernel has no time namespaces");
        return;
    }
    let mut node = Setup::config(CONFIG).under(&shifted).start();
    goes_through_its_waits(&mut node);
}

/// The time of day of a test machine cannot be changed: it would hit everybody on it. But no timer
/// that could notice is there.
#[test]
fn no_timer_follows_the_time_of_day() {
    let mut node = Setup::config(CONFIG).start();
    node.running("stubborn");
    const MONOTONIC: &str = "1";
    const BOOTTIME: &str = "7";
    let clocks = |pid: u32| -> Vec<String> {
        let infos = fs::read_dir(format!("/proc/{pid}/fdinfo")).expect("it runs");
        infos
            .filter_map(|info| fs::read_to_string(info.ok()?.path()).ok())
            .filter_map(|info| {
                let clock = info.lines().find_map(|line| line.strip_prefix("clockid: "))?;
                Some(clock.trim().to_owned())
            })
            .collect()
    };
    let keeper = until("the keeper has a timer", || {
        Some(clocks(node.keeper())).filter(|clocks| !clocks.is_empty())
    });
    let monotonic = |clock: &String| [MONOTONIC, BOOTTIME].contains(&clock.as_str());
    assert!(keeper.iter().all(monotonic), "{keeper:?}");
    assert!(clocks(node.agent()).iter().all(monotonic));
    goes_through_its_waits(&mut node);
}
