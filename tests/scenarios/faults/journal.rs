//! A journal that is lost or damaged, and texts that would make it grow.

use mainstay_tests::{Node, Setup, needs_root, signal, until};
use rustix::process::Signal;
use std::fs;

const CONFIG: &str = r#"
    [node]
    exit = "never"
    [jobs.web]
    exec = "sleep 1000"
    [jobs.migrate]
    exec = "true"
    [jobs.after]
    exec = "sleep 1000"
    when = { source = "migrate", once = "exitSuccess" }
    [jobs.never]
    exec = "false"
    restart = "never"
    [jobs.stopped]
    exec = "sleep 1000"
    [jobs.off]
    exec = "sleep 1000"
"#;

/// Every job has come to what it is to be.
fn settled() -> Node {
    let node = Setup::config(CONFIG).start();
    node.running("web");
    node.until_state("migrate", "EXITED");
    node.running("after");
    node.until_state("never", "EXITED");
    node.running("stopped");
    node.must(&["stop", "stopped"]);
    node.must(&["disable", "off"]);
    node
}

fn seen(node: &Node) -> Vec<String> {
    let status = node.status();
    let jobs = status["jobs"].as_array().expect("a list");
    let shown = ["name", "state", "desired", "pid", "incarnation", "exit"];
    jobs.iter().map(|job| shown.map(|key| job[key].to_string()).join(" ")).collect()
}

fn events(node: &Node) -> Vec<(u64, String)> {
    let told = node.must(&["events", "--json", "--since", "0"]);
    let event = |line: &str| {
        let event: serde_json::Value = serde_json::from_str(line).expect("JSON");
        // What is lost is a gap, which has no number.
        Some((event["seq"].as_u64()?, event["event"].to_string()))
    };
    told.lines().filter_map(event).collect()
}

/// What becomes of a node whose journal was treated like this before its agent dies.
fn survives(treat: impl FnOnce(&Node)) {
    let node = settled();
    let (before, last) = (seen(&node), events(&node).last().expect("events").0);
    treat(&node);
    node.kill_agent();
    assert_eq!(seen(&node), before, "{}", node.stderr());
    let after = events(&node);
    let lost = after.iter().find(|(_, event)| event == "\"journalLost\"").expect("it is told");
    assert!(lost.0 > last, "numbers go on: {after:?}");
    let status = node.status();
    let unknown = &status["journal_lost"]["unknown"];
    assert_eq!(*unknown, serde_json::json!(["migrate", "never", "stopped", "off"]), "{status}");
    let shown = node.ask(&["status", "--all"]).stdout;
    assert!(String::from_utf8_lossy(&shown).contains("the journal was lost"));
    for job in ["migrate", "never", "stopped", "off"] {
        let text = fs::read(node.run_dir().join("jobs").join(job).join("state")).expect("there");
        let state: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        let wanted = if job == "off" { "disabled" } else { "rest" };
        assert_eq!(state["desired"], wanted, "{job}");
    }
    // It is whole again: the next agent knows everything.
    node.must(&["start", "stopped"]);
    node.running("stopped");
    let (before, last) = (seen(&node), events(&node).last().expect("events").0);
    node.kill_agent();
    assert_eq!(seen(&node), before);
    let again = events(&node).into_iter().filter(|(seq, _)| *seq > last).collect::<Vec<_>>();
    assert!(again.iter().all(|(_, event)| event != "\"journalLost\""), "{again:?}");
}

#[test]
fn a_removed_journal_is_told_and_nothing_runs_again() {
    survives(|node| fs::remove_file(node.run_dir().join("journal")).expect("it is there"));
}

#[test]
fn a_flipped_byte_is_told_and_nothing_runs_again() {
    survives(|node| {
        let path = node.run_dir().join("journal");
        let mut bytes = fs::read(&path).expect("it is there");
        // Of what it says: what follows is room in reserve.
        let middle = bytes.iter().rposition(|byte| *byte != 0).expect("lines") / 2;
        bytes[middle] ^= 4;
        fs::write(&path, bytes).expect("our own file");
    });
}

#[test]
fn a_shortened_journal_is_told_and_nothing_runs_again() {
    survives(|node| {
        let path = node.run_dir().join("journal");
        let bytes = fs::read(&path).expect("it is there");
        let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        fs::write(&path, lines[..lines.len() / 2].concat()).expect("our own file");
    });
}

#[test]
fn an_upgrade_hands_over_what_the_keeper_remembers() {
    let node = settled();
    let before = seen(&node);
    node.must(&["upgrade"]);
    fs::remove_file(node.run_dir().join("journal")).expect("it is there");
    signal(node.agent(), Signal::KILL);
    until("another agent tells of it", || node.status()["journal_lost"].is_object().then_some(()));
    assert_eq!(seen(&node), before);
}

#[test]
fn long_commands_that_fail_do_not_make_agent_and_journal_grow() {
    needs_root();
    let long = "x".repeat(60_000);
    let jobs = (0..3).map(|n| {
        format!(
            "[jobs.bad{n}]\nexec = [\"/nowhere/{long}\", \"{long}\"]\n\
             restart = {{ on = \"any\", delay = \"0s\" }}\n"
        )
    });
    let node = Setup::config(format!("[node]\nexit = \"never\"\n{}", jobs.collect::<String>()));
    let node = node.start();
    let journal = node.run_dir().join("journal");
    let mut largest = 0;
    until("many ends", || {
        largest = largest.max(fs::metadata(&journal).map_or(0, |it| it.len()));
        let restarts = node.job("bad0")["restarts"].as_u64();
        (restarts > Some(150)).then_some(())
    });
    assert!(largest < 10 << 20, "the journal had {largest} bytes");
    let error = node.job("bad0")["exit"]["error"].as_str().expect("an error").to_owned();
    assert!(error.len() <= 4096 && error.ends_with('…'), "{}", error.len());
    let status = fs::read_to_string(format!("/proc/{}/status", node.agent())).expect("it runs");
    let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a figure");
    let kib: u64 = rss.trim().trim_end_matches(" kB").parse().expect("a number");
    assert!(kib < 60 << 10, "the agent takes {kib} KiB");
}
