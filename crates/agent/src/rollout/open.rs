//! How the room is opened: with what an earlier agent or run has left, read beside the loop.

use super::{Performers, RolloutKeeping, RolloutRoom, RolloutWake};
use crate::clock;
use mainstay_core::{plan::RolloutPlan, rollout::RolloutKept};
use mainstay_pool::ROLLOUT;
use mainstay_rollout::{renderer::Renderer, store::Store, switch::Switch};
use mainstay_wire::run_dir::{Dirs, ENTRIES};
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::sleep,
};

/// Before another try to open a state directory that cannot be had.
const AGAIN: Duration = Duration::from_secs(1);

/// The place of the room in the agent.
#[derive(Debug)]
pub(crate) struct RolloutSlot {
    dirs: Dirs,
    room: Option<Box<RolloutRoom>>,
    /// What was left is being read, for a plan that rolls out something.
    opening: Option<oneshot::Receiver<OpenedStore>>,
    renderer: Renderer,
    /// Counts the steps, for those who wait for what comes of one.
    changes: watch::Sender<u64>,
}

/// What an earlier agent or run has left.
#[derive(Debug)]
pub(crate) struct OpenedStore {
    store: Store,
    kept: RolloutKept,
}

/// Why nothing can be rolled out.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {}/rollout: {source}", dir.display())]
pub struct OpenError {
    dir: PathBuf,
    source: io::Error,
}

impl OpenedStore {
    fn read(state_dir: &Path) -> Result<OpenedStore, OpenError> {
        let failed = |source| OpenError { dir: state_dir.to_owned(), source };
        let store = Store::open(state_dir).map_err(failed)?;
        let (kept, set_aside) = store.load::<RolloutKept>().map_err(failed)?;
        if let Some(aside) = set_aside {
            tracing::error!("{aside}; all profiles are loaded afresh");
        }
        Ok(OpenedStore { store, kept: kept.unwrap_or_default() })
    }

    async fn open(state_dir: &Path) -> Result<OpenedStore, OpenError> {
        let dir = state_dir.to_owned();
        let opened = ROLLOUT.run(move || OpenedStore::read(&dir)).await;
        let late = |late| OpenError { dir: state_dir.to_owned(), source: io::Error::from(late) };
        opened.map_err(late).flatten()
    }
}

impl RolloutSlot {
    /// Before the loop begins: with the room of a plan that rolls out something.
    pub(crate) async fn open(
        plan: Option<&Arc<RolloutPlan>>,
        node: &str,
        dirs: Dirs,
        renderer: &Renderer,
        changes: watch::Sender<u64>,
    ) -> Result<RolloutSlot, OpenError> {
        let renderer = renderer.clone();
        let mut slot = RolloutSlot { dirs, room: None, opening: None, renderer, changes };
        if let Some(plan) = plan {
            let opened = OpenedStore::open(&slot.dirs.state).await?;
            slot.fill(plan, node, opened);
        }
        Ok(slot)
    }

    pub(crate) fn room(&self) -> Option<&RolloutRoom> {
        self.room.as_deref()
    }

    pub(crate) fn room_mut(&mut self) -> Option<&mut RolloutRoom> {
        self.room.as_deref_mut()
    }

    /// Begins to read what was left, unless that is under way.
    pub(super) fn begin_opening(&mut self) {
        if self.opening.is_some() {
            return;
        }
        let (opened, opening) = oneshot::channel();
        self.opening = Some(opening);
        let dir = self.dirs.state.clone();
        tokio::spawn(async move {
            let mut told = false;
            loop {
                match OpenedStore::open(&dir).await {
                    // Nobody is left only when the agent is gone.
                    Ok(store) => return drop(opened.send(store)),
                    Err(error) if told => tracing::debug!("{error}"),
                    Err(error) => tracing::error!("{error}; it is tried again"),
                }
                told = true;
                sleep(AGAIN).await;
                if opened.is_closed() {
                    return;
                }
            }
        });
    }

    /// With the room of this plan.
    pub(super) fn fill(&mut self, plan: &Arc<RolloutPlan>, node: &str, opened: OpenedStore) {
        let OpenedStore { store, kept } = opened;
        self.opening = None;
        let keeping = RolloutKeeping::new(store.clone(), kept.clone());
        let (report, answers) = mpsc::unbounded_channel();
        let own = ENTRIES.iter().map(|name| self.dirs.run.join(name)).collect();
        let switch = Switch::new(store.clone(), self.renderer.clone(), own);
        let performers = Performers::new(plan, store, switch, node.to_owned(), report);
        let changes = self.changes.clone();
        let room = RolloutRoom::new(plan.clone(), kept, keeping, performers, answers, changes);
        self.room = Some(Box::new(room));
    }

    /// Nothing is rolled out any more.
    pub(super) fn clear(&mut self) {
        (self.room, self.opening) = (None, None);
        self.changes.send_modify(|count| *count += 1);
    }

    /// Returns when there is something to look at; never while nothing is rolled out. May be
    /// dropped at any time.
    pub(crate) async fn next_wake(&mut self) -> RolloutWake {
        match (&mut self.room, &mut self.opening) {
            (Some(room), _) => room.next_wake(clock::mono).await,
            (None, Some(opening)) => {
                let opened = opening.await;
                self.opening = None;
                match opened {
                    Ok(opened) => RolloutWake::Opened(Box::new(opened)),
                    Err(_) => std::future::pending().await,
                }
            }
            (None, None) => std::future::pending().await,
        }
    }
}
