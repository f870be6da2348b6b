//! What of the rollout is on its way to the disk. Nothing that follows from it is done before it is
//! there; a disk that fails is told, and tried again: a rollout that cannot be kept does not go on.

use mainstay_core::rollout::RolloutKept;
use mainstay_pool::{ROLLOUT, Unserved};
use mainstay_rollout::store::Store;
use std::{io, time::Duration};
use tokio::{sync::mpsc, time::sleep};

/// Before a value is written again that could not be.
const AGAIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct RolloutKeeping {
    store: Store,
    /// The last value, and its number.
    kept: RolloutKept,
    version: u64,
    /// Values up to this one are on the disk.
    settled: u64,
    writing: Option<u64>,
    failing: bool,
    done: mpsc::UnboundedReceiver<io::Result<()>>,
    report: mpsc::UnboundedSender<io::Result<()>>,
}

impl RolloutKeeping {
    pub(super) fn new(store: Store, kept: RolloutKept) -> RolloutKeeping {
        let (report, done) = mpsc::unbounded_channel();
        let (version, settled, writing, failing) = (0, 0, None, false);
        RolloutKeeping { store, kept, version, settled, writing, failing, done, report }
    }

    /// Has a value kept; the number that has to be settled before anything of it is done.
    pub(super) fn keep(&mut self, kept: &RolloutKept) -> u64 {
        if *kept != self.kept {
            self.kept = kept.clone();
            self.version += 1;
            self.write(Duration::ZERO);
        }
        self.version
    }

    pub(super) fn is_settled(&self, version: u64) -> bool {
        version <= self.settled
    }

    /// One after the other: of those that wait only the last is written.
    fn write(&mut self, after: Duration) {
        if self.writing.is_some() || self.is_settled(self.version) {
            return;
        }
        self.writing = Some(self.version);
        let (store, kept, report) = (self.store.clone(), self.kept.clone(), self.report.clone());
        let work = move || store.save(&kept);
        if after.is_zero() {
            // In line at once: behind what was asked for before.
            let written = ROLLOUT.ask(work);
            tokio::spawn(async move { report_written(&report, written.await) });
            return;
        }
        tokio::spawn(async move {
            sleep(after).await;
            report_written(&report, ROLLOUT.run(work).await);
        });
    }

    /// Returns when something has become of what is being written. May be dropped at any time.
    pub(super) async fn progress(&mut self) -> io::Result<()> {
        self.done.recv().await.expect("this struct holds a sender")
    }

    pub(super) fn progressed(&mut self, written: io::Result<()>) {
        let Some(version) = self.writing.take() else { return };
        let path = self.store.path().display();
        match written {
            Ok(()) => {
                if std::mem::take(&mut self.failing) {
                    tracing::info!("{path} is written again");
                }
                self.settled = self.settled.max(version);
                self.write(Duration::ZERO);
            }
            Err(error) => {
                if !std::mem::replace(&mut self.failing, true) {
                    tracing::error!("cannot write {path}: {error}; the rollout waits for it");
                }
                self.write(AGAIN);
            }
        }
    }
}

type WriteOutcome = Result<io::Result<()>, Unserved>;

/// Nobody listens only when the agent is gone.
fn report_written(report: &mpsc::UnboundedSender<io::Result<()>>, written: WriteOutcome) {
    let _ = report.send(written.map_err(io::Error::from).flatten());
}
