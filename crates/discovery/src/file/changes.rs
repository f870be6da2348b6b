//! Notices changes in the directory, for all watches together.
//!
//! Where the kernel does not tell (a limit, a network file system), watches still look once in
//! each interval; the task tries again now and then.

use super::dir::Dir;
use mainstay_pool::{DirChange, DirEvents, WATCHED};
use std::{io, sync::Arc, time::Duration};
use tokio::{sync::watch, task::AbortHandle, time::sleep};

const AGAIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Changes {
    news: watch::Receiver<u64>,
    task: AbortHandle,
}

impl Changes {
    pub(super) fn new(dir: Arc<Dir>) -> Changes {
        let (tell, news) = watch::channel(0);
        let task = tokio::spawn(async move {
            loop {
                // Whatever ends it, the directory may have changed while nobody noticed.
                let _ = follow(&dir, &tell).await;
                tell.send_modify(|count| *count += 1);
                sleep(AGAIN).await;
            }
        });
        Changes { news, task: task.abort_handle() }
    }

    pub(super) fn news(&self) -> watch::Receiver<u64> {
        self.news.clone()
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Until the directory is gone or the kernel gives up.
async fn follow(dir: &Arc<Dir>, tell: &watch::Sender<u64>) -> io::Result<()> {
    // One that is not there yet is made: a watch may come before the first service.
    let making = dir.clone();
    WATCHED.run(move || making.make()).await??;
    let mut events = DirEvents::of(dir.directory()).await?;
    tell.send_modify(|count| *count += 1);
    loop {
        match events.next().await? {
            DirChange::Entries => tell.send_modify(|count| *count += 1),
            // The lock, and what is written beside a file.
            DirChange::HiddenEntries => {}
            DirChange::Itself => return Ok(()),
        }
    }
}
