//! What the writer thread is about, as the main thread may know it without waiting for it.
//!
//! ```text
//!  Working ──rest wanted──► RestWanted ──it gets there──► AtRest ──go on──► Working
//!     │                         └───── called off ───────────────────────────┘
//!     └── everything is written ──► Finished
//! ```

use super::{Gap, Owner, Stream, lock};
use mainstay_sys::clock;
use std::{
    sync::{
        Condvar, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// One piece of work that takes longer than this hangs.
const HANGS: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(super) struct Activity {
    shared: Mutex<Shared>,
    changed: Condvar,
    /// When the work at hand began or last got on (CLOCK_BOOTTIME, ns); 0: there is none.
    since: AtomicU64,
    steps: AtomicU64,
}

#[derive(Debug)]
struct Shared {
    stage: WriterStage,
    held: WriterState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriterStage {
    Working,
    RestWanted,
    AtRest,
    Finished,
}

/// What the writer holds, for as long as it is at rest.
#[derive(Debug, Default)]
pub(super) struct WriterState {
    pub(super) streams: Vec<Stream>,
    pub(super) gaps: Vec<(Owner, Gap)>,
}

impl Activity {
    pub(super) fn new() -> Activity {
        let shared =
            Mutex::new(Shared { stage: WriterStage::Working, held: WriterState::default() });
        let (since, steps) = (AtomicU64::new(0), AtomicU64::new(0));
        Activity { shared, changed: Condvar::new(), since, steps }
    }

    /// It has begun to work, or got on with it.
    pub(super) fn got_on(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
        self.since.store(clock::boottime().max(1), Ordering::Relaxed);
    }

    /// There is nothing to do.
    pub(super) fn idle(&self) {
        self.since.store(0, Ordering::Relaxed);
    }

    /// How often it has got on.
    pub(super) fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Whether it is at something that takes too long: a disk does not answer.
    pub(super) fn hangs(&self) -> bool {
        let since = self.since.load(Ordering::Relaxed);
        let spent = Duration::from_nanos(clock::boottime().saturating_sub(since));
        since != 0 && spent > HANGS
    }

    pub(super) fn want_rest(&self) {
        let mut shared = lock(&self.shared);
        if shared.stage == WriterStage::Working {
            shared.stage = WriterStage::RestWanted;
        }
    }

    pub(super) fn is_rest_wanted(&self) -> bool {
        lock(&self.shared).stage == WriterStage::RestWanted
    }

    /// Ends a rest, or calls it off.
    pub(super) fn go_on(&self) {
        let mut shared = lock(&self.shared);
        if matches!(shared.stage, WriterStage::RestWanted | WriterStage::AtRest) {
            shared.stage = WriterStage::Working;
            self.changed.notify_all();
        }
    }

    /// Looks at what the writer holds, if it is at rest.
    pub(super) fn at_rest<R>(&self, look: impl FnOnce(&WriterState) -> R) -> Option<R> {
        let shared = lock(&self.shared);
        (shared.stage == WriterStage::AtRest).then(|| look(&shared.held))
    }

    pub(super) fn finish(&self) {
        lock(&self.shared).stage = WriterStage::Finished;
    }

    pub(super) fn is_finished(&self) -> bool {
        lock(&self.shared).stage == WriterStage::Finished
    }

    /// Of the writer: shows what it holds until it shall go on, and gives that back. `None`: the
    /// rest was called off.
    pub(super) fn rest(
        &self,
        hold: impl FnOnce() -> WriterState,
        tell: impl FnOnce(),
    ) -> Option<WriterState> {
        let mut shared = lock(&self.shared);
        if shared.stage != WriterStage::RestWanted {
            return None;
        }
        (shared.stage, shared.held) = (WriterStage::AtRest, hold());
        tell();
        while shared.stage == WriterStage::AtRest {
            shared = self.changed.wait(shared).unwrap_or_else(PoisonError::into_inner);
        }
        Some(std::mem::take(&mut shared.held))
    }
}
