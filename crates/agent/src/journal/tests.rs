//! What survives an agent that dies at any byte.

use super::*;
use crate::clock;
use mainstay_core::{
    exit::{Asked, Exit},
    name::Name,
    node::{Input, Node, Outcome, Request},
    plan::{JobPlan, NodePlan, Plan},
};
use snapshot::PlanPlace;
use std::{fs, sync::Arc};

const RUN: &str = "0123456789abcdef";

pub(super) struct Dir(pub(super) PathBuf);

impl Dir {
    pub(super) fn new(name: &str) -> Dir {
        let dir = std::env::temp_dir().join(format!("mainstay-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("temp dir");
        Dir(dir)
    }

    /// Without the room in reserve.
    pub(super) fn journal(&self) -> Vec<u8> {
        found::without_zeros(&fs::read(self.0.join("journal")).expect("a journal")).to_vec()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn recover(dir: &Dir, run: &str) -> Result<(Journal, Recovered), Damage> {
    Journal::recover(&dir.0, run, FoundJournal::read(&dir.0))
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

fn node() -> Node {
    let node = NodePlan {
        name: "n".into(),
        stop_timeout: Duration::from_secs(8),
        exit: mainstay_core::plan::ExitRule::Never,
        log_level: "info".into(),
        machine: None,
    };
    let jobs = ["a", "b"].map(|job| JobPlan::new(name(job), vec![job.into()]));
    Node::new(Plan::new(node, jobs.into()))
}

/// A node with its journal, as the agent drives them.
struct Driven {
    node: Node,
    journal: Journal,
    events: Vec<Arc<Event>>,
    taken: SeenTokens,
}

impl Driven {
    fn new(dir: &Dir) -> Driven {
        Driven {
            node: node(),
            journal: Journal::create(&dir.0, RUN),
            events: Vec::new(),
            taken: SeenTokens::default(),
        }
    }

    fn step(&mut self, input: Input, taken: Option<u64>) {
        self.step_beside_snapshot(input, taken);
        self.finish_snapshot();
    }

    fn step_beside_snapshot(&mut self, input: Input, taken: Option<u64>) {
        let Outcome { events, records, .. } = self.node.step(clock::now(), input);
        let change = Change { events: &events, records: &records, taken, upgrade: None };
        self.events.extend(events.iter().cloned().map(Arc::new));
        taken.into_iter().for_each(|token| self.taken.add(token));
        let (node, events, taken) = (&self.node, &self.events, &self.taken);
        // Whether it could be written is seen in what is recovered.
        let moment = || Moment::of(node, PlanPlace::File, events.clone(), taken, 0);
        let _ = self.journal.append(&change, moment);
    }

    /// Whether there was one.
    fn finish_snapshot(&mut self) -> bool {
        let written = self.journal.snapshots.finish();
        written.map(|written| self.journal.adopt(written)).is_some()
    }

    fn live_through_something(&mut self) {
        let (a, b) = (name("a"), name("b"));
        self.step(Input::Boot, None);
        self.step(Input::Spawned { job: a.clone(), incarnation: 1, pid: 10 }, None);
        self.step(Input::Spawned { job: b.clone(), incarnation: 1, pid: 11 }, None);
        let (exit, usage, asked) = (Exit::Code { code: 7 }, None, Asked::None);
        self.step(Input::Exited { job: a, incarnation: 1, exit, usage, asked }, None);
        self.step(Input::Request(Request::Stop { job: b }), Some(42));
    }

    fn assert_recovered(&self, recovered: &Recovered) {
        let again = recovered.memory.clone().restore(self.node.plan().clone());
        assert_eq!(again.snapshot(), self.node.snapshot());
        assert!(recovered.events.iter().eq(self.events.iter().map(AsRef::as_ref)));
    }
}

#[test]
fn what_was_journaled_is_recovered() {
    let dir = Dir::new("journal-whole");
    let mut driven = Driven::new(&dir);
    driven.live_through_something();
    let (_, recovered) = recover(&dir, RUN).expect("the journal of this run");
    driven.assert_recovered(&recovered);
    assert!(recovered.taken.contains(42));
}

#[test]
fn a_journal_cut_at_any_byte_gives_exactly_its_whole_steps() {
    let dir = Dir::new("journal-cut");
    let mut driven = Driven::new(&dir);
    let mut whole = vec![(dir.journal().len(), 0, node().snapshot())];
    let mut at = |driven: &Driven| {
        whole.push((dir.journal().len(), driven.events.len(), driven.node.snapshot()));
    };
    driven.step(Input::Boot, None);
    at(&driven);
    driven.step(Input::Spawned { job: name("a"), incarnation: 1, pid: 10 }, None);
    at(&driven);
    driven.step(Input::Request(Request::Stop { job: name("a") }), Some(1));
    at(&driven);
    let bytes = dir.journal();
    for cut in 0..=bytes.len() {
        fs::write(dir.0.join("journal"), &bytes[..cut]).expect("write");
        let recovered = recover(&dir, RUN);
        let Some((length, events, snapshot)) =
            whole.iter().rev().find(|(length, ..)| *length <= cut)
        else {
            assert!(recovered.is_err(), "a torn first line says nothing ({cut})");
            continue;
        };
        let (_, recovered) = recovered.expect("the journal of this run");
        assert_eq!(recovered.events.len(), *events, "cut at {cut}");
        let again = recovered.memory.restore(node().plan().clone());
        assert_eq!(again.snapshot(), *snapshot, "cut at {cut}");
        assert_eq!(dir.journal().len(), *length, "what was torn is gone");
    }
}

#[test]
fn a_flipped_bit_is_found() {
    let dir = Dir::new("journal-flip");
    let mut driven = Driven::new(&dir);
    driven.step(Input::Boot, None);
    let first = dir.journal().len();
    driven.step(Input::Spawned { job: name("a"), incarnation: 1, pid: 10 }, None);
    let mut bytes = dir.journal();
    bytes[first + 40] ^= 1;
    fs::write(dir.0.join("journal"), bytes).expect("write");
    recover(&dir, RUN).expect("the journal of this run");
    assert_eq!(dir.journal().len(), first);
}

#[test]
fn steps_after_a_recovery_follow_those_before_it() {
    let dir = Dir::new("journal-again");
    let mut driven = Driven::new(&dir);
    driven.step(Input::Boot, None);
    let torn = [dir.journal(), b"deadbeef {\"change".to_vec()].concat();
    fs::write(dir.0.join("journal"), torn).expect("write");
    let (journal, _) = recover(&dir, RUN).expect("the journal of this run");
    driven.journal = journal;
    driven.step(Input::Spawned { job: name("a"), incarnation: 1, pid: 10 }, None);
    let (_, recovered) = recover(&dir, RUN).expect("the journal of this run");
    driven.assert_recovered(&recovered);
}

#[test]
fn a_long_journal_is_replaced_by_a_snapshot_that_says_the_same() {
    let dir = Dir::new("journal-base");
    let mut driven = Driven::new(&dir);
    driven.live_through_something();
    driven.journal.limit = 0;
    driven.step(Input::Spawned { job: name("a"), incarnation: 2, pid: 12 }, Some(43));
    let text = String::from_utf8(dir.journal()).expect("text");
    assert!(text.contains("\"snapshot\"") && !text.contains("\"change\""), "{text}");
    assert_eq!(driven.journal.limit, LIMIT);
    driven.step(Input::LogGap { job: name("a"), lines: 3 }, None);
    let (_, recovered) = recover(&dir, RUN).expect("the journal of this run");
    driven.assert_recovered(&recovered);
    assert!(recovered.taken.contains(42) && recovered.taken.contains(43));
}

#[test]
fn changes_beside_a_snapshot_follow_it() {
    let dir = Dir::new("journal-beside");
    let mut driven = Driven::new(&dir);
    driven.live_through_something();
    driven.journal.limit = 0;
    driven.step_beside_snapshot(Input::LogGap { job: name("a"), lines: 1 }, None);
    driven.journal.limit = LIMIT;
    let before = dir.journal();
    driven
        .step_beside_snapshot(Input::Spawned { job: name("a"), incarnation: 2, pid: 12 }, Some(43));
    let (_, recovered) = recover(&dir, RUN).expect("the journal of this run");
    driven.assert_recovered(&recovered);
    assert!(dir.journal().starts_with(&before), "who dies now leaves the journal");
    driven.journal.keep_room(2);
    let Room::Kept(room) = driven.journal.room else { panic!("{:?}", driven.journal.room) };
    assert!(driven.finish_snapshot());
    let text = String::from_utf8(dir.journal()).expect("text");
    assert_eq!(text.matches("\"change\"").count(), 1, "{text}");
    for file in ["journal", ".journal.new"] {
        let length = fs::metadata(dir.0.join(file)).expect("there").len();
        assert!(length >= room, "{file} has its room");
    }
    assert!(!dir.0.join(".journal.snapshot").exists());
    driven.step(Input::LogGap { job: name("b"), lines: 3 }, None);
    let (_, recovered) = recover(&dir, RUN).expect("the journal of this run");
    driven.assert_recovered(&recovered);
    assert!(recovered.taken.contains(42) && recovered.taken.contains(43));
}

#[test]
fn a_snapshot_that_cannot_be_written_leaves_a_journal_that_goes_on() {
    let dir = Dir::new("journal-no-snapshot");
    let mut driven = Driven::new(&dir);
    driven.live_through_something();
    fs::create_dir(dir.0.join(".journal.snapshot")).expect("an obstacle");
    driven.journal.limit = 0;
    driven.step(Input::LogGap { job: name("a"), lines: 1 }, None);
    assert!(!driven.journal.has_failed());
    assert!(driven.journal.limit > LIMIT, "not at every step");
    driven.step(Input::LogGap { job: name("a"), lines: 2 }, None);
    let (_, recovered) = recover(&dir, RUN).expect("the journal of this run");
    driven.assert_recovered(&recovered);
}

#[test]
fn a_snapshot_of_before_a_change_that_was_not_written_is_of_no_use() {
    let dir = Dir::new("journal-outdated");
    let mut driven = Driven::new(&dir);
    driven.live_through_something();
    driven.journal.limit = 0;
    driven.step_beside_snapshot(Input::LogGap { job: name("a"), lines: 1 }, None);
    let full = io::Error::from(io::ErrorKind::StorageFull);
    driven.journal.fail(&full);
    driven.step_beside_snapshot(Input::LogGap { job: name("a"), lines: 2 }, None);
    assert!(driven.finish_snapshot() && driven.journal.has_failed());
    assert!(!dir.0.join(".journal.snapshot").exists(), "it takes no room");
    let since = Instant::now().checked_sub(RETRY).expect("up for a second");
    driven.journal.failure = Some(Failure { since, why: full.kind() });
    driven.step(Input::LogGap { job: name("a"), lines: 3 }, None);
    let (_, recovered) = recover(&dir, RUN).expect("the journal of this run");
    driven.assert_recovered(&recovered);
}

#[test]
fn only_the_latest_events_are_kept() {
    let dir = Dir::new("journal-kept");
    let mut driven = Driven::new(&dir);
    driven.step(Input::Boot, None);
    for lines in 0..KEPT as u64 {
        driven.step(Input::LogGap { job: name("a"), lines }, None);
    }
    let (_, recovered) = recover(&dir, RUN).expect("the journal of this run");
    assert_eq!(recovered.events.len(), KEPT);
    let last = driven.events.last().map(|event| event.seq);
    assert_eq!(recovered.events.back().map(|event| event.seq), last);
}

#[test]
fn a_journal_of_long_texts_stays_small() {
    let dir = Dir::new("journal-long");
    let mut driven = Driven::new(&dir);
    driven.step(Input::Boot, None);
    let mut most = 0;
    for incarnation in 1..3000 {
        let (exit, usage, asked) = (Exit::error("e".repeat(200_000), 7), None, Asked::None);
        driven.step(Input::Exited { job: name("a"), incarnation, exit, usage, asked }, None);
        most = most.max(fs::metadata(dir.0.join("journal")).expect("there").len());
    }
    assert!(most < 10 << 20, "{most}");
    let (_, recovered) = recover(&dir, RUN).expect("the journal of this run");
    assert!(recovered.events.iter().all(|event| event.kind.size() < 5000));
}

#[test]
fn the_journal_of_another_run_is_not_ours() {
    let dir = Dir::new("journal-other");
    Driven::new(&dir).step(Input::Boot, None);
    assert!(recover(&dir, "fedcba9876543210").is_err());
}

#[test]
fn a_journal_that_cannot_be_written_is_taken_up_again_later() {
    let dir = Dir::new("journal-full");
    let mut driven = Driven::new(&dir);
    driven.step(Input::Boot, None);
    let full = io::Error::from(io::ErrorKind::StorageFull);
    driven.journal.fail(&full);
    driven.step(Input::Spawned { job: name("a"), incarnation: 1, pid: 10 }, None);
    assert!(driven.journal.has_failed(), "it is not tried at once");
    let since = Instant::now().checked_sub(RETRY).expect("up for a second");
    driven.journal.failure = Some(Failure { since, why: full.kind() });
    driven.step(Input::Request(Request::Stop { job: name("a") }), None);
    let (_, recovered) = recover(&dir, RUN).expect("the journal of this run");
    driven.assert_recovered(&recovered);
}

#[test]
fn a_crash_and_its_restart_journal_one_job_and_its_events() {
    let dir = Dir::new("journal-crash");
    let mut driven = Driven::new(&dir);
    driven.live_through_something();
    let before = dir.journal().len();
    driven.step(Input::Spawned { job: name("a"), incarnation: 2, pid: 12 }, None);
    let exit = Exit::Code { code: 7 };
    let (usage, asked) = (None, Asked::None);
    driven.step(Input::Exited { job: name("a"), incarnation: 2, exit, usage, asked }, None);
    let written = dir.journal();
    let lines = written[before..].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    for line in lines {
        let change: serde_json::Value = serde_json::from_slice(&line[9..]).expect("JSON");
        let records = change["change"]["records"].as_array().expect("records");
        assert_eq!(records.len(), 1, "{change}");
        assert_eq!(records[0]["job"][0], "a", "{change}");
        assert!(change["change"]["events"].as_array().is_some_and(|it| !it.is_empty()));
    }
}

#[test]
fn a_record_of_a_newer_binary_is_passed_over() {
    let dir = Dir::new("journal-newer");
    let mut driven = Driven::new(&dir);
    driven.live_through_something();
    let newer = br#"{"change":{"records":[{"fleet":{"master":"n2"}}],"more":1}}"#;
    let mut bytes = dir.journal();
    bytes.extend(format!("{:08x} ", crc32fast::hash(newer)).as_bytes());
    bytes.extend(newer);
    bytes.push(b'\n');
    fs::write(dir.0.join("journal"), bytes).expect("write");
    let (_, recovered) = recover(&dir, RUN).expect("the journal of this run");
    assert_eq!(recovered.memory.passed_over(), 1);
    driven.assert_recovered(&recovered);
}

fn checksummed(json: &str) -> Vec<u8> {
    format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes())).into_bytes()
}

/// The journal of a node, with a line of a newer binary between its last step and those before.
fn with_line_of_a_newer_binary(dir: &Dir, json: impl FnOnce(u64) -> String) -> Driven {
    let mut driven = Driven::new(dir);
    driven.live_through_something();
    let seq = driven.events.last().map(|event| event.seq).expect("events");
    let before = dir.journal().len();
    driven.step(Input::LogGap { job: name("a"), lines: 3 }, Some(44));
    let mut bytes = dir.journal();
    bytes.splice(before..before, checksummed(&json(seq)));
    fs::write(dir.0.join("journal"), bytes).expect("write");
    driven
}

fn assert_passed_over(dir: &Dir, driven: &Driven, what: &str) -> Recovered {
    let bytes = dir.journal();
    check(&dir.0).expect("only the format says who may follow");
    let (_, recovered) = recover(dir, RUN).expect("the journal of this run");
    assert_eq!(dir.journal(), bytes, "nothing is cut off");
    assert_eq!(recovered.passed_over().as_deref(), Some(what));
    assert!(recovered.taken.contains(44), "what follows is read");
    driven.assert_recovered(&recovered);
    recovered
}

#[test]
fn an_event_of_a_newer_binary_is_passed_over_and_its_line_is_not() {
    let dir = Dir::new("journal-newer-event");
    let mut driven = with_line_of_a_newer_binary(&dir, |seq| {
        let known = format!(r#"{{"seq":{seq},"time":0,"source":"global","event":"startup"}}"#);
        let kind = r#""time":0,"source":"fleet.n","event":"failed-over","to":["n2"]"#;
        format!(
            r#"{{"change":{{"events":[{known},{{"seq":7000,{kind}}}],"records":[{{"environ":{{"COLOUR":"red"}}}}],"taken":45,"more":1}},"more":2}}"#
        )
    });
    let bytes = dir.journal();
    check(&dir.0).expect("only the format says who may follow");
    let (journal, recovered) = recover(&dir, RUN).expect("the journal of this run");
    assert_eq!(dir.journal(), bytes, "nothing is cut off");
    assert_eq!(recovered.passed_over().as_deref(), Some("1 event"));
    assert!(recovered.taken.contains(44) && recovered.taken.contains(45));
    let environ: Vec<_> = recovered.memory.environ().iter().collect();
    assert_eq!(environ, [("COLOUR", Some("red"))], "its records count");
    assert_eq!(recovered.events.len(), driven.events.len() + 1, "and so do its other events");

    driven.node = recovered.memory.restore(driven.node.plan().clone());
    driven.journal = journal;
    driven.step(Input::LogGap { job: name("a"), lines: 4 }, None);
    assert_eq!(driven.events.last().map(|event| event.seq), Some(7001), "its number is taken");
}

#[test]
fn an_event_of_a_newer_binary_in_a_snapshot_is_passed_over() {
    let dir = Dir::new("journal-newer-events");
    let unknown = r#"{"events":[{"seq":1,"time":0,"source":"global","event":"failed-over"}]}"#;
    let driven = with_line_of_a_newer_binary(&dir, |_| unknown.to_owned());
    assert_passed_over(&dir, &driven, "1 event");
}

#[test]
fn a_record_that_is_not_understood_is_passed_over_alone() {
    let dir = Dir::new("journal-newer-record");
    let records = r#"{"fleet":{"master":"n2"}},{"app":["shop",{"dancing":1}]},"bare""#;
    let driven = with_line_of_a_newer_binary(&dir, |seq| {
        format!(r#"{{"change":{{"records":[{records},{{"seq":{seq}}}]}}}}"#)
    });
    assert_passed_over(&dir, &driven, "3 records");
}

#[test]
fn a_line_of_an_unknown_kind_is_passed_over() {
    let dir = Dir::new("journal-newer-line");
    let driven = with_line_of_a_newer_binary(&dir, |_| r#"{"rollout":{"step":3}}"#.to_owned());
    assert_passed_over(&dir, &driven, "1 whole line");
}

#[test]
fn a_whole_line_that_says_nothing_is_passed_over() {
    let dir = Dir::new("journal-newer-nothing");
    let driven = with_line_of_a_newer_binary(&dir, |_| "no JSON at all".to_owned());
    assert_passed_over(&dir, &driven, "1 whole line");
}

#[test]
fn a_snapshot_of_a_newer_binary_gives_what_is_understood_of_it() {
    let dir = Dir::new("journal-newer-snapshot");
    let mut driven = Driven::new(&dir);
    driven.journal.limit = 0;
    driven.step(Input::Boot, Some(44));
    let text = String::from_utf8(dir.journal()).expect("text");
    let newer = |line: &str| match line[9..].strip_prefix(r#"{"snapshot":{"records":["#) {
        None => checksummed(&line[9..]),
        Some(rest) => {
            let odd = r#"{"app":["shop",{"dancing":1}]}"#;
            checksummed(&format!(r#"{{"snapshot":{{"records":[{odd},{rest}"#))
        }
    };
    fs::write(dir.0.join("journal"), text.lines().flat_map(newer).collect::<Vec<u8>>())
        .expect("write");
    assert_passed_over(&dir, &driven, "1 record");
}

#[test]
fn a_damaged_line_in_the_middle_lets_nobody_take_over() {
    let dir = Dir::new("journal-damaged");
    let mut driven = Driven::new(&dir);
    driven.step(Input::Boot, None);
    let first = dir.journal().len();
    check(&dir.0).expect("a whole journal");
    driven.step(Input::Spawned { job: name("a"), incarnation: 1, pid: 10 }, None);
    let mut bytes = dir.journal();
    bytes[first + 40] ^= 1;
    fs::write(dir.0.join("journal"), &bytes).expect("write");
    assert!(matches!(check(&dir.0), Err(Unreadable::Content { .. })));
    bytes.truncate(first + 60);
    fs::write(dir.0.join("journal"), &bytes).expect("write");
    check(&dir.0).expect("it is still on its way");
}
