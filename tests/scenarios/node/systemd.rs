//! A node as a unit of a real systemd, with the unit that is shipped.

use mainstay_tests::{Systemd, until};

const UNIT: &str = include_str!("../../../examples/mainstay.service");
/// What the shipped unit has, shorter, so that a test is over sooner.
const SHORTER: &str = "[Service]\nTimeoutStopSec=1s\nWatchdogSec=2s\n";
const JOBS: &str = r#"
    [jobs.web]
    exec = "sleep 1000"
    [jobs.careful]
    exec = ["sh", "-c", "trap 'sleep 4; echo whole >/ended; exit 0' TERM; while :; do sleep 0.1; done"]
    stop = { timeout = "30s" }
"#;
const FILE: &str = "etc/mainstay/mainstay.toml";

fn boots(config: &str) -> Option<Systemd> {
    let files = [
        ("etc/systemd/system/mainstay.service", UNIT),
        ("etc/systemd/system/mainstay.service.d/shorter.conf", SHORTER),
        (FILE, config),
    ];
    match Systemd::boot(&files) {
        Ok(systemd) => Some(systemd),
        Err(why) => {
            eprintln!("skipped: {why}");
            None
        }
    }
}

#[test]
fn systemd_waits_for_the_start_is_told_of_reloads_and_cuts_no_stop() {
    let Some(systemd) = boots(JOBS) else { return };
    systemd.must(&["systemctl", "start", "mainstay"]);
    assert_eq!(systemd.show("mainstay", "ActiveState"), "active");
    assert_eq!(systemd.show("mainstay", "StatusText"), "running");
    let keeper = systemd.show("mainstay", "MainPID");

    systemd.must(&[
        "sh",
        "-c",
        "echo '[jobs.more]\nexec = \"sleep 1000\"' >>/etc/mainstay/mainstay.toml",
    ]);
    systemd.must(&["systemctl", "reload", "mainstay"]);
    systemd.must(&["mainstay", "status", "more"]);
    systemd.must(&["mainstay", "upgrade"]);
    assert_eq!(systemd.show("mainstay", "ActiveState"), "active");
    assert_eq!(systemd.show("mainstay", "MainPID"), keeper);

    // Four times as long as the unit allows.
    systemd.must(&["systemctl", "stop", "mainstay"]);
    assert_eq!(systemd.show("mainstay", "Result"), "success");
    assert_eq!(systemd.must(&["cat", "/ended"]), "whole");
}

#[test]
fn the_watchdog_is_fed_while_there_is_no_agent_and_bites_when_the_keeper_stands() {
    let Some(systemd) = boots("[jobs.web]\nexec = \"sleep 1000\"") else { return };
    systemd.must(&["systemctl", "start", "mainstay"]);
    let keeper = systemd.show("mainstay", "MainPID");
    let fed = || systemd.show("mainstay", "WatchdogTimestampMonotonic");
    systemd.must(&["pkill", "-STOP", "-P", &keeper, "-f", "__agent"]);
    for _ in 0..3 {
        let before = fed();
        until("it is fed", || (fed() != before).then_some(()));
    }
    systemd.must(&["pkill", "-CONT", "-P", &keeper, "-f", "__agent"]);
    assert_eq!(systemd.show("mainstay", "NRestarts"), "0");

    systemd.must(&["kill", "-STOP", &keeper]);
    until("it is started again", || (systemd.show("mainstay", "NRestarts") == "1").then_some(()));
    until("it runs", || {
        let web = systemd.run(&["mainstay", "status", "--json"]);
        String::from_utf8_lossy(&web.stdout).contains("RUNNING").then_some(())
    });
}

#[test]
fn a_configuration_that_is_wrong_fails_the_unit_with_its_reason_and_is_not_tried_again() {
    let Some(systemd) = boots("[jobs.web]\nexce = \"sleep 1000\"") else { return };
    assert!(!systemd.run(&["systemctl", "start", "mainstay"]).status.success());
    assert_eq!(systemd.show("mainstay", "ActiveState"), "failed");
    assert_eq!(systemd.show("mainstay", "ExecMainStatus"), "78");
    assert_eq!(systemd.show("mainstay", "NRestarts"), "0");
    let journal = systemd.must(&["journalctl", "--unit=mainstay", "--output=cat", "--no-pager"]);
    assert!(journal.contains("unknown key 'exce'"), "{journal}");
}
