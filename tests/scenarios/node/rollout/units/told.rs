//! Each way in which a unit is told, over D-Bus and by signal files.

use super::Booted;
use mainstay_tests::until;
use std::fs;

/// Reloaded, restarted, signalled, told by a command, with children that change; one does not run.
const SERVICES: &str = r#"
    [rollout]
    signal_files = "/run/mainstay-units"
    [services.reloaded]
    unit = "reloaded.service"
    templates = ["conf"]
    [services.restarted]
    unit = "restarted.service"
    templates = ["conf"]
    [services.signalled]
    unit = "signalled.service"
    templates = ["conf"]
    reload = { signal = "SIGHUP" }
    checks = [{ exec = ["cmp", "/srv/conf", "/srv/signalled"] }]
    reload_timeout = "5s"
    [services.command]
    templates = ["conf"]
    reload = { exec = ["sh", "-c", "cat /srv/conf >>/srv/command"] }
    [services.forking]
    unit = "forking.service"
    templates = ["conf"]
    checks = ["change-child-pid"]
    reload_timeout = "3s"
    [services.stopped]
    unit = "stopped.service"
    templates = ["conf"]
"#;

const UNITS: &[(&str, &str)] = &[
    (
        "reloaded.service",
        "[Service]\nExecStart=sleep 1000\nExecReload=sh -c 'cat /srv/conf >>/srv/reloaded'\n",
    ),
    (
        "restarted.service",
        "[Unit]\nStartLimitIntervalSec=0\n[Service]\nExecStartPre=sh -c '! grep -q broken /srv/conf'\n\
         ExecStart=sh -c 'cat /srv/conf >>/srv/restarted; exec sleep 1000'\n",
    ),
    (
        "signalled.service",
        "[Service]\nExecStart=sh -c 'trap \"cp /srv/conf /srv/signalled\" HUP; \
         while :; do sleep 0.05; done'\n",
    ),
    (
        "forking.service",
        "[Service]\nExecStart=sh -c 'rotate() { read word </srv/conf; \
         test $$word = stuck && return; kill $$child; sleep 1000 & child=$$!; }; \
         trap rotate HUP; sleep 1000 & child=$$!; while :; do wait $$child; done'\n\
         ExecReload=kill -HUP $MAINPID\n",
    ),
    ("stopped.service", "[Service]\nExecStart=touch /srv/started\n"),
];

const RUNNING: &[&str] = &["reloaded", "restarted", "signalled", "forking"];

/// No right to tell units, as for a node that is not root.
const DENIED: &str = r#"<busconfig><policy context="mandatory">
    <deny send_interface="org.freedesktop.systemd1.Manager" send_member="ReloadOrTryRestartUnit"/>
    <deny send_interface="org.freedesktop.systemd1.Manager" send_member="StartUnit"/>
    <deny send_interface="org.freedesktop.systemd1.Manager" send_member="StopUnit"/>
    </policy></busconfig>"#;

/// With a first version, and what runs.
fn starts(booted: &Booted) {
    fs::write(booted.path("srv/conf"), "before\n").expect("written");
    for unit in RUNNING {
        booted.start_unit(unit);
    }
    booted.put("one");
    booted.start_unit("mainstay");
    assert_eq!(booted.read("srv/conf"), "one\n", "in place when systemd hears READY");
    booted.until_state("running");
}

/// What each has had since the node was started.
fn had(booted: &Booted, versions: &[&str]) {
    for file in ["srv/reloaded", "srv/command"] {
        assert_eq!(booted.lines(file), versions, "{file}");
    }
    assert_eq!(booted.lines("srv/restarted")[1..], *versions);
    assert!(!booted.path("srv/started").exists(), "what does not run is never started");
    for unit in RUNNING {
        assert!(booted.is_active(unit), "{unit}");
    }
}

#[test]
fn every_kind_of_unit_is_told_confirmed_and_told_again_on_the_way_back() {
    let Some(booted) = Booted::boot(SERVICES, UNITS) else { return };
    starts(&booted);
    had(&booted, &["one"]);
    booted.applies("two");
    had(&booted, &["one", "two"]);
    until("the signal has arrived", || (booted.read("srv/signalled") == "two\n").then_some(()));

    let why = booted.fails("stuck", "two");
    assert!(why.contains("service 'forking'") && why.contains("have not changed"), "{why}");
    had(&booted, &["one", "two", "stuck", "two"]);

    // It ends with its new file, and no systemd starts it again.
    let why = booted.fails("broken", "two");
    assert!(why.contains("service 'restarted'"), "{why}");
    until("it runs again with the old one", || booted.is_active("restarted").then_some(()));
    assert_eq!(booted.lines("srv/restarted").last().map(String::as_str), Some("two"));
    assert!(!why.contains("cannot go back"), "{why}");

    booted.applies("three");
    assert_eq!(booted.lines("srv/restarted").last().map(String::as_str), Some("three"));
    check_names_the_unit_that_is_not_there(&booted);
}

fn check_names_the_unit_that_is_not_there(booted: &Booted) {
    let config = booted.read("etc/mainstay/mainstay.toml");
    let checked = |config: String| {
        fs::write(booted.path("srv/checked.toml"), config).expect("written");
        let output = booted.0.run(&["mainstay", "check", "-c", "/srv/checked.toml"]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let told = checked(config.clone());
    assert!(!told.contains("systemd has no unit"), "{told}");
    let told = checked(config.replace("\"restarted.service\"", "\"restarded.service\""));
    assert!(told.contains("services.restarted: systemd has no unit restarded.service"), "{told}");
    assert_eq!(told.matches("systemd has no unit").count(), 1, "{told}");
}

#[test]
fn without_the_right_to_tell_units_signal_files_do_it() {
    let denied = [("etc/dbus-1/system.d/denied.conf", DENIED)];
    let Some(booted) = Booted::boot_with(SERVICES, UNITS, &denied) else { return };
    // As `rollout units` says it.
    let told = booted.0.must(&[
        "mainstay",
        "rollout",
        "units",
        "--install",
        "/etc/systemd/system",
        "-c",
        "/etc/mainstay/mainstay.toml",
    ]);
    booted.0.must(&["systemctl", "daemon-reload"]);
    let enable = told.lines().find(|line| line.trim().starts_with("systemctl enable --now"));
    booted.0.must(&["sh", "-c", enable.expect("what to enable").trim()]);
    starts(&booted);
    booted.applies("two");
    had(&booted, &["one", "two"]);

    let why = booted.fails("broken", "two");
    assert!(why.contains("service 'restarted'"), "{why}");
    until("it runs again with the old one", || booted.is_active("restarted").then_some(()));
    assert_eq!(booted.lines("srv/restarted").last().map(String::as_str), Some("two"));
}
