//! A directory as a catalogue, for the nodes of one machine: a file for each service.
//!
//! Whoever changes a file holds the lock of the directory, reads it, and replaces it as a whole; so
//! readers need no lock. A standing carries the time at which it runs out: whoever reads later does
//! not count it as passing, so a node that was killed is missed without anybody's doing.

mod entry;
mod notice;
mod shelf;

use crate::backend::{Backend, Failure};
use entry::{Entry, now};
use mainstay_core::discovery::{FileCatalogue, Instance, Query, Registration, Standing};
use notice::Notice;
use shelf::{Shelf, Stamp};
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::{
    sync::{Mutex, watch},
    task::spawn_blocking,
    time::{Instant, sleep, timeout_at},
};

const LIMIT: Duration = Duration::from_secs(5);
/// Between two tries to get the lock.
const LOCKED: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(crate) struct FileBackend {
    shelf: Arc<Shelf>,
    node: String,
    /// One change at a time: a thread is enough.
    turn: Mutex<()>,
    /// Begun by the first watch.
    notice: OnceLock<Notice>,
}

impl FileBackend {
    pub(crate) fn new(catalogue: &FileCatalogue) -> FileBackend {
        FileBackend {
            shelf: Arc::new(Shelf::new(&catalogue.directory)),
            node: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            turn: Mutex::new(()),
            notice: OnceLock::new(),
        }
    }

    /// Changes something under the lock of the directory.
    async fn change<T: Send + 'static>(
        &self,
        work: impl Fn(&Shelf) -> Result<T, Failure> + Send + Sync + 'static,
    ) -> Result<T, Failure> {
        let _turn = self.turn.lock().await;
        let (work, deadline) = (Arc::new(work), Instant::now() + LIMIT);
        loop {
            let (shelf, work) = (self.shelf.clone(), work.clone());
            let tried = spawn_blocking(move || match shelf.lock()? {
                Some(_held) => work(&shelf).map(Some),
                None => Ok(None),
            });
            match tried.await.map_err(|error| error.to_string())?? {
                Some(done) => return Ok(done),
                None if Instant::now() < deadline => sleep(LOCKED).await,
                None => return Err(Failure::Failed(self.shelf.locked(LIMIT))),
            }
        }
    }
}

impl Backend for FileBackend {
    type Glass = Glass;

    async fn register(
        &self,
        registration: &Registration,
        standing: Standing,
    ) -> Result<(), Failure> {
        let entry = Entry::new(registration, standing, &self.node);
        let service = registration.service.clone();
        self.change(move |shelf| {
            shelf.rewrite(&service, |entries| {
                entries.retain(|old| old.instance.id != entry.instance.id);
                entries.push(entry.clone());
                Ok(())
            })
        })
        .await
    }

    async fn tell(
        &self,
        registration: &Registration,
        standing: Standing,
        note: &str,
    ) -> Result<(), Failure> {
        let (registration, note) = (registration.clone(), note.to_owned());
        self.change(move |shelf| {
            shelf.rewrite(&registration.service, |entries| {
                let own = entries.iter_mut().find(|entry| entry.instance.id == registration.id);
                let own = own.ok_or(Failure::Unknown)?;
                own.tell(standing, &note, registration.ttl);
                Ok(())
            })
        })
        .await
    }

    async fn remove(&self, id: &str, service: Option<&str>) -> Result<(), Failure> {
        let (id, service) = (id.to_owned(), service.map(str::to_owned));
        self.change(move |shelf| {
            let services = match &service {
                Some(service) => vec![service.clone()],
                None => shelf.services()?,
            };
            for service in services {
                // Only those that have it are written anew.
                if shelf.read(&service)?.iter().any(|entry| entry.instance.id == id) {
                    shelf.rewrite(&service, |entries| {
                        entries.retain(|entry| entry.instance.id != id);
                        Ok(())
                    })?;
                }
            }
            Ok(())
        })
        .await
    }

    fn glass(&self, query: &Query) -> Glass {
        let notice = self.notice.get_or_init(|| Notice::new(self.shelf.clone()));
        Glass { query: query.clone(), news: notice.news(), seen: None }
    }

    async fn look(&self, glass: &mut Glass) -> Result<Vec<Instance>, Failure> {
        if glass.query.dc.is_some() {
            let error = "a directory has no data centres: leave 'dc' out";
            return Err(Failure::Failed(error.to_owned()));
        }
        glass.wait(&self.shelf).await;
        // What happens from here on is news.
        glass.news.mark_unchanged();
        let (shelf, service) = (self.shelf.clone(), glass.query.service.clone());
        let read = spawn_blocking(move || (shelf.stamp(&service), shelf.read(&service)));
        let (stamp, entries) = read.await.map_err(|error| error.to_string())?;
        let (entries, now) = (entries?, now());
        let passing = || entries.iter().filter(|entry| entry.is_passing(now));
        let next = passing().map(|entry| entry.runs_out_in(now)).min();
        glass.seen = Some(Seen { stamp, until: next.map(|next| Instant::now() + next) });
        Ok(passing()
            .map(|entry| entry.instance.clone())
            .filter(|instance| glass.query.tag.iter().all(|tag| instance.tags.contains(tag)))
            .collect())
    }
}

/// What one watch has seen.
#[derive(Debug)]
pub(crate) struct Glass {
    query: Query,
    news: watch::Receiver<u64>,
    seen: Option<Seen>,
}

#[derive(Debug)]
struct Seen {
    stamp: Option<Stamp>,
    /// When the first of those passing runs out.
    until: Option<Instant>,
}

impl Glass {
    /// Until there may be something that was not seen: another file, an entry that has run out; and
    /// at the end of the interval in any case, for directories that do not tell of changes.
    async fn wait(&mut self, shelf: &Arc<Shelf>) {
        let Some(seen) = &self.seen else { return };
        let end = Instant::now() + self.query.interval;
        let end = seen.until.map_or(end, |until| end.min(until));
        while let Ok(Ok(())) = timeout_at(end, self.news.changed()).await {
            let (shelf, service) = (shelf.clone(), self.query.service.clone());
            let stamp = spawn_blocking(move || shelf.stamp(&service)).await;
            if stamp.is_ok_and(|stamp| stamp != seen.stamp) {
                return;
            }
        }
        // Nobody notices changes: then only time passes.
        if self.news.has_changed().is_err() {
            tokio::time::sleep_until(end).await;
        }
    }
}
