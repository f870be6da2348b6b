//! What a torture has left, against what must be.

use super::Job;
use flate2::read::GzDecoder;
use mainstay_tests::{
    Node,
    writer::{BURST, Notes, code, lines},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Read,
    path::{Path, PathBuf},
};

#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub(super) events: usize,
    pub(super) exits: u64,
    pub(super) upgrades: u64,
    pub(super) lines: u64,
    /// How many lines each run of a job has written.
    runs: BTreeMap<(String, u64), u64>,
}

impl Verdict {
    pub(super) fn find(jobs: &[Job], events: &[Value], node: &Node, notes: &Path) -> Verdict {
        check_order(events);
        let named = |name: &str| events.iter().filter(|event| event["event"] == name).count();
        let mut verdict = Verdict {
            events: events.len(),
            upgrades: named("upgraded") as u64,
            ..Verdict::default()
        };
        for job in jobs {
            let notes = Notes::new(notes, &job.name);
            assert!(!notes.alarm().exists(), "two incarnations of {} were alive", job.name);
            let ends = check_ends(job, events);
            let log = log(node, job);
            verdict.check_log(job, &ends, &log, &notes);
            verdict.exits += ends.len() as u64;
        }
        verdict.lines = verdict.runs.values().sum();
        verdict
    }

    /// Every run's lines from 1 to its last, one run after the other.
    fn check_log(&mut self, job: &Job, ends: &[Value], log: &[String], notes: &Notes) {
        let mut expected = (1, 1);
        for (place, line) in log.iter().enumerate() {
            let first_of_next = (expected.0 + 1, 1);
            if *line == text(first_of_next) {
                expected = first_of_next;
            }
            if *line != text(expected) {
                let cut = text(expected).starts_with(line) && place + 1 == log.len();
                let stopped = ends.last().is_some_and(|end| end["code"].is_null());
                assert!(cut && stopped, "the log of {} has {line} for {expected:?}", job.name);
                return self.check_ends(job, ends, notes);
            }
            *self.runs.entry((job.name.clone(), expected.0)).or_default() += 1;
            expected.1 += 1;
        }
        self.check_ends(job, ends, notes);
    }

    /// As many lines as each run has written.
    fn check_ends(&self, job: &Job, ends: &[Value], notes: &Notes) {
        for (run, end) in (1..).zip(ends) {
            let name = &job.name;
            let found = self.runs.get(&(name.clone(), run)).copied().unwrap_or(0);
            if end["code"].is_number() {
                assert_eq!(found, lines(name, run), "lines of run {run} of {name}");
            } else {
                let written = notes.written(run);
                assert!(
                    (written..=written + BURST).contains(&found),
                    "run {run} of {name} has {found} lines and wrote {written} or a burst more"
                );
            }
        }
        let last = ends.len() as u64;
        // The last one may have been stopped before it could count itself.
        assert!((last - 1..=last).contains(&notes.runs()), "{} runs of {}", last, job.name);
    }

    /// What went to the node's stdout: nothing twice, and nothing missing that was not counted.
    pub(super) fn check_forwarded(&self, jobs: &[Job], node: &Node, dropped: u64) {
        let names: BTreeSet<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
        let mut last: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        let mut cut: BTreeSet<&str> = BTreeSet::new();
        let mut count = 0;
        let text = node.stdout();
        for line in text.lines() {
            let (name, rest) = line.split_once(" | ").unwrap_or_else(|| panic!("torn: {line}"));
            if name == "mainstay" {
                continue;
            }
            assert!(names.contains(name), "torn: {line}");
            let before = last.get(name).copied();
            match numbers(rest).filter(|number| before < Some(*number)) {
                Some(number) => {
                    last.insert(name, number);
                    count += 1;
                }
                // Only the last one can have been cut, by the end of who wrote it.
                None => assert!(cut.insert(name), "{name} forwarded '{rest}' after {before:?}"),
            }
        }
        assert!(count + dropped >= self.lines, "{count} of {} were forwarded", self.lines);
    }
}

fn check_order(events: &[Value]) {
    for (number, event) in (1..).zip(events) {
        assert_eq!(event["seq"], json!(number), "the events are not consecutive at {event}");
    }
}

/// The exits of a job: each incarnation's once, in order, with the code it ended with.
fn check_ends(job: &Job, events: &[Value]) -> Vec<Value> {
    let name = &job.name;
    let told = events.iter().filter(|event| {
        event["source"] == **name
            && ["exitFailed", "exitSuccess", "stopped"].iter().any(|it| event["event"] == *it)
    });
    // What ended by itself, and is given up with that, is told by `stopped` once more.
    let mut last = Value::Null;
    let told = told.filter(|event| {
        let incarnation = event["detail"]["incarnation"].clone();
        let again = event["event"] == "stopped" && incarnation == last;
        last = incarnation;
        !again
    });
    let mut ends = Vec::new();
    for (run, event) in (1..).zip(told) {
        let detail = &event["detail"];
        assert_eq!(detail["incarnation"], json!(run), "an exit of {name}: {event}");
        let exit = &detail["exit"];
        if exit["code"].is_number() {
            assert!(job.crashes, "{name} was disturbed: {event}");
            assert_eq!(exit["code"], json!(code(name, run)), "run {run} of {name}");
        }
        ends.push(exit.clone());
    }
    let signalled = ends.iter().filter(|exit| exit["code"].is_null()).count();
    assert!(signalled <= 1, "{name}: only the shutdown ends it: {ends:?}");
    assert!(job.crashes || ends.len() == 1, "{name} ended once: {ends:?}");
    let stopped = |event: &&Value| event["source"] == **name && event["event"] == "stopped";
    assert_eq!(events.iter().filter(stopped).count(), 1, "{name} is stopped once");
    ends
}

/// The lines of a job's log, through all its archives.
fn log(node: &Node, job: &Job) -> Vec<String> {
    let dir = node.state_dir().join("logs").join(&job.name);
    let mut files: Vec<PathBuf> = fs::read_dir(&dir)
        .unwrap_or_else(|error| panic!("{}: {error}", dir.display()))
        .map(|entry| entry.expect("a directory").path())
        .filter(|path| path.extension().is_none_or(|extension| extension != "new"))
        .collect();
    files.sort();
    let original = |path: &Path| path.extension().is_some().then(|| path.with_extension(""));
    let mut found = Vec::new();
    for path in &files {
        // Compressed, and its original not yet removed when the run ended.
        if original(path).is_some_and(|original| files.contains(&original)) {
            continue;
        }
        for entry in read(path).lines() {
            let text = entry.splitn(4, ' ').nth(3).unwrap_or_else(|| panic!("torn: {entry}"));
            found.push(text.to_owned());
        }
    }
    found
}

fn read(path: &Path) -> String {
    let bytes = fs::read(path).expect("a log can be read");
    if path.extension().is_none() {
        return String::from_utf8(bytes).expect("plain text");
    }
    let mut text = String::new();
    GzDecoder::new(&bytes[..]).read_to_string(&mut text).expect("a whole archive");
    text
}

fn text((run, number): (u64, u64)) -> String {
    format!("{run} {number}")
}

fn numbers(text: &str) -> Option<(u64, u64)> {
    let (run, number) = text.split_once(' ')?;
    Some((run.parse().ok()?, number.parse().ok()?))
}
