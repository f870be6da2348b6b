//! The journal: what the next agent must know, written before anything of it becomes visible.
//!
//! A line is a checksum (CRC-32, 8 hex digits), a space and JSON. The first line says whose journal
//! it is; then comes a snapshot (everything at one moment) if there was one, then a change for each
//! input that changed something. Both are made of records, which the node makes and takes back:
//! what is in them is no affair of the journal. A line is written by one write(2) and never synced:
//! it has to survive the agent, not the machine. Whatever follows the last whole line was never made
//! visible, and is dropped; what is whole and not understood is passed over (`line`). Past 4 MiB the
//! file is replaced by a new snapshot, which is written outside the loop (`snapshot`).
//!
//! A full disk does not stop it: room for two contents is taken from the disk in advance, each for a
//! snapshot and a megabyte of changes. When one is used up and the disk gives no more, a snapshot
//! with some of the last events goes into the other, at once.
//!
//! A journal that cannot be written (a broken disk, or a full one where no room could be had) stops
//! nobody: the agent says so once, goes on in memory, and tries a new snapshot once a second. Until
//! then the keeper keeps what only it knows.

mod damage;
mod encode;
mod format;
pub(crate) mod found;
mod legacy;
mod line;
pub(crate) mod plan_file;
pub(crate) mod recovery;
mod room;
pub(crate) mod snapshot;
pub(crate) mod state_files;

pub use format::Unreadable;

use crate::{event_log::KEPT, inputs::seen_tokens::SeenTokens};
use damage::Damage;
use encode::{Written, encode};
use format::Format;
use found::{FoundJournal, read};
use line::{Line, LineEvents, decode};
use mainstay_core::{
    event::Event,
    record::{Memory, Record},
};
use mainstay_sys::{
    proc::boot_id,
    reserved_file::ReservedFile,
    state_dir::{Durability, StateDir},
};
use room::{ROOM, Room};
use serde::{Deserialize, Serialize};
use snapshot::{Moment, Snapshot, SnapshotWriter};
use std::{
    collections::VecDeque,
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

const FILE: &str = "journal";
const MODE: u32 = 0o600;
const LIMIT: u64 = 4 << 20;
/// The memory of a line no longer than that is used for the next one.
const LINE: usize = 16 << 10;
/// A change of so many events and records is as good as none.
const SHORT: usize = 100;
pub(crate) const RETRY: Duration = Duration::from_secs(1);

/// Whose journal it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    #[serde(flatten)]
    format: Format,
    run: String,
    boot: String,
}

/// What has come of one input.
#[derive(Debug, Serialize)]
pub(crate) struct Change<'a> {
    pub(crate) events: &'a [Event],
    pub(crate) records: &'a [Record],
    /// The keeper's token of this input: it need not be delivered again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) taken: Option<u64>,
    /// The number of the last upgrade that was told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) upgrade: Option<u64>,
}

impl Change<'_> {
    fn is_short(&self) -> bool {
        self.events.len().max(self.records.len()) <= SHORT
    }
}

/// What an earlier agent of this run left.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    /// That of the agent that began this journal.
    format: Option<Format>,
    pub(crate) memory: Memory,
    pub(crate) events: VecDeque<Event>,
    pub(crate) taken: SeenTokens,
    /// The last upgrade that was told.
    pub(crate) upgrade: u64,
    /// How many events of unknown kinds there were.
    unknown_events: usize,
    /// How many lines there were of which nothing is understood.
    unknown_lines: usize,
    /// What follows this line is not known.
    broken_at: Option<usize>,
}

#[derive(Debug)]
pub(crate) struct Journal {
    run_dir: PathBuf,
    header: Header,
    /// `None`: there was none to be had yet.
    file: Option<ReservedFile>,
    /// Why the last decision is not in it.
    failure: Option<Failure>,
    room: Room,
    /// A snapshot is due once it is longer.
    limit: u64,
    /// The next change begins it anew, as a snapshot: nothing may be added to what is there.
    anew: bool,
    snapshots: SnapshotWriter,
    /// Said once, until it can be written again.
    failure_told: bool,
    /// Said once as well: there was room for everything but the plan.
    planless_told: bool,
    /// Memory for the next line.
    line: Vec<u8>,
}

#[derive(Debug)]
struct Failure {
    since: Instant,
    why: io::ErrorKind,
}

impl Journal {
    /// An empty journal in place of whatever was there.
    pub(crate) fn create(run_dir: &Path, run: &str) -> Journal {
        let mut journal = Journal::closed(run_dir, run);
        let mut bytes = Vec::new();
        let written = encode(&mut bytes, &Written::Header(&journal.header))
            .and_then(|()| journal.replace(&bytes));
        match written {
            Ok(()) => journal.failure = None,
            Err(error) => journal.fail(&error),
        }
        journal
    }

    /// Opens the journal of this run and reads what is in it, up to the first damage. A damaged
    /// tail is cut: nothing of it was made visible.
    pub(crate) fn recover(
        run_dir: &Path,
        run: &str,
        found: Result<FoundJournal, Damage>,
    ) -> Result<(Journal, Recovered), Damage> {
        let FoundJournal { recovered, header, valid, dropped } = found?;
        let mut journal = Journal::closed(run_dir, run);
        if !header.is_of(&journal.header) {
            return Err(Damage::Foreign);
        }
        if let (Some((bytes, lines)), None) = (dropped, recovered.broken_at) {
            tracing::info!(
                "cut the tail of the journal, {bytes} bytes in {lines} lines: a step cut short"
            );
        }
        if let Some(what) = recovered.passed_over() {
            tracing::warn!(
                "passed over what this agent does not understand of the journal: {what}; a newer one \
                 has written it"
            );
        }
        if recovered.format != Some(Format::OURS) {
            // What is added must not stand under the number of another: the next change begins anew.
            journal.begin_anew();
        }
        let opened = StateDir::open(run_dir, Durability::Process)
            .and_then(|dir| ReservedFile::open(dir, FILE.as_ref(), MODE, valid));
        match opened {
            Ok(file) => (journal.file, journal.failure) = (Some(file), None),
            Err(error) => journal.fail(&error),
        }
        Ok((journal, recovered))
    }

    /// The next change begins it anew, as a snapshot.
    fn begin_anew(&mut self) {
        self.anew = true;
    }

    fn closed(run_dir: &Path, run: &str) -> Journal {
        Journal {
            run_dir: run_dir.to_owned(),
            header: Header { format: Format::OURS, run: run.to_owned(), boot: boot_id() },
            file: None,
            failure: Some(Failure { since: Instant::now(), why: io::ErrorKind::NotFound }),
            room: Room::Kept(0),
            limit: LIMIT,
            anew: false,
            snapshots: SnapshotWriter::new(),
            failure_told: false,
            planless_told: false,
            line: Vec::new(),
        }
    }

    fn path(&self) -> PathBuf {
        self.run_dir.join(FILE)
    }

    /// What was decided last is in no journal.
    pub(crate) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Tries again to write everything down, once it could not be written.
    ///
    /// # Errors
    /// It still cannot be written.
    pub(crate) fn retry(&mut self, moment: &Moment) -> io::Result<()> {
        self.rebase(moment)
    }

    /// Adds a change. `moment` is everything as it is after it.
    ///
    /// # Errors
    /// It is not written, and that was said. A later attempt writes everything.
    pub(crate) fn append(
        &mut self,
        change: &Change<'_>,
        moment: impl FnOnce() -> Moment,
    ) -> io::Result<()> {
        match &self.failure {
            Some(failure) if failure.since.elapsed() < RETRY => return Err(failure.why.into()),
            Some(_) => return self.rebase(&moment()),
            None => {}
        }
        let file = match &mut self.file {
            Some(file) if !self.anew => file,
            Some(_) | None => return self.rebase(&moment()),
        };
        let mut bytes = std::mem::take(&mut self.line);
        bytes.clear();
        let added = encode(&mut bytes, &Written::Change(change)).and_then(|()| file.append(&bytes));
        match added {
            Ok(()) => {}
            // There is room for a snapshot in reserve.
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                return self.rebase(&moment());
            }
            Err(error) => {
                self.fail(&error);
                return Err(error);
            }
        }
        self.snapshots.add(&bytes);
        if bytes.capacity() <= LINE {
            self.line = bytes;
        }
        let size = file.length();
        // A long change takes its time by itself: the snapshot is left to the next one.
        if size > self.limit && (change.is_short() || size > 2 * self.limit) {
            self.snapshots.begin(&self.run_dir, &self.header, file.room(), moment);
        }
        Ok(())
    }

    /// The next snapshot that was written beside the journal. May be dropped at any time.
    pub(crate) async fn snapshot_written(&mut self) -> io::Result<Snapshot> {
        self.snapshots.finished().await
    }

    /// Puts a snapshot in the place of the journal, with all that was added since.
    pub(crate) fn adopt(&mut self, written: io::Result<Snapshot>) {
        let (Some(since), Some(file)) = (self.snapshots.take_since(), &mut self.file) else {
            // Whoever began anew meanwhile has more than it.
            return snapshot::discard(&self.run_dir);
        };
        let size = file.length();
        match written.and_then(|snapshot| snapshot.take_over(file, &since)) {
            Ok(state) => {
                self.begun(state);
                self.tell_of_plan(false);
            }
            Err(error) => {
                snapshot::discard(&self.run_dir);
                tracing::warn!(
                    "cannot replace {} by a shorter one: {error}; it goes on to grow, and this is \
                     tried again",
                    self.path().display()
                );
                self.limit = size + LIMIT;
            }
        }
    }

    /// A new snapshot in place of everything, now. Without the plan that it should have it is
    /// written, and an error.
    fn rebase(&mut self, moment: &Moment) -> io::Result<()> {
        self.snapshots.outdate();
        let mut full = io::Error::from(rustix::io::Errno::NOSPC);
        for (with_plan, share) in moment.attempts() {
            let written = moment
                .encode(&self.header, with_plan, share)
                .and_then(|(bytes, state)| self.replace(&bytes).map(|()| state));
            match written {
                Ok(state) => {
                    self.begun(state);
                    let planless = moment.has_plan() && !with_plan;
                    self.tell_of_plan(planless);
                    // A plan that should have been written and was not is one nobody can count on.
                    return if planless { Err(full) } else { Ok(()) };
                }
                Err(error) if error.kind() == io::ErrorKind::StorageFull => full = error,
                Err(error) => {
                    self.fail(&error);
                    return Err(error);
                }
            }
        }
        self.fail(&full);
        Err(full)
    }

    /// A snapshot with so many bytes of state is the journal now.
    fn begun(&mut self, state: u64) {
        if std::mem::take(&mut self.failure_told) {
            tracing::info!("the journal can be written again");
        }
        (self.failure, self.anew) = (None, false);
        // A snapshot that is large by itself must not be replaced at every step.
        let size = self.file.as_ref().map_or(0, ReservedFile::length);
        self.limit = LIMIT.max(size + LIMIT.min(size));
        if let Room::Kept(room) | Room::Missing(room) = self.room {
            self.want_room(room.max(ROOM + 2 * state));
        }
    }

    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.file {
            Some(file) => file.replace(bytes),
            None => {
                let dir = StateDir::open(&self.run_dir, Durability::Process)?;
                self.file = Some(ReservedFile::create(dir, FILE.as_ref(), MODE, bytes)?);
                Ok(())
            }
        }
    }

    fn tell_of_plan(&mut self, missing: bool) {
        if missing && !std::mem::replace(&mut self.planless_told, missing) {
            tracing::error!(
                "{} has no room for the plan in force: an agent that follows this one goes on with \
                 the jobs as they are, and by an older plan or the configuration as it is then",
                self.path().display()
            );
        }
        self.planless_told = missing;
    }

    fn fail(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.failure_told, true) {
            tracing::error!(
                "cannot write {}: {error}; going on without it: if the agent dies now, the next \
                 one knows less. Free some space, the journal is taken up again by itself",
                self.path().display()
            );
        }
        self.snapshots.outdate();
        self.failure = Some(Failure { since: Instant::now(), why: error.kind() });
    }
}

/// Whether this binary can go on with the journal of a running node: its format says so, and it is
/// whole.
pub(crate) fn check(run_dir: &Path) -> Result<(), Unreadable> {
    let Some(bytes) = format::bytes(run_dir, FILE)? else { return Ok(()) };
    let first = bytes.split(|byte| *byte == b'\n').next().and_then(decode);
    let Some(Line::Header(header)) = first else {
        return Err(Unreadable::content(FILE, "it begins in another way"));
    };
    format::check(FILE, header.format)?;
    let valid = read(&bytes, &header).map_or(0, |(_, valid)| valid);
    // The last line may still be on its way; what follows another one that is damaged would be lost.
    match bytes[valid..].contains(&b'\n') {
        true => Err(Unreadable::content(FILE, "a line in it is damaged")),
        false => Ok(()),
    }
}

impl Header {
    /// Whether it is a journal of the same run, in a format that can be read.
    fn is_of(&self, ours: &Header) -> bool {
        self.format.is_readable() && (&self.run, &self.boot) == (&ours.run, &ours.boot)
    }
}

impl Recovered {
    /// A snapshot is in place of all that was before it.
    fn begin_anew(&mut self, records: Vec<Record>, taken: SeenTokens, upgrade: u64) {
        let format = self.format;
        *self = Recovered { format, taken, upgrade, ..Recovered::default() };
        records.into_iter().for_each(|record| self.memory.take(record));
    }

    fn change(
        &mut self,
        events: LineEvents,
        records: Vec<Record>,
        taken: Option<u64>,
        upgrade: Option<u64>,
    ) {
        records.into_iter().for_each(|record| self.memory.take(record));
        taken.into_iter().for_each(|token| self.taken.add(token));
        self.upgrade = upgrade.unwrap_or(0).max(self.upgrade);
        self.add(events);
    }

    fn add(&mut self, events: LineEvents) {
        // The number of an event that is not understood is given to no other.
        self.memory.told(events.last_seq);
        self.unknown_events += events.unknown;
        self.events.extend(events.known);
        let excess = self.events.len().saturating_sub(KEPT);
        self.events.drain(..excess);
    }

    /// What there was that is not understood, for people.
    fn passed_over(&self) -> Option<String> {
        let counts = [
            ("event", self.unknown_events),
            ("record", self.memory.passed_over()),
            ("whole line", self.unknown_lines),
        ];
        let parts = counts.into_iter().filter_map(|(what, count)| match count {
            0 => None,
            1 => Some(format!("1 {what}")),
            more => Some(format!("{more} {what}s")),
        });
        let parts: Vec<String> = parts.collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

#[cfg(feature = "fuzz")]
fn fuzz_header() -> Header {
    Header { format: Format::OURS, run: "fuzz".to_owned(), boot: "fuzz".to_owned() }
}

#[cfg(feature = "fuzz")]
pub(crate) fn fuzz_read(lines: &[u8]) -> Option<usize> {
    let mut bytes = Vec::new();
    for line in lines.split(|byte| *byte == b'\n') {
        bytes.extend_from_slice(format!("{:08x} ", crc32fast::hash(line)).as_bytes());
        bytes.extend_from_slice(line);
        bytes.push(b'\n');
    }
    let (mut recovered, valid) = read(&bytes, &fuzz_header())?;
    let _ = recovered.memory.plan_in_force(None);
    Some(valid)
}

/// A job that starts, runs and dies, and a snapshot made of that.
#[cfg(feature = "fuzz")]
pub(crate) fn fuzz_sample() -> Vec<u8> {
    use mainstay_core::{
        clock::{Mono, Now},
        exit::{Asked, Exit, Usage},
        name::Name,
        node::{Input, Node},
        plan::{ExitRule, JobPlan, NodePlan, Plan},
    };
    let name = Name::new("web").expect("a name");
    let node = NodePlan {
        name: "node".to_owned(),
        stop_timeout: Duration::from_secs(8),
        exit: ExitRule::Never,
        log_level: "info".to_owned(),
        machine: None,
    };
    let jobs = vec![JobPlan::new(name.clone(), vec!["true".to_owned()])];
    let mut node = Node::new(Plan::new(node, jobs));
    let mut bytes = Vec::new();
    let mut write = |line: &Written<'_>| encode(&mut bytes, line).expect("into memory");
    write(&Written::Header(&fuzz_header()));
    let (job, incarnation) = (name.clone(), 1);
    let exit = Exit::Code { code: 1 };
    let cpu = Duration::from_millis(1500);
    let usage = Some(Usage { cpu_user: cpu, cpu_system: cpu, max_rss: 4096 });
    let inputs = [
        Input::Boot,
        Input::Spawned { job: job.clone(), incarnation, pid: 7 },
        Input::Exited { job, incarnation, exit, usage, asked: Asked::None },
    ];
    for (input, at) in inputs.into_iter().zip(1..) {
        let now = Now { mono: Mono(at * 1_000_000), wall: 0 };
        let outcome = node.step(now, input);
        let plan = (at == 1).then(|| node.plan_record());
        let records: Vec<Record> = plan.into_iter().chain(outcome.records).collect();
        let (taken, upgrade) = (Some(at), Some(at));
        write(&Written::Change(&Change {
            events: &outcome.events,
            records: &records,
            taken,
            upgrade,
        }));
    }
    let (records, taken) = (node.snapshot(), SeenTokens::default());
    let records: Vec<&Record> = records.iter().collect();
    write(&Written::Snapshot { records: &records, taken: &taken, upgrade: 3 });
    let lines = bytes.split(|byte| *byte == b'\n').filter_map(|line| line.get(9..));
    lines.collect::<Vec<_>>().join(&b'\n')
}

#[cfg(test)]
mod golden;
#[cfg(test)]
mod lost;
#[cfg(test)]
mod tests;
