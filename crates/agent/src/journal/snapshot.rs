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
//! It takes over only with the room in reserve that the journal has. Where there is none the journal
//! goes on, until a full disk makes it begin anew in its own reserve, which is free for that.

use super::{
    Header, LIMIT, MODE,
    encode::{Written, encode},
};
use crate::{event_log::KEPT, inputs::seen_tokens::SeenTokens};
use mainstay_core::{event::Event, node::Node, record::Record};
use mainstay_pool::RUN_FILES;
use mainstay_sys::{
    reserved_file::{ReservedFile, reserve},
    state_dir::{Durability, StateDir},
};
use std::{fs::File, io, os::unix::fs::FileExt, path::Path, sync::Arc};
use tokio::sync::mpsc;

/// Until it is the journal.
const BESIDE: &str = ".journal.snapshot";
/// The newest events go into a snapshot, as many and as many bytes of them as these say: where space
/// is short, state matters more than history.
const EVENTS: [EventShare; 3] = [
    EventShare { count: KEPT, bytes: 4 << 20 },
    EventShare { count: KEPT / 20, bytes: 256 << 10 },
    EventShare { count: 0, bytes: 0 },
];

/// How much of history goes into a snapshot at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventShare {
    count: usize,
    bytes: usize,
}

/// Where the plan in force is to be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlanPlace {
    /// In plan.json.
    File,
    /// In the journal, if there is room for it there.
    Journal,
    /// Nowhere else than in the journal, or it is not in force.
    JournalOnly,
}

/// Everything at one moment.
#[derive(Debug)]
pub(crate) struct Moment {
    records: Vec<Record>,
    /// Unless it is in plan.json.
    plan: Option<Record>,
    plan_place: PlanPlace,
    events: Vec<Arc<Event>>,
    taken: SeenTokens,
    upgrade: u64,
}

impl Moment {
    pub(crate) fn of(
        node: &Node,
        plan_place: PlanPlace,
        events: Vec<Arc<Event>>,
        taken: &SeenTokens,
        upgrade: u64,
    ) -> Moment {
        let plan = (plan_place != PlanPlace::File).then(|| node.plan_record());
        let (records, taken) = (node.snapshot(), taken.clone());
        Moment { records, plan, plan_place, events, taken, upgrade }
    }

    pub(super) fn has_plan(&self) -> bool {
        self.plan.is_some()
    }

    /// What is tried one after the other where space is short: with the plan or without, and with so
    /// many events.
    pub(super) fn attempts(&self) -> impl Iterator<Item = (bool, EventShare)> {
        let [.., none] = EVENTS;
        // It can be loaded again.
        let planless = (self.plan_place == PlanPlace::Journal).then_some((false, none));
        EVENTS.into_iter().map(|share| (true, share)).chain(planless)
    }

    /// The lines of a journal that has nothing else, and how many bytes of them are state.
    pub(super) fn encode(
        &self,
        header: &Header,
        with_plan: bool,
        share: EventShare,
    ) -> io::Result<(Vec<u8>, u64)> {
        let mut bytes = Vec::new();
        let plan = self.plan.iter().filter(|_| with_plan);
        let records: Vec<&Record> = plan.chain(&self.records).collect();
        let (taken, upgrade) = (&self.taken, self.upgrade);
        let skipped = self.events.len() - newest(&self.events, share);
        encode(&mut bytes, &Written::Header(header))?;
        encode(&mut bytes, &Written::Snapshot { records: &records, taken, upgrade })?;
        let state = bytes.len() as u64;
        encode(&mut bytes, &Written::Events(&self.events[skipped..]))?;
        Ok((bytes, state))
    }

    /// Writes it beside the journal, with so much room. The plan is never left out: the journal has
    /// it.
    fn write(&self, run_dir: &Path, header: &Header, room: u64) -> io::Result<Snapshot> {
        let dir = StateDir::open(run_dir, Durability::Process)?;
        let attempt = |share: EventShare| {
            let (bytes, state) = self.encode(header, true, share)?;
            let file = dir.create(BESIDE, MODE)?;
            reserve(&file, room)?;
            file.write_all_at(&bytes, 0)?;
            Ok(Snapshot { file, size: bytes.len() as u64, state })
        };
        let full = |tried: &io::Result<Snapshot>| {
            tried.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::StorageFull)
        };
        let mut attempts = EVENTS.into_iter().map(attempt).skip_while(full);
        attempts.next().unwrap_or_else(|| Err(rustix::io::Errno::NOSPC.into()))
    }
}

/// Removes what was written of one that is of no use, for the room that it has.
pub(super) fn discard(run_dir: &Path) {
    let _ = StateDir::open(run_dir, Durability::Process).and_then(|dir| dir.remove(BESIDE));
}

/// How many of the last events go into a snapshot.
fn newest(events: &[Arc<Event>], share: EventShare) -> usize {
    let mut bytes = 0;
    let fits = |event: &&Arc<Event>| {
        bytes += event.kind.size();
        bytes <= share.bytes
    };
    events.iter().rev().take(share.count).take_while(fits).count()
}

/// A snapshot that is written, beside the journal.
#[derive(Debug)]
pub(crate) struct Snapshot {
    file: File,
    size: u64,
    /// So many bytes of it are state.
    state: u64,
}

impl Snapshot {
    /// Becomes the journal, with the lines that were added to that since; its state, in bytes.
    pub(super) fn take_over(self, journal: &mut ReservedFile, since: &[u8]) -> io::Result<u64> {
        let Snapshot { file, size, state } = self;
        file.write_all_at(since, size)?;
        journal.replace_by(BESIDE.as_ref(), file, size + since.len() as u64)?;
        Ok(state)
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

    /// Begins one with so much room, unless one is under way.
    pub(super) fn begin(
        &mut self,
        run_dir: &Path,
        header: &Header,
        room: u64,
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
            let _ = report.send(moment.write(&run_dir, &header, room));
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
