//! What a torture has left, against what must be. `planted` shows that it finds what is wrong.

use super::Job;
use flate2::read::GzDecoder;
use mainstay_tests::writer::{BURST, Notes, code, lines};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Read,
    path::{Path, PathBuf},
};

/// What there is to judge by.
#[derive(Debug)]
pub(super) struct Evidence<'a> {
    pub(super) jobs: &'a [Job],
    /// All events, as somebody has seen them who followed from the first.
    pub(super) events: &'a [Value],
    /// The directory of logs.
    pub(super) logs: PathBuf,
    /// What the writers have noted themselves.
    pub(super) notes: &'a Path,
    /// Jobs that nothing may have disturbed, with their pids at the beginning and at the end.
    pub(super) pids: &'a [(String, u32, Option<u32>)],
    /// What was forwarded, and how many lines were not, by the node's own count.
    pub(super) stdout: String,
    pub(super) dropped: u64,
}

#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub(super) events: usize,
    /// Told to nobody: they were lost with a journal that was damaged.
    pub(super) lost_events: u64,
    pub(super) lost_journals: u64,
    pub(super) exits: u64,
    pub(super) upgrades: u64,
    pub(super) lines: u64,
    /// Starts that a fault has kept from happening.
    pub(super) not_started: u64,
    /// Lines that a full disk has cost, each of them counted in the log itself.
    pub(super) counted_gaps: u64,
    /// Lines of the oldest archives, which go first when a disk is full.
    pub(super) cleared: u64,
    /// How many lines each run of a job has written.
    runs: BTreeMap<(String, u64), u64>,
}

impl Verdict {
    /// # Panics
    /// When something was lost, repeated or disturbed.
    pub(super) fn find(evidence: &Evidence<'_>) -> Verdict {
        let Evidence { jobs, events, logs, notes, pids, .. } = evidence;
        for (name, before, after) in *pids {
            assert_eq!(Some(*before), *after, "{name} was disturbed: it has another pid");
        }
        let lost_events = check_order(events);
        let named = |name: &str| events.iter().filter(|event| event["event"] == name).count();
        let mut verdict = Verdict {
            events: events.len(),
            lost_events,
            lost_journals: named("journalLost") as u64,
            upgrades: named("upgraded") as u64,
            ..Verdict::default()
        };
        let mut unseen = 0;
        for job in *jobs {
            let notes = Notes::new(notes, &job.name);
            assert!(!notes.alarm().exists(), "two incarnations of {} were alive", job.name);
            let Ends { ends, not_started, untold } = check_ends(job, events);
            unseen += untold;
            let log = log(logs, job);
            let gaps = verdict.check_log(job, &ends, &log);
            verdict.check_runs(job, &ends, gaps, &notes);
            verdict.exits += ends.len() as u64;
            verdict.not_started += not_started;
            verdict.counted_gaps += gaps;
        }
        assert!(unseen <= lost_events, "{unseen} ends are missing, and {lost_events} events");
        verdict.lines = verdict.runs.values().sum();
        verdict.check_forwarded(evidence);
        verdict
    }

    /// Every run's lines from 1 to its last, one run after the other; how many are missing by the
    /// count of the log itself.
    fn check_log(&mut self, job: &Job, ends: &[Value], log: &[String]) -> u64 {
        let (mut gaps, mut after_gap) = (0, false);
        let mut expected = self.first_kept(job, log);
        let mut begun = !job.under_faults;
        for (place, line) in log.iter().enumerate() {
            begun |= numbers(line).is_some();
            if let Some(missing) = gap(line) {
                // What is missing before the first that was kept is among the cleared ones.
                gaps += if begun { missing } else { 0 };
                after_gap = true;
                continue;
            }
            if let (true, Some(found)) = (after_gap, numbers(line)) {
                assert!(found >= expected, "the log of {} has {line} for {expected:?}", job.name);
                expected = found;
            }
            after_gap = false;
            let first_of_next = (expected.0 + 1, 1);
            if *line == text(first_of_next) {
                expected = first_of_next;
            }
            if *line != text(expected) {
                let cut = text(expected).starts_with(line) && place + 1 == log.len();
                let stopped = ends.last().is_some_and(|end| end["code"].is_null());
                assert!(cut && stopped, "the log of {} has {line} for {expected:?}", job.name);
                return gaps;
            }
            *self.runs.entry((job.name.clone(), expected.0)).or_default() += 1;
            expected.1 += 1;
        }
        gaps
    }

    /// The first number in the log. Under faults it need not be the first that was written.
    fn first_kept(&mut self, job: &Job, log: &[String]) -> (u64, u64) {
        let first = log.iter().find_map(|line| numbers(line)).filter(|_| job.under_faults);
        let (run, number) = first.unwrap_or((1, 1));
        let before = (1..run).map(|run| (run, lines(&job.name, run))).chain([(run, number - 1)]);
        for (run, count) in before.filter(|(_, count)| *count > 0) {
            self.runs.insert((job.name.clone(), run), count);
            self.cleared += count;
        }
        (run, number)
    }

    /// As many lines as each run has written, but for those that the gaps have counted.
    fn check_runs(&self, job: &Job, ends: &[Value], gaps: u64, notes: &Notes) {
        let name = &job.name;
        // The least and the most that can be missing.
        let (mut least, mut most) = (0, 0);
        for (run, end) in (1..).zip(ends) {
            let found = self.runs.get(&(name.clone(), run)).copied().unwrap_or(0);
            let (written, more) = match end["code"].is_number() {
                true => (lines(name, run), 0),
                false => (notes.written(run), BURST),
            };
            assert!(found <= written + more, "run {run} of {name} wrote {written}, not {found}");
            let missing = written.saturating_sub(found);
            assert!(gaps > 0 || missing == 0, "{missing} lines of run {run} of {name} are lost");
            least += missing;
            most += written + more - found;
        }
        assert!(
            (least..=most).contains(&gaps),
            "{name}: {gaps} lines are counted as missing, and {least} to {most} are"
        );
        let last = ends.len() as u64;
        // The last one may have been stopped before it could count itself.
        assert!((last - 1..=last).contains(&notes.runs()), "{} runs of {}", last, job.name);
    }

    /// What went to the node's stdout: nothing twice, and nothing missing that was not counted.
    fn check_forwarded(&self, evidence: &Evidence<'_>) {
        let names: BTreeSet<&str> = evidence.jobs.iter().map(|job| job.name.as_str()).collect();
        let mut last: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        let mut cut: BTreeSet<&str> = BTreeSet::new();
        let mut count = 0;
        for line in evidence.stdout.lines() {
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
        let forwarded = count + evidence.dropped;
        assert!(forwarded >= self.lines, "{count} of {} were forwarded", self.lines);
    }
}

/// How many numbers are missing: only before the first words of an agent that found the journal
/// lost, with which they were.
fn check_order(events: &[Value]) -> u64 {
    let (mut expected, mut missing) = (1, 0);
    for (place, event) in events.iter().enumerate() {
        let number = event["seq"].as_u64().expect("a number");
        let mut first_words =
            events[place..].iter().skip_while(|it| it["event"] == "agentRestarted");
        let lost = first_words.next().is_some_and(|it| it["event"] == "journalLost");
        if lost && number > expected {
            missing += number - expected;
            expected = number;
        }
        assert_eq!(number, expected, "an event is lost or repeated at {event}");
        expected += 1;
    }
    missing
}

/// The exits of a job: each incarnation's once, in order, with the code it ended with.
fn check_ends(job: &Job, events: &[Value]) -> Ends {
    let name = &job.name;
    // An end may be told again once the journal that had it is lost.
    let mut lost = false;
    let mut highest = 0;
    let told = events.iter().filter(|event| {
        lost |= event["event"] == "journalLost";
        let ended = event["source"] == **name
            && ["exitFailed", "exitSuccess", "stopped"].iter().any(|it| event["event"] == *it);
        let incarnation = event["detail"]["incarnation"].as_u64().unwrap_or(0);
        let again = ended && incarnation == highest && event["event"] != "stopped";
        highest = if ended { incarnation } else { highest };
        ended && !(again && std::mem::take(&mut lost))
    });
    // What ended by itself, and is given up with that, is told by `stopped` once more.
    let mut last = Value::Null;
    let told = told.filter(|event| {
        let incarnation = event["detail"]["incarnation"].clone();
        let again = event["event"] == "stopped" && incarnation == last;
        last = incarnation;
        !again
    });
    let (mut ends, mut not_started, mut untold) = (Vec::new(), 0, 0);
    let lossy = events.iter().any(|event| event["event"] == "journalLost");
    let mut incarnation = 0;
    for event in told {
        let detail = &event["detail"];
        incarnation += 1;
        let found = detail["incarnation"].as_u64().unwrap_or(0);
        while lossy && incarnation < found {
            // Nobody was told how it ended.
            ends.push(json!({ "lost": true }));
            untold += 1;
            incarnation += 1;
        }
        assert_eq!(found, incarnation, "an exit of {name}: {event}");
        let exit = &detail["exit"];
        if exit["error"].is_string() {
            assert!(job.under_faults, "{name} was not started: {event}");
            not_started += 1;
            continue;
        }
        let run = ends.len() as u64 + 1;
        if exit["code"].is_number() {
            assert!(job.crashes, "{name} was disturbed: {event}");
            assert_eq!(exit["code"], json!(code(name, run)), "run {run} of {name}");
        }
        ends.push(exit.clone());
    }
    let signalled = ends.iter().filter(|it| it["code"].is_null() && it["lost"].is_null()).count();
    assert!(signalled <= 1, "{name}: only the shutdown ends it: {ends:?}");
    assert!(job.crashes || ends.len() == 1, "{name} ended once: {ends:?}");
    let stopped = |event: &&Value| event["source"] == **name && event["event"] == "stopped";
    assert_eq!(events.iter().filter(stopped).count(), 1, "{name} is stopped once");
    Ends { ends, not_started, untold }
}

/// How the runs of a job have ended, and how many there were not.
struct Ends {
    ends: Vec<Value>,
    not_started: u64,
    untold: u64,
}

/// The lines of a job's log, through all its archives.
fn log(logs: &Path, job: &Job) -> Vec<String> {
    let dir = logs.join(&job.name);
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

/// How many lines are missing where this one stands.
fn gap(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("mainstay: ")?;
    rest.split_once(" lines are missing here")?.0.parse().ok()
}

fn text((run, number): (u64, u64)) -> String {
    format!("{run} {number}")
}

fn numbers(text: &str) -> Option<(u64, u64)> {
    let (run, number) = text.split_once(' ')?;
    Some((run.parse().ok()?, number.parse().ok()?))
}
