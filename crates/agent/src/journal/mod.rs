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
//! A journal that cannot be written (full disk) stops nobody: the agent says so once, goes on in
//! memory, and tries a new snapshot once a second. Until then the keeper keeps what only it knows.

mod damage;
mod format;
pub(crate) mod found;
mod legacy;
mod line;
pub(crate) mod plan_file;
pub(crate) mod recovery;
pub(crate) mod snapshot;

pub use format::Unreadable;

use crate::{event_log::KEPT, inputs::seen_tokens::SeenTokens};
use damage::Damage;
use format::Format;
use found::{FoundJournal, read};
use line::{Line, LineEvents, decode};
use mainstay_core::{
    event::Event,
    record::{Memory, Record},
};
use mainstay_sys::{
    proc::boot_id,
    state_dir::{Durability, StateDir},
};
use serde::{Deserialize, Serialize};
use snapshot::{EVENTS, Moment, Snapshot, SnapshotWriter};
use std::{
    collections::VecDeque,
    fs::{File, OpenOptions},
    io::{self, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

const FILE: &str = "journal";
const LIMIT: u64 = 4 << 20;
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

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Written<'a> {
    Header(&'a Header),
    Snapshot { records: &'a [&'a Record], taken: &'a SeenTokens, upgrade: u64 },
    Events(&'a [Arc<Event>]),
    Change(&'a Change<'a>),
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
    state: FileState,
    /// A snapshot is due once it is longer.
    limit: u64,
    /// The next change begins it anew, as a snapshot: nothing may be added to what is there.
    anew: bool,
    snapshots: SnapshotWriter,
    /// Said once, until it can be written again.
    failure_told: bool,
    /// Said once as well: there was room for everything but the plan.
    planless_told: bool,
}

#[derive(Debug)]
enum FileState {
    Open { file: File, size: u64 },
    Failed { since: Instant, why: io::ErrorKind },
}

impl Journal {
    /// An empty journal in place of whatever was there.
    pub(crate) fn create(run_dir: &Path, run: &str) -> Journal {
        let mut journal = Journal::closed(run_dir, run);
        let mut bytes = Vec::new();
        match encode(&mut bytes, &Written::Header(&journal.header))
            .and_then(|()| journal.replace(&bytes))
        {
            Ok(file) => journal.state = FileState::Open { file, size: bytes.len() as u64 },
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
        match reopen(&journal.path(), valid) {
            Ok(file) => journal.state = FileState::Open { file, size: valid },
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
            state: FileState::Failed { since: Instant::now(), why: io::ErrorKind::NotFound },
            limit: LIMIT,
            anew: false,
            snapshots: SnapshotWriter::new(),
            failure_told: false,
            planless_told: false,
        }
    }

    fn path(&self) -> PathBuf {
        self.run_dir.join(FILE)
    }

    /// What was decided last is in no journal.
    pub(crate) fn has_failed(&self) -> bool {
        match self.state {
            FileState::Open { .. } => false,
            FileState::Failed { .. } => true,
        }
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
        match &mut self.state {
            FileState::Open { .. } if self.anew => self.rebase(&moment()),
            FileState::Open { file, size } => {
                let mut bytes = Vec::with_capacity(512);
                let written = encode(&mut bytes, &Written::Change(change))
                    .and_then(|()| file.write_all(&bytes));
                if let Err(error) = written {
                    // A torn line in the middle would hide all that follows it.
                    let _ = file.set_len(*size);
                    self.fail(&error);
                    return Err(error);
                }
                *size += bytes.len() as u64;
                self.snapshots.add(&bytes);
                // A long change takes its time by itself: the snapshot is left to the next one.
                if *size > self.limit && (change.is_short() || *size > 2 * self.limit) {
                    self.snapshots.begin(&self.run_dir, &self.header, moment);
                }
                Ok(())
            }
            FileState::Failed { since, .. } if since.elapsed() >= RETRY => self.rebase(&moment()),
            FileState::Failed { why, .. } => Err((*why).into()),
        }
    }

    /// The next snapshot that was written beside the journal. May be dropped at any time.
    pub(crate) async fn snapshot_written(&mut self) -> io::Result<Snapshot> {
        self.snapshots.finished().await
    }

    /// Puts a snapshot in the place of the journal, with all that was added since.
    pub(crate) fn adopt(&mut self, written: io::Result<Snapshot>) {
        // Whoever begins anew meanwhile has more than it.
        let (Some(since), FileState::Open { size, .. }) =
            (self.snapshots.take_since(), &self.state)
        else {
            return;
        };
        match written.and_then(|snapshot| snapshot.take_over(&self.run_dir, &since)) {
            Ok((file, size)) => {
                self.begun(file, size);
                self.tell_of_plan(false);
            }
            Err(error) => {
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
        // Where space is short, state matters more than history, and than a plan that can be loaded.
        let planless = moment.has_plan().then_some((false, 0));
        let attempts = EVENTS.iter().map(|events| (true, *events)).chain(planless);
        let written = attempts.into_iter().find_map(|(with_plan, events)| {
            let bytes = match moment.encode(&self.header, with_plan, events) {
                Ok(bytes) => bytes,
                Err(error) => return Some(Err(error)),
            };
            match self.replace(&bytes) {
                Err(error) if error.kind() == io::ErrorKind::StorageFull => None,
                replaced => Some(replaced.map(|file| (file, bytes.len() as u64, with_plan))),
            }
        });
        match written {
            Some(Ok((file, size, with_plan))) => {
                self.begun(file, size);
                self.tell_of_plan(!with_plan);
                match with_plan {
                    true => Ok(()),
                    false => Err(rustix::io::Errno::NOSPC.into()),
                }
            }
            Some(Err(error)) => {
                self.fail(&error);
                Err(error)
            }
            None => {
                let error = rustix::io::Errno::NOSPC.into();
                self.fail(&error);
                Err(error)
            }
        }
    }

    /// A snapshot is the journal now.
    fn begun(&mut self, file: File, size: u64) {
        if std::mem::take(&mut self.failure_told) {
            tracing::info!("the journal can be written again");
        }
        // A snapshot that is large by itself must not be replaced at every step.
        self.limit = LIMIT.max(size + LIMIT.min(size));
        self.anew = false;
        self.state = FileState::Open { file, size };
    }

    fn replace(&self, bytes: &[u8]) -> io::Result<File> {
        StateDir::open(&self.run_dir, Durability::Process)?.replace(FILE, 0o600, bytes)
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
        self.state = FileState::Failed { since: Instant::now(), why: error.kind() };
    }
}

fn reopen(path: &Path, valid: u64) -> io::Result<File> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.set_len(valid)?;
    file.seek(SeekFrom::Start(valid))?;
    Ok(file)
}

fn encode(bytes: &mut Vec<u8>, line: &Written<'_>) -> io::Result<()> {
    let start = bytes.len();
    bytes.extend_from_slice(b"00000000 ");
    serde_json::to_writer(&mut *bytes, line)?;
    let checksum = format!("{:08x}", crc32fast::hash(&bytes[start + 9..]));
    bytes[start..start + 8].copy_from_slice(checksum.as_bytes());
    bytes.push(b'\n');
    Ok(())
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
