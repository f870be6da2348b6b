//! Units of a real systemd, told and asked as a rollout does.

use mainstay_core::{
    plan::ReloadMethod,
    rollout::{InstanceNumber, ServiceAction},
    signal::Signal,
};
use mainstay_rollout::service::{SignalFiles, UnitError, Units};
use mainstay_tests::{Systemd, until};
use std::{collections::BTreeSet, path::Path, time::Duration};
use tokio::time::{sleep, timeout};

const LIMIT: Duration = Duration::from_secs(20);
const RELOAD: ServiceAction = ServiceAction::ReloadOrRestart;
const DIR: &str = "/run/mainstay-units";

const UNITS: &[(&str, &str)] = &[
    (
        "etc/systemd/system/good.service",
        "[Service]\nExecStart=sleep 1000\nExecReload=touch /reloaded\n",
    ),
    ("etc/systemd/system/plain.service", "[Service]\nExecStart=sleep 1000\n"),
    ("etc/systemd/system/bad.service", "[Service]\nExecStart=sleep 1000\nExecReload=false\n"),
    (
        "etc/systemd/system/hang.service",
        "[Service]\nExecStart=sleep 1000\nExecReload=sleep 1000\nTimeoutStartSec=2\n",
    ),
    (
        "etc/systemd/system/broken.service",
        "[Service]\nExecStartPre=test ! -e /broken\nExecStart=sleep 1000\n",
    ),
    (
        "etc/systemd/system/told.service",
        "[Service]\nExecStart=sh -c 'trap \"touch /told\" HUP; while :; do sleep 0.05; done'\n",
    ),
    // Reads what it is told of, and ends when somebody opens the gate.
    (
        "etc/systemd/system/gated.service",
        "[Service]\nExecStart=sleep 1000\nExecReload=sh -c 'cat /version >>/read; cat /gate'\n",
    ),
    ("etc/systemd/system/web@.service", "[Service]\nExecStart=sleep 1000\n"),
];

/// No right to tell units, as for a node that is not root.
const DENIED: &str = r#"<busconfig><policy context="mandatory">
    <deny send_interface="org.freedesktop.systemd1.Manager" send_member="ReloadOrTryRestartUnit"/>
    <deny send_interface="org.freedesktop.systemd1.Manager" send_member="StartUnit"/>
    <deny send_interface="org.freedesktop.systemd1.Manager" send_member="StopUnit"/>
    </policy></busconfig>"#;

fn boots(more: &[(&str, &str)]) -> Option<Systemd> {
    let files: Vec<_> = UNITS.iter().chain(more).copied().collect();
    Systemd::boot(&files).inspect_err(|why| eprintln!("skipped: {why}")).ok()
}

fn bus(systemd: &Systemd) -> String {
    format!("unix:path={}/run/dbus/system_bus_socket", systemd.root().display())
}

#[tokio::test]
async fn a_unit_is_told_and_what_came_of_it_is_found_out() {
    let Some(systemd) = boots(&[]) else { return };
    let units = Units::at(&bus(&systemd), None);
    for unit in ["good", "plain", "bad", "hang", "broken", "told"] {
        systemd.must(&["systemctl", "start", unit]);
    }
    let invocation = async |unit: &str| units.facts(unit).await.expect("there").invocation;

    let before = invocation("good.service").await;
    units.tell("good", &RELOAD, LIMIT).await.expect("reloaded");
    systemd.must(&["test", "-e", "/reloaded"]);
    assert_eq!(invocation("good.service").await, before, "it was not restarted");

    let before = invocation("plain.service").await;
    units.tell("plain", &RELOAD, LIMIT).await.expect("restarted");
    assert_ne!(invocation("plain.service").await, before);

    let told = units.tell("bad", &RELOAD, LIMIT).await.expect_err("it failed").to_string();
    assert!(told.contains("exit-code"), "{told}");
    assert_eq!(systemd.show("bad", "ActiveState"), "active");
    let told = units.tell("hang", &RELOAD, LIMIT).await.expect_err("it failed").to_string();
    assert!(told.contains("timeout"), "{told}");
    let late = units.tell("hang", &RELOAD, Duration::from_millis(300)).await;
    assert!(matches!(late, Err(UnitError::Late { .. })), "{late:?}");

    systemd.must(&["touch", "/broken"]);
    assert!(units.tell("broken", &RELOAD, LIMIT).await.is_err());
    let facts = units.inspect("broken", &ReloadMethod::TryReloadOrRestart).await.expect("there");
    assert!(!facts.running && !facts.healthy, "{facts:?}");

    systemd.must(&["systemctl", "stop", "good"]);
    units.tell("good", &RELOAD, LIMIT).await.expect("nothing happens");
    assert_eq!(systemd.show("good", "ActiveState"), "inactive", "never started");
    let facts = units.inspect("good", &ReloadMethod::TryReloadOrRestart).await.expect("there");
    assert!(!facts.running && facts.healthy);
    let facts = units.inspect("plain", &ReloadMethod::TryReloadOrRestart).await.expect("there");
    assert!(facts.running && facts.healthy && facts.main_pid.is_some());

    let missing = units.tell("nothing", &RELOAD, LIMIT).await;
    assert!(matches!(missing, Err(UnitError::NotFound(_))), "{missing:?}");
    let hup = Signal::from_number(1).expect("SIGHUP");
    units.tell("told", &ServiceAction::Signal(hup), LIMIT).await.expect("sent");
    until("it was told", || systemd.run(&["test", "-e", "/told"]).status.success().then_some(()));
    units.tell("good", &ServiceAction::Signal(hup), LIMIT).await.expect("it does not run");
}

#[tokio::test]
async fn instances_are_started_and_stopped_and_a_bus_that_dies_is_told() {
    let Some(systemd) = boots(&[]) else { return };
    let units = Units::at(&bus(&systemd), None);
    let running = async || {
        let facts = units.inspect("web@.service", &ReloadMethod::FlipFlop).await.expect("there");
        (facts.running, facts.instances)
    };
    use InstanceNumber::{One, Two};
    assert_eq!(running().await, (false, BTreeSet::new()));
    units.tell("web@.service", &ServiceAction::Start(One), LIMIT).await.expect("started");
    assert_eq!(running().await, (true, BTreeSet::from([One])));
    units.tell("web@", &ServiceAction::Start(Two), LIMIT).await.expect("started");
    assert_eq!(running().await, (true, BTreeSet::from([One, Two])));
    units.tell("web", &ServiceAction::Stop(One), LIMIT).await.expect("stopped");
    assert_eq!(running().await, (true, BTreeSet::from([Two])));
    assert_eq!(systemd.show("web@1", "ActiveState"), "inactive");

    systemd.must(&["systemctl", "start", "hang"]);
    let kill = async {
        let reloads = async {
            while systemd.show("hang", "ActiveState") != "reloading" {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(LIMIT, reloads).await.expect("it reloads in time");
        systemd.must(&["pkill", "-KILL", "-x", "dbus-daemon"]);
    };
    let (told, ()) = tokio::join!(units.tell("hang", &RELOAD, LIMIT), kill);
    let told = told.expect_err("nobody tells");
    assert!(matches!(told, UnitError::Unreachable(_)), "{told:?}");
    systemd.must(&["systemctl", "start", "dbus"]);
    assert!(units.facts("hang.service").await.is_ok(), "connected anew");
}

/// Without the right to tell units, and with the units that have it done.
fn boots_without_right() -> Option<Systemd> {
    let files = SignalFiles::new(Path::new(DIR)).units();
    let paths: Vec<(String, &String)> =
        files.iter().map(|(name, text)| (format!("etc/systemd/system/{name}"), text)).collect();
    let mut more: Vec<(&str, &str)> =
        paths.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    more.push(("etc/dbus-1/system.d/denied.conf", DENIED));
    boots(&more)
}

#[tokio::test]
async fn without_the_right_signal_files_have_it_done_and_the_result_is_read() {
    let Some(systemd) = boots_without_right() else { return };
    let denied = Units::at(&bus(&systemd), None).tell("good", &RELOAD, LIMIT).await;
    assert!(matches!(denied, Err(UnitError::Denied(_))), "{denied:?}");

    let outside = SignalFiles::new(&systemd.root().join(&DIR[1..]));
    let units = Units::at(&bus(&systemd), Some(outside));
    let told = units.tell("good", &RELOAD, LIMIT).await.expect_err("nobody watches").to_string();
    assert!(told.contains("mainstay-reload@good.service.path is not active"), "{told}");
    systemd.must(&["mkdir", "-p", DIR]);
    let instances = ["good.service", "bad.service", "plain.service"];
    for unit in instances {
        systemd.must(&["systemctl", "start", &format!("mainstay-reload@{unit}.path")]);
    }
    systemd.must(&["systemctl", "start", "good", "bad"]);
    if let Err(error) = units.tell("good", &RELOAD, LIMIT).await {
        panic!("{error}: {}", systemd.must(&["journalctl", "--no-pager", "--lines=30"]));
    }
    systemd.must(&["test", "-e", "/reloaded"]);
    units.tell("good", &RELOAD, LIMIT).await.expect("and again");
    let told = units.tell("bad", &RELOAD, LIMIT).await.expect_err("it failed").to_string();
    assert!(told.contains("exit-code"), "{told}");
    units.tell("plain", &RELOAD, LIMIT).await.expect("it does not run");
    assert_eq!(systemd.show("plain", "ActiveState"), "inactive");
}

#[tokio::test]
async fn a_helper_that_runs_already_does_not_answer_for_what_is_asked_later() {
    let Some(systemd) = boots_without_right() else { return };
    let outside = SignalFiles::new(&systemd.root().join(&DIR[1..]));
    let units = Units::at(&bus(&systemd), Some(outside));
    systemd.must(&["mkdir", "-p", DIR]);
    systemd.must(&["mkfifo", "/gate"]);
    systemd.must(&["systemctl", "start", "mainstay-reload@gated.service.path", "gated"]);
    let open_gate = || systemd.must(&["sh", "-c", "echo >/gate"]);
    let has_read = async |text: &str| {
        let reads = async {
            while String::from_utf8_lossy(&systemd.run(&["cat", "/read"]).stdout) != text {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(LIMIT, reads).await.expect("it reads in time");
    };
    // Somebody else has begun a reload, of the first version.
    systemd.must(&["sh", "-c", "echo one >/version"]);
    let helper = "mainstay-reload@gated.service.service";
    systemd.must(&["systemctl", "start", "--no-block", helper]);
    has_read("one\n").await;
    systemd.must(&["sh", "-c", "echo two >/version"]);
    let mut told = std::pin::pin!(units.tell("gated", &RELOAD, LIMIT));
    let early = timeout(Duration::from_millis(500), &mut told).await;
    assert!(early.is_err(), "the other one still runs: {early:?}");
    open_gate();
    let follows = async {
        has_read("one\ntwo\n").await;
        open_gate();
    };
    let (told, ()) = tokio::join!(told, follows);
    told.expect("it is told of the second version");
}
