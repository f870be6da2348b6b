//! `logging`: one output, in one format, for jobs, checks and the node's own log.

use super::{ContainerPilot, HEAD};
use mainstay_tests::{signal, until};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;

/// Jobs and checks, each once as lines of the log and once as they are.
const SAYING: &str = "jobs: [
    { name: 'wrapped', exec: 'echo said by a job' },
    { name: 'raw', exec: ['sh', '-c', 'echo raw out; echo raw err >&2'], logging: { raw: true } },
    { name: 'checked', exec: 'sleep 1000',
      health: { exec: 'echo said by a check', interval: 1, ttl: 5 } },
    { name: 'raw-check', exec: 'sleep 1000',
      health: { exec: 'echo raw check', interval: 1, ttl: 5, logging: { raw: true } } },
    { name: 'ends', exec: 'false' } ]";

fn logging(keys: &str) -> ContainerPilot {
    ContainerPilot::launch(&format!("{{ {HEAD} logging: {{ {keys} }}, {SAYING} }}"), &[])
}

/// Waits until a line of a text is as wanted.
fn until_line(what: &str, text: impl Fn() -> String, wanted: impl Fn(&str) -> bool) -> String {
    until(what, || text().lines().find(|line| wanted(line)).map(str::to_owned))
}

fn is_stamp(word: &str) -> bool {
    word.len() == 30 && word.ends_with('Z') && word.as_bytes()[10] == b'T'
}

#[test]
fn lines_are_time_job_pid_and_text_by_default() {
    let pilot = logging("");
    let stdout = || pilot.node.stdout();
    let line = until_line("a job's", stdout, |line| line.ends_with(" said by a job"));
    let words: Vec<&str> = line.splitn(4, ' ').collect();
    assert!(is_stamp(words[0]) && words[1] == "wrapped", "{line}");
    assert!(words[2].parse::<u32>().is_ok(), "{line}");
    let line = until_line("a check's", stdout, |line| line.ends_with(" said by a check"));
    assert!(line.contains(" check.checked "), "{line}");
    for raw in ["raw out", "raw check"] {
        until_line(raw, stdout, |line| line == raw);
    }
    until_line("what went to stderr", || pilot.node.stderr(), |line| line == "raw err");
    // The node's own log stands among them.
    let line = until_line("our own", stdout, |line| line.contains("ends: run 1 failed"));
    assert!(is_stamp(line.split(' ').next().unwrap_or_default()), "{line}");
    assert_eq!(pilot.node.stderr(), "raw err\n");
}

#[test]
fn text_is_keys_and_values_with_a_level() {
    let pilot = logging("format: 'text', level: 'DEBUG'");
    let stdout = || pilot.node.stdout();
    let begins = |line: &str| line.starts_with("time=\"") && line.contains("Z\" level=");
    for wanted in [
        "level=info msg=\"said by a job\" job=wrapped pid=",
        "level=info msg=\"said by a check\" check=check.checked pid=",
        "level=debug msg=\"loaded config: ",
        "level=warning msg=\"ends: run 1 failed: exit code 1\"",
    ] {
        let line = until_line(wanted, stdout, |line| line.contains(wanted));
        assert!(begins(&line), "{line}");
    }
    until_line("raw", stdout, |line| line == "raw out");
}

#[test]
fn json_has_the_fields_that_it_had() {
    let pilot = logging("format: 'json', output: 'stderr'");
    let parsed = |wanted: &str| -> Value {
        let line = until_line(wanted, || pilot.node.stderr(), |line| line.contains(wanted));
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    };
    let job = parsed("said by a job");
    assert_eq!((&job["job"], &job["level"]), (&"wrapped".into(), &"info".into()));
    assert_eq!(job["msg"], "said by a job");
    assert!(job["pid"].is_u64() && is_stamp(job["time"].as_str().unwrap_or_default()), "{job}");
    assert_eq!(parsed("said by a check")["check"], "check.checked");
    let own = parsed("ends: run 1 failed");
    assert_eq!((&own["level"], &own["job"]), (&"warning".into(), &Value::Null));
    // Whatever is raw stays where it was written.
    until_line("raw", || pilot.node.stdout(), |line| line == "raw out");
    assert!(!pilot.node.stdout().contains("said by"), "{}", pilot.node.stdout());
}

#[test]
fn a_level_above_info_hides_what_jobs_write() {
    let pilot = logging("level: 'ERROR'");
    until_line("raw", || pilot.node.stdout(), |line| line == "raw check");
    pilot.node.until_logged("wrapped", "said by a job");
    until("the failure is known", || (pilot.node.job("ends")["state"] == "EXITED").then_some(()));
    let stdout = pilot.node.stdout();
    assert!(!stdout.contains("said by") && !stdout.contains("failed"), "{stdout}");
}

#[test]
fn a_file_is_written_and_opened_anew_when_it_was_moved_away() {
    let pilot = ContainerPilot::start(&format!(
        "{{ {HEAD} logging: {{ output: 'DIR/pilot.log' }}, jobs: [
           {{ name: 'hello', exec: ['sh', '-c', 'while :; do echo hello world; sleep 0.05; done'] }},
           {{ name: 'raw', exec: 'echo raw', logging: {{ raw: true }} }} ] }}"
    ));
    let (now, moved) = (pilot.node.path().join("pilot.log"), pilot.node.path().join("pilot.log.1"));
    let lines = |path: &std::path::Path| {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines().filter(|line| line.ends_with(" hello world")).count()
    };
    until("lines are in the file", || (lines(&now) > 2).then_some(()));
    fs::rename(&now, &moved).expect("our own file");
    let before = lines(&moved);
    until("the moved file is still written", || (lines(&moved) > before + 2).then_some(()));
    assert!(!now.exists());
    signal(pilot.node.keeper(), Signal::USR1);
    until("there is a new one", || (lines(&now) > 2).then_some(()));
    // Not a line is lost between the two, and nothing but what is raw goes elsewhere.
    assert_eq!(pilot.node.stdout(), "raw\n");
    pilot.must(&["-putenv", "A=b"]);
    let all = || lines(&moved) + lines(&now);
    until("every line is in one of them", || {
        let (written, logged) = (all(), pilot.node.log("hello").len());
        (written >= logged && logged > 10).then_some(())
    });
}

#[test]
fn a_file_that_cannot_be_opened_is_told_and_holds_up_nothing() {
    let pilot = ContainerPilot::start(&format!(
        "{{ {HEAD} logging: {{ output: 'DIR/later/pilot.log' }}, jobs: [
           {{ name: 'hello', exec: ['sh', '-c', 'while :; do echo hello; sleep 0.05; done'] }} ] }}"
    ));
    pilot.node.running("hello");
    pilot.node.until_told("/later/pilot.log: No such file or directory");
    fs::create_dir(pilot.node.path().join("later")).expect("our own directory");
    until("it is written, from its first line on", || {
        let text = fs::read_to_string(pilot.node.path().join("later/pilot.log")).ok()?;
        text.contains(" hello").then_some(())
    });
}

#[test]
fn an_upgrade_goes_on_in_the_same_file_and_format() {
    let pilot = ContainerPilot::start(&format!(
        "{{ {HEAD} logging: {{ output: 'DIR/pilot.log', format: 'json' }}, jobs: [
           {{ name: 'hello', exec: ['sh', '-c', 'while :; do echo hello; sleep 0.05; done'] }} ] }}"
    ));
    let text = || fs::read_to_string(pilot.node.path().join("pilot.log")).unwrap_or_default();
    let hellos = || text().lines().filter(|line| line.contains("\"msg\":\"hello\"")).count();
    until("it is written", || (hellos() > 0).then_some(()));
    pilot.node.must(&["upgrade"]);
    let before = hellos();
    until("it is written by the next image", || (hellos() > before).then_some(()));
    let wrong = |line: &&str| serde_json::from_str::<Value>(line).is_err();
    assert_eq!(text().lines().find(wrong), None);
    assert_eq!(pilot.node.stderr(), "");
}
