//! What of the fleet is on its way to the disk. Nothing that follows from it is said before it is
//! there; a disk that fails or does not answer is told, and then not waited for: the mesh is for
//! those who want to go on.

use super::kept_file::{self, KeptFound, NodeOf};
use mainstay_core::fleet::Kept;
use mainstay_pool::STATE_FILES;
use std::{io, path::PathBuf, time::Duration};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};

/// A disk that takes longer is not waited for.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Keeping {
    dir: PathBuf,
    of: NodeOf,
    /// The last value, and its number.
    kept: Kept,
    version: u64,
    /// Values up to this one are on the disk, or were given up.
    settled: u64,
    /// The value that is being written, and until when that is waited for.
    writing: Option<(u64, Instant)>,
    failing: bool,
    done: mpsc::UnboundedReceiver<io::Result<()>>,
    report: mpsc::UnboundedSender<io::Result<()>>,
}

impl Keeping {
    pub(crate) fn new(dir: PathBuf, KeptFound { of, kept, new }: KeptFound) -> Keeping {
        let (report, done) = mpsc::unbounded_channel();
        let (settled, writing, failing) = (0, None, false);
        let version = u64::from(new);
        let mut keeping =
            Keeping { dir, of, kept, version, settled, writing, failing, done, report };
        keeping.write();
        keeping
    }

    pub(crate) fn node_of(&self) -> &NodeOf {
        &self.of
    }

    /// Has a value kept; the number that has to be settled before anything of it is said.
    pub(crate) fn keep(&mut self, kept: Kept) -> u64 {
        if kept != self.kept {
            self.kept = kept;
            self.version += 1;
            self.write();
        }
        self.version
    }

    pub(crate) fn is_settled(&self, version: u64) -> bool {
        version <= self.settled
    }

    /// One after the other: of those that wait only the last is written.
    fn write(&mut self) {
        if self.writing.is_some() || self.is_settled(self.version) {
            return;
        }
        self.writing = Some((self.version, Instant::now() + PATIENCE));
        let (dir, of, kept) = (self.dir.clone(), self.of.clone(), self.kept.clone());
        let report = self.report.clone();
        tokio::spawn(async move {
            let written = STATE_FILES.run(move || kept_file::write(&dir, &of, &kept)).await;
            // Nobody listens only when the agent is gone.
            let _ = report.send(written.map_err(io::Error::from).flatten());
        });
    }

    /// Returns when something has become of what is being written; never if nothing is. May be
    /// dropped at any time.
    pub(crate) async fn progress(&mut self) -> io::Result<()> {
        match self.writing {
            Some((version, until)) if !self.is_settled(version) => tokio::select! {
                done = self.done.recv() => done.expect("this struct holds a sender"),
                () = sleep_until(until) => {
                    Err(io::Error::new(io::ErrorKind::TimedOut, "the disk does not answer"))
                }
            },
            // Given up: when it ends the next can be written.
            Some(_) | None => self.done.recv().await.expect("this struct holds a sender"),
        }
    }

    pub(crate) fn progressed(&mut self, written: io::Result<()>) {
        let Some((version, _)) = self.writing else { return };
        self.settled = self.settled.max(version);
        match written {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => self.tell(Some(&error)),
            Err(error) => {
                self.tell(Some(&error));
                self.writing = None;
            }
            Ok(()) => {
                self.tell(None);
                self.writing = None;
            }
        }
        self.write();
    }

    /// Returns when all of it is on the disk, or was given up.
    pub(crate) async fn finish(&mut self) {
        while !self.is_settled(self.version) {
            let written = self.progress().await;
            self.progressed(written);
        }
    }

    fn tell(&mut self, error: Option<&io::Error>) {
        let dir = self.dir.display();
        match (error, self.failing) {
            (Some(error), false) => {
                tracing::error!("cannot write {dir}/fleet: {error}; the fleet goes on without it");
            }
            (None, true) => tracing::info!("{dir}/fleet is written again"),
            (Some(_), true) | (None, false) => {}
        }
        self.failing = error.is_some();
    }
}
