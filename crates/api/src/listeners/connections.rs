//! The connections that are open: so many and no more.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::task::{AbortHandle, JoinSet};

/// Not worth a look through all connections.
const FEW: usize = 16;

pub(crate) struct Connections {
    pub(crate) tasks: JoinSet<()>,
    most: usize,
    /// Those that have not asked for anything yet, oldest first.
    silent: VecDeque<(Arc<AtomicBool>, AbortHandle)>,
}

impl Connections {
    pub(crate) fn new(most: usize) -> Connections {
        Connections { tasks: JoinSet::new(), most, silent: VecDeque::new() }
    }

    /// When all places are taken, the oldest client that has said nothing yet makes room;
    /// if there is none, the newcomer is turned away. `serve` gets a flag to set when it speaks.
    pub(crate) fn add<F>(&mut self, serve: impl FnOnce(Arc<AtomicBool>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        if self.tasks.len() >= self.most {
            match self.oldest_silent() {
                Some(handle) => handle.abort(),
                None => return,
            }
        }
        let spoken = Arc::new(AtomicBool::new(false));
        let handle = self.tasks.spawn(serve(spoken.clone()));
        self.silent.push_back((spoken, handle));
        // A handle keeps its task's memory: those of the gone are let go before they outnumber the
        // living.
        if self.silent.len() > 2 * self.tasks.len() + FEW {
            self.silent.retain(|(spoken, handle)| {
                !spoken.load(Ordering::Relaxed) && !handle.is_finished()
            });
        }
    }

    fn oldest_silent(&mut self) -> Option<AbortHandle> {
        while let Some((spoken, handle)) = self.silent.pop_front() {
            if !spoken.load(Ordering::Relaxed) && !handle.is_finished() {
                return Some(handle);
            }
        }
        None
    }

    /// Returns when everybody has left.
    pub(crate) async fn leave(&mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}
