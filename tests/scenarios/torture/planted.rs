//! The judge of a torture, given what a run would have left: it lets pass what is right, and finds
//! each thing that was planted.

use super::{
    Job,
    verdict::{Evidence, Verdict},
};
use mainstay_tests::{
    Scratch,
    writer::{Notes, code, lines},
};
use serde_json::{Value, json};
use std::{fs, path::Path};

/// What a run has left of one job that crashes and one that does not.
struct Planted {
    scratch: Scratch,
    jobs: Vec<Job>,
    events: Vec<Value>,
    /// By job, in order.
    logs: Vec<(String, Vec<String>)>,
    stdout: String,
    pids: Vec<(String, u32, Option<u32>)>,
}

const WRITTEN: u64 = 30;

impl Planted {
    fn new() -> Planted {
        let scratch = Scratch::new();
        let job = |name: &str, crashes: bool| Job {
            name: name.to_owned(),
            crashes,
            compress: false,
            under_faults: false,
        };
        let jobs = vec![job("crashing", true), job("steady", false)];
        let numbered = |run: u64, count: u64| (1..=count).map(move |it| format!("{run} {it}"));
        let first = lines("crashing", 1);
        let logs = vec![
            ("crashing".to_owned(), numbered(1, first).chain(numbered(2, WRITTEN)).collect()),
            ("steady".to_owned(), numbered(1, WRITTEN).collect()),
        ];
        let forwarded = |(name, lines): &(String, Vec<String>)| -> String {
            lines.iter().map(|line| format!("{name} | {line}\n")).collect()
        };
        let stdout = logs.iter().map(forwarded).collect();
        for (name, runs) in [("crashing", 2), ("steady", 1)] {
            let notes = Notes::new(scratch.path(), name);
            fs::write(notes.runs_file(), runs.to_string()).expect("a scratch directory");
            fs::write(notes.written_file(runs), WRITTEN.to_string()).expect("a scratch directory");
        }
        let ended = |event: &str, name: &str, incarnation: u64, exit: Value| {
            let detail = json!({ "incarnation": incarnation, "exit": exit });
            json!({ "source": name, "event": event, "detail": detail })
        };
        let signal = || json!({ "signal": "SIGTERM", "oom": false });
        let mut planted = Planted {
            events: vec![
                ended("exitFailed", "crashing", 1, json!({ "code": code("crashing", 1) })),
                ended("stopped", "crashing", 2, signal()),
                ended("stopped", "steady", 1, signal()),
            ],
            pids: vec![("steady".to_owned(), 4711, Some(4711))],
            scratch,
            jobs,
            logs,
            stdout,
        };
        planted.number();
        planted
    }

    fn number(&mut self) {
        for (seq, event) in (1..).zip(&mut self.events) {
            event["seq"] = json!(seq);
        }
    }

    fn judge(&self) -> Verdict {
        let logs = self.scratch.path().join("logs");
        for (name, lines) in &self.logs {
            let dir = logs.join(name);
            fs::create_dir_all(&dir).expect("a scratch directory");
            let entry = |line: &String| format!("2026-01-01T00:00:00.000000000Z stdout F {line}\n");
            let text: String = lines.iter().map(entry).collect();
            fs::write(dir.join("current"), text).expect("a scratch directory");
        }
        Verdict::find(&Evidence {
            jobs: &self.jobs,
            events: &self.events,
            logs,
            notes: Path::new(self.scratch.path()),
            pids: &self.pids,
            stdout: self.stdout.clone(),
            dropped: 0,
        })
    }
}

#[test]
fn a_run_that_lost_nothing_passes() {
    let verdict = Planted::new().judge();
    assert_eq!((verdict.events, verdict.exits), (3, 3));
    assert_eq!(verdict.lines, lines("crashing", 1) + 2 * WRITTEN);
}

#[test]
#[should_panic(expected = "the log of steady has 1 12 for (1, 11)")]
fn a_lost_line_is_found() {
    let mut planted = Planted::new();
    planted.logs[1].1.remove(10);
    planted.judge();
}

#[test]
#[should_panic(expected = "lines of run 1 of crashing are lost")]
fn a_line_lost_at_the_end_of_a_run_is_found() {
    let mut planted = Planted::new();
    let last = usize::try_from(lines("crashing", 1)).expect("small") - 1;
    planted.logs[0].1.remove(last);
    planted.judge();
}

#[test]
#[should_panic(expected = "the log of steady has 1 11 for (1, 12)")]
fn a_repeated_line_is_found() {
    let mut planted = Planted::new();
    let again = planted.logs[1].1[10].clone();
    planted.logs[1].1.insert(11, again);
    planted.judge();
}

#[test]
#[should_panic(expected = "an event is lost or repeated")]
fn a_repeated_event_is_found() {
    let mut planted = Planted::new();
    let again = planted.events[1].clone();
    planted.events.insert(2, again);
    planted.judge();
}

#[test]
#[should_panic(expected = "an exit of crashing")]
fn an_event_that_is_told_again_under_another_number_is_found() {
    let mut planted = Planted::new();
    let again = planted.events[0].clone();
    planted.events.insert(1, again);
    planted.number();
    planted.judge();
}

#[test]
#[should_panic(expected = "an event is lost or repeated")]
fn a_lost_event_is_found() {
    let mut planted = Planted::new();
    planted.events.remove(1);
    planted.judge();
}

#[test]
fn events_that_are_lost_with_a_journal_pass_where_that_is_told() {
    let mut planted = Planted::new();
    planted.events.remove(0);
    let notes = Notes::new(planted.scratch.path(), "crashing");
    fs::write(notes.written_file(1), lines("crashing", 1).to_string()).expect("written");
    for event in ["journalLost", "agentRestarted"] {
        planted.events.insert(0, json!({ "source": "mainstay", "event": event, "detail": {} }));
    }
    for (seq, event) in (3..).zip(&mut planted.events) {
        event["seq"] = json!(seq);
    }
    let verdict = planted.judge();
    assert_eq!((verdict.lost_events, verdict.lost_journals, verdict.exits), (2, 1, 3));
}

#[test]
#[should_panic(expected = "an event is lost or repeated")]
fn events_that_are_lost_elsewhere_are_found_although_a_journal_was_lost() {
    let mut planted = Planted::new();
    planted.events.push(json!({ "source": "mainstay", "event": "journalLost", "detail": {} }));
    planted.number();
    planted.events.remove(1);
    planted.judge();
}

#[test]
#[should_panic(expected = "steady was disturbed")]
fn a_changed_pid_is_found() {
    let mut planted = Planted::new();
    planted.pids[0].2 = Some(4712);
    planted.judge();
}

#[test]
#[should_panic(expected = "were forwarded")]
fn a_line_that_was_not_forwarded_is_found() {
    let mut planted = Planted::new();
    planted.stdout = planted.stdout.replacen("steady | 1 11\n", "", 1);
    planted.judge();
}

#[test]
fn a_gap_passes_if_it_counts_what_is_missing() {
    let mut planted = Planted::new();
    let gap =
        |count: u64| format!("mainstay: {count} lines are missing here: they could not be written");
    planted.logs[1].1.splice(10..15, [gap(5)]);
    assert_eq!(planted.judge().counted_gaps, 5);
}

#[test]
fn archives_that_a_full_disk_has_cleared_away_pass_only_where_there_was_one() {
    let mut planted = Planted::new();
    planted.jobs[1].under_faults = true;
    planted.logs[1].1.drain(..7);
    assert_eq!(planted.judge().cleared, 7);
}

#[test]
#[should_panic(expected = "steady: 4 lines are counted as missing, and 5 to")]
fn a_gap_that_counts_too_few_is_found() {
    let mut planted = Planted::new();
    let gap = "mainstay: 4 lines are missing here: they could not be written".to_owned();
    planted.logs[1].1.splice(10..15, [gap]);
    planted.judge();
}
