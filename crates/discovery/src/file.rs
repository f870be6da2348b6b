//! A directory as a catalogue, for the nodes of one machine: a file for each service.
//!
//! Whoever changes a file holds the lock of the directory, reads it, and replaces it as a whole; so
//! readers need no lock. A standing carries the time at which it runs out: whoever reads later does
//! not count it as passing, so a node that was killed is missed without anybody's doing.

mod changes;
mod dir;
mod entry;

use crate::driver::{Driver, Failure};
use changes::Changes;
use dir::{Dir, Stamp};
use entry::{Entry, now};
use mainstay_core::discovery::{FileCatalogue, InstanceList, Query, Registration, Standing};
use mainstay_pool::WATCHED;
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::{
    sync::{Mutex, watch},
    time::{Instant, sleep, timeout_at},
};

const LIMIT: Duration = Duration::from_secs(5);
/// Between two tries to get the lock.
const LOCKED: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(crate) struct FileDriver {
    dir: Arc<Dir>,
    node: String,
    /// One change at a time: a thread is enough.
    one_at_a_time: Mutex<()>,
    /// Begun by the first watch.
    changes: OnceLock<Changes>,
}

impl FileDriver {
    pub(crate) fn new(catalogue: &FileCatalogue) -> FileDriver {
        FileDriver {
            dir: Arc::new(Dir::new(&catalogue.directory)),
            node: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            one_at_a_time: Mutex::new(()),
            changes: OnceLock::new(),
        }
    }

    /// Changes something under the lock of the directory.
    async fn change<T: Send + 'static>(
        &self,
        work: impl Fn(&Dir) -> Result<T, Failure> + Send + Sync + 'static,
    ) -> Result<T, Failure> {
        let _one_at_a_time = self.one_at_a_time.lock().await;
        let (work, deadline) = (Arc::new(work), Instant::now() + LIMIT);
        loop {
            let (dir, work) = (self.dir.clone(), work.clone());
            let tried = WATCHED.run(move || match dir.lock()? {
                Some(_held) => work(&dir).map(Some),
                None => Ok(None),
            });
            match tried.await.map_err(Failure::of)?? {
                Some(done) => return Ok(done),
                None if Instant::now() < deadline => sleep(LOCKED).await,
                None => return Err(Failure::Failed(self.dir.locked(LIMIT))),
            }
        }
    }
}

impl Driver for FileDriver {
    type Cursor = FileCursor;

    async fn register(
        &self,
        registration: &Registration,
        standing: Standing,
    ) -> Result<(), Failure> {
        let entry = Entry::new(registration, standing, &self.node);
        let service = registration.service.clone();
        self.change(move |dir| {
            dir.rewrite(&service, |entries| {
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
        self.change(move |dir| {
            dir.rewrite(&registration.service, |entries| {
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
        self.change(move |dir| {
            let services = match &service {
                Some(service) => vec![service.clone()],
                None => dir.services()?,
            };
            for service in services {
                // Only those that have it are written anew.
                if dir.read(&service)?.iter().any(|entry| entry.instance.id == id) {
                    dir.rewrite(&service, |entries| {
                        entries.retain(|entry| entry.instance.id != id);
                        Ok(())
                    })?;
                }
            }
            Ok(())
        })
        .await
    }

    fn cursor(&self, query: &Query) -> FileCursor {
        let changes = self.changes.get_or_init(|| Changes::new(self.dir.clone()));
        FileCursor { query: query.clone(), news: changes.news(), seen: None }
    }

    async fn look(&self, cursor: &mut FileCursor) -> Result<InstanceList, Failure> {
        if cursor.query.dc.is_some() {
            let error = "a directory has no data centres: leave 'dc' out";
            return Err(Failure::Failed(error.to_owned()));
        }
        cursor.wait(&self.dir).await;
        // What happens from here on is news.
        cursor.news.mark_unchanged();
        let (dir, Query { service, tag, .. }) = (self.dir.clone(), cursor.query.clone());
        let read = WATCHED.run(move || {
            let (stamp, entries) = (dir.stamp(&service), dir.read(&service));
            entries.map(|entries| passing(entries, tag.as_deref(), stamp))
        });
        let (seen, instances) = read.await.map_err(Failure::of)??;
        cursor.seen = Some(seen);
        Ok(instances)
    }
}

/// The instances that are passing now, and until when.
fn passing(
    entries: Vec<Entry>,
    tag: Option<&str>,
    stamp: Option<Stamp>,
) -> (SeenFile, InstanceList) {
    let now = now();
    let passing = || entries.iter().filter(|entry| entry.is_passing(now));
    let next = passing().map(|entry| entry.runs_out_in(now)).min();
    let instances = passing()
        .map(|entry| entry.instance.clone())
        .filter(|instance| tag.is_none_or(|tag| instance.tags.iter().any(|it| it == tag)))
        .collect();
    (SeenFile { stamp, until: next.map(|next| Instant::now() + next) }, instances)
}

/// The place of one watch: the file as it was last read.
#[derive(Debug)]
pub(crate) struct FileCursor {
    query: Query,
    news: watch::Receiver<u64>,
    seen: Option<SeenFile>,
}

#[derive(Debug)]
struct SeenFile {
    stamp: Option<Stamp>,
    /// When the first of those passing runs out.
    until: Option<Instant>,
}

impl FileCursor {
    /// Until there may be something that was not seen: another file, an entry that has run out; and
    /// at the end of the interval in any case, for directories that do not tell of changes.
    async fn wait(&mut self, dir: &Arc<Dir>) {
        let Some(seen) = &self.seen else { return };
        let end = Instant::now() + self.query.interval;
        let end = seen.until.map_or(end, |until| end.min(until));
        while let Ok(Ok(())) = timeout_at(end, self.news.changed()).await {
            let (dir, service) = (dir.clone(), self.query.service.clone());
            let stamp = WATCHED.run(move || dir.stamp(&service)).await;
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
