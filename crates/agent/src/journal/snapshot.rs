//! A snapshot of everything at one moment, in place of all that was journaled until then.
//!
//! ```text
//!  loop     change ─► change ─────► change ─► change ──────┬─► change
//!             journal      │ moment                        │    snapshot, as the journal
//!  thread                  └─► encode ─► .journal.snapshot ┘
//!                                        + the changes since
//! ```
//!
//! With many instances in a watch, or many jobs, it takes its time: it is written outside the loop,
//! beside the journal, to which changes go on to be added. Whoever dies meanwhile leaves the journal.

use super::{FILE, Header, LIMIT, Written, encode};
use crate::{event_log::KEPT, inputs::seen_tokens::SeenTokens};
use mainstay_core::{event::Event, node::Node, record::Record};
use mainstay_pool::RUN_FILES;
use mainstay_sys::state_dir::{Durability, StateDir};
use std::{
    fs::File,
    io::{self, Write},
    path::Path,
    sync::Arc,
};
use tokio::sync::mpsc;

/// Until it is the journal.
const BESIDE: &str = ".journal.snapshot";
/// How many of the last events a snapshot has: fewer where space is short.
pub(super) const EVENTS: &[usize] = &[KEPT, KEPT / 20, 0];
/// As many of them as fit.
const EVENT_BYTES: usize = 4 << 20;

/// Everything at one moment.
#[derive(Debug)]
pub(crate) struct Moment {
    records: Vec<Record>,
    /// Unless it is in plan.json.
    plan: Option<Record>,
    events: Vec<Arc<Event>>,
    taken: SeenTokens,
    upgrade: u64,
}

impl Moment {
    /// `with_plan`: it is not in plan.json.
    pub(crate) fn of(
        node: &Node,
        with_plan: bool,
        events: Vec<Arc<Event>>,
        taken: &SeenTokens,
        upgrade: u64,
    ) -> Moment {
        let plan = with_plan.then(|| node.plan_record());
        Moment { records: node.snapshot(), plan, events, taken: taken.clone(), upgrade }
    }

    pub(super) fn has_plan(&self) -> bool {
        self.plan.is_some()
    }

    /// The lines of a journal that has nothing else.
    pub(super) fn encode(
        &self,
        header: &Header,
        with_plan: bool,
        events: usize,
    ) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let plan = self.plan.iter().filter(|_| with_plan);
        let records: Vec<&Record> = plan.chain(&self.records).collect();
        let (taken, upgrade) = (&self.taken, self.upgrade);
        let skipped = self.events.len() - newest(&self.events, events);
        encode(&mut bytes, &Written::Header(header))?;
        encode(&mut bytes, &Written::Snapshot { records: &records, taken, upgrade })?;
        encode(&mut bytes, &Written::Events(&self.events[skipped..]))?;
        Ok(bytes)
    }

    /// Writes it beside the journal. The plan is never left out: the journal has it.
    fn write(&self, run_dir: &Path, header: &Header) -> io::Result<Snapshot> {
        let dir = StateDir::open(run_dir, Durability::Process)?;
        let attempt = |events: &usize| {
            let bytes = self.encode(header, true, *events)?;
            let mut file = dir.create(BESIDE, 0o600)?;
            file.write_all(&bytes)?;
            Ok(Snapshot { file, size: bytes.len() as u64 })
        };
        let full = |tried: &io::Result<Snapshot>| {
            tried.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::StorageFull)
        };
        let mut attempts = EVENTS.iter().map(attempt).skip_while(full);
        attempts.next().unwrap_or_else(|| {
            let _ = dir.remove(BESIDE);
            Err(rustix::io::Errno::NOSPC.into())
        })
    }
}

/// How many of the last events go into a snapshot, at most so many.
fn newest(events: &[Arc<Event>], most: usize) -> usize {
    let mut bytes = 0;
    let fits = |event: &&Arc<Event>| {
        bytes += event.kind.size();
        bytes <= EVENT_BYTES
    };
    events.iter().rev().take(most).take_while(fits).count()
}

/// A snapshot that is written, beside the journal.
#[derive(Debug)]
pub(crate) struct Snapshot {
    file: File,
    size: u64,
}

impl Snapshot {
    /// Becomes the journal, with the lines that were added to that since; it and its size.
    pub(super) fn take_over(mut self, run_dir: &Path, since: &[u8]) -> io::Result<(File, u64)> {
        self.file.write_all(since)?;
        StateDir::open(run_dir, Durability::Process)?.rename(BESIDE, FILE)?;
        Ok((self.file, self.size + since.len() as u64))
    }
}

/// Writes snapshots outside the loop, one at a time.
#[derive(Debug)]
pub(super) struct SnapshotWriter {
    under_way: bool,
    /// The lines that were added to the journal since the snapshot under way was begun; `None`: it
    /// is of no use any more.
    since: Option<Vec<u8>>,
    done: mpsc::UnboundedReceiver<io::Result<Snapshot>>,
    report: mpsc::UnboundedSender<io::Result<Snapshot>>,
}

impl SnapshotWriter {
    pub(super) fn new() -> SnapshotWriter {
        let (report, done) = mpsc::unbounded_channel();
        SnapshotWriter { under_way: false, since: None, done, report }
    }

    /// Begins one, unless one is under way.
    pub(super) fn begin(
        &mut self,
        run_dir: &Path,
        header: &Header,
        moment: impl FnOnce() -> Moment,
    ) {
        if self.under_way {
            return;
        }
        (self.under_way, self.since) = (true, Some(Vec::new()));
        let (report, run_dir, header) = (self.report.clone(), run_dir.to_owned(), header.clone());
        let moment = moment();
        let begun = RUN_FILES.begin(move || {
            // Nobody listens only when the agent is gone.
            let _ = report.send(moment.write(&run_dir, &header));
        });
        if let Err(unserved) = begun {
            let _ = self.report.send(Err(unserved.into()));
        }
    }

    /// A line was added to the journal.
    pub(super) fn add(&mut self, line: &[u8]) {
        if let Some(since) = &mut self.since {
            since.extend_from_slice(line);
            // A thread that takes so long is not waited for.
            if since.len() as u64 > LIMIT {
                self.outdate();
            }
        }
    }

    /// The snapshot under way is of no use any more.
    pub(super) fn outdate(&mut self) {
        self.since = None;
    }

    pub(super) fn take_since(&mut self) -> Option<Vec<u8>> {
        self.since.take()
    }

    /// The next one that was written, or was not. May be dropped at any time.
    pub(super) async fn finished(&mut self) -> io::Result<Snapshot> {
        let written = self.done.recv().await.expect("this struct holds a sender");
        self.under_way = false;
        written
    }

    #[cfg(test)]
    pub(super) fn finish(&mut self) -> Option<io::Result<Snapshot>> {
        std::mem::take(&mut self.under_way)
            .then(|| self.done.blocking_recv().expect("this struct holds a sender"))
    }
}
