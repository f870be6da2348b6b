//! Notices that the file of a profile has changed, so that nobody has to wait for the next interval.
//!
//! The directory is watched and not the file: one that is renamed over, or a link that is switched
//! as a whole, is noticed. Where the kernel does not tell, each interval of the rollout brings a look.

use super::file::{Stamp, stamp};
use mainstay_core::name::Name;
use mainstay_pool::{DirChange, DirEvents, WATCHED};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::{
    sync::mpsc::{self, UnboundedReceiver, UnboundedSender},
    task::AbortHandle,
    time::sleep,
};

/// Before another try to watch a directory.
const AGAIN: Duration = Duration::from_secs(5);

/// The files that are watched. Dropped, it watches no more.
#[derive(Debug)]
pub struct Notices {
    watched: BTreeMap<Name, AbortHandle>,
    tell: UnboundedSender<Name>,
}

impl Notices {
    /// What comes out are profiles that are worth asking for.
    #[must_use]
    pub fn new() -> (Notices, UnboundedReceiver<Name>) {
        let (tell, told) = mpsc::unbounded_channel();
        (Notices { watched: BTreeMap::new(), tell }, told)
    }

    pub fn watch(&mut self, profile: &Name, path: &Path) {
        self.unwatch(profile);
        let task = follow(profile.clone(), path.to_owned(), self.tell.clone());
        self.watched.insert(profile.clone(), tokio::spawn(task).abort_handle());
    }

    pub fn unwatch(&mut self, profile: &Name) {
        self.watched.remove(profile).iter().for_each(AbortHandle::abort);
    }
}

impl Drop for Notices {
    fn drop(&mut self) {
        self.watched.values().for_each(AbortHandle::abort);
    }
}

async fn follow(profile: Name, path: PathBuf, tell: UnboundedSender<Name>) {
    // What has happened before it is watched nobody knows: the first look is worth a question.
    let mut seen = None;
    loop {
        // Whatever ends it, something may have happened while nobody watched.
        if let Ok(mut events) = DirEvents::around(&path).await {
            loop {
                let now = Some(look(&path).await);
                if now != seen {
                    seen = now;
                    if tell.send(profile.clone()).is_err() {
                        return;
                    }
                }
                match events.next().await {
                    Ok(DirChange::Entries | DirChange::HiddenEntries) => {}
                    Ok(DirChange::Itself) | Err(_) => break,
                }
            }
        }
        sleep(AGAIN).await;
    }
}

async fn look(path: &Path) -> Option<Stamp> {
    let path = path.to_owned();
    WATCHED.run(move || fs::metadata(path).ok().map(|it| stamp(&it))).await.ok().flatten()
}
