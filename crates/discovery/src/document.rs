//! Files that are watched: there while they exist, changed when their content is.
//!
//! The directory is watched and not the file, so that one that is renamed over, or a link that is
//! switched as a whole, is noticed; where the kernel does not tell, each interval brings a look.

use crate::catalogue::{About, Report};
use crate::trouble::Trouble;
use mainstay_core::discovery::{Instance, InstanceList};
use mainstay_pool::{DirChange, DirEvents, WATCHED};
use mainstay_sys::nonblocking::open_file;
use ring::digest::{Context, SHA256};
use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::{
    sync::mpsc::{self, UnboundedReceiver, UnboundedSender},
    task::AbortHandle,
    time::{sleep, timeout},
};

/// Of a longer file the beginning decides.
const LONGEST: u64 = 64 << 20;
const BUFFER: usize = 64 << 10;

/// The watched files. Dropped, it watches no more.
#[derive(Debug)]
pub struct Documents {
    watched: BTreeMap<String, AbortHandle>,
    reports: UnboundedSender<Report>,
}

impl Documents {
    #[must_use]
    pub fn new() -> (Documents, UnboundedReceiver<Report>) {
        let (reports, told) = mpsc::unbounded_channel();
        (Documents { watched: BTreeMap::new(), reports }, told)
    }

    /// Wants to know about a file; a watch of the same name is replaced, and told anew.
    pub fn watch(&mut self, name: &str, path: &Path, interval: Duration, debounce: Duration) {
        let document = Document {
            name: name.to_owned(),
            path: path.to_owned(),
            interval,
            debounce,
            reports: self.reports.clone(),
        };
        self.unwatch(name);
        self.watched.insert(name.to_owned(), tokio::spawn(document.follow()).abort_handle());
    }

    pub fn unwatch(&mut self, name: &str) {
        self.watched.remove(name).iter().for_each(AbortHandle::abort);
    }
}

impl Drop for Documents {
    fn drop(&mut self) {
        self.watched.values().for_each(AbortHandle::abort);
    }
}

struct Document {
    name: String,
    path: PathBuf,
    interval: Duration,
    debounce: Duration,
    reports: UnboundedSender<Report>,
}

impl Document {
    async fn follow(self) {
        let mut trouble = Trouble::new(About::Watch(self.name.clone()), self.reports.clone());
        let mut told = None;
        let mut events: Option<DirEvents> = None;
        loop {
            // Opened before the look: what happens from here on is noticed.
            if events.is_none() {
                events = DirEvents::around(&self.path).await.ok();
            }
            match self.look().await {
                Ok(found) => {
                    trouble.over();
                    if told.as_ref() != Some(&found) {
                        let (watch, instances) = (self.name.clone(), found.clone());
                        let _ = self.reports.send(Report::Instances { watch, instances });
                        told = Some(found);
                        sleep(self.debounce).await;
                    }
                }
                Err(error) => {
                    trouble.met(format!("cannot read {}: {error}", self.path.display()));
                }
            }
            events = self.wait(events).await;
        }
    }

    /// Until something has happened in the directory, or for the interval. Gives the events back
    /// while the directory can be watched.
    async fn wait(&self, events: Option<DirEvents>) -> Option<DirEvents> {
        let Some(mut events) = events else {
            sleep(self.interval).await;
            return None;
        };
        match timeout(self.interval, events.next()).await {
            Ok(Ok(DirChange::Entries | DirChange::HiddenEntries)) => Some(events),
            Ok(Ok(DirChange::Itself)) => None,
            Ok(Err(_)) => {
                sleep(self.interval).await;
                None
            }
            // The directory of this name may be another one by now.
            Err(_) => None,
        }
    }

    async fn look(&self) -> io::Result<InstanceList> {
        let path = self.path.clone();
        let digest = WATCHED.run(move || digest(&path)).await??;
        Ok(digest.map(|digest| self.instance(digest)).into_iter().collect())
    }

    fn instance(&self, digest: String) -> Instance {
        Instance {
            id: self.path.display().to_string(),
            name: self.name.clone(),
            address: String::new(),
            port: 0,
            tags: Vec::new(),
            meta: BTreeMap::from([("sha256".to_owned(), digest)]),
            node: String::new(),
        }
    }
}

/// Of its content; `None`: there is no such file.
fn digest(path: &Path) -> io::Result<Option<String>> {
    let file = match open_file(path).map(File::from) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut file = file.take(LONGEST);
    let mut hash = Context::new(&SHA256);
    let mut buffer = vec![0; BUFFER];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => hash.update(&buffer[..read]),
        }
    }
    let bytes = hash.finish();
    Ok(Some(bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Waits for the next answer, which tells how many and what the digest begins with.
    async fn next(reports: &mut UnboundedReceiver<Report>) -> Option<String> {
        let limit = Duration::from_secs(20);
        match timeout(limit, reports.recv()).await.expect("in time").expect("a report") {
            Report::Instances { instances, .. } => {
                let all: Vec<Instance> = serde_json::from_str(instances.as_json()).expect("a list");
                all.first().map(|it| it.meta["sha256"].clone())
            }
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_file_is_there_changes_is_renamed_over_and_goes() {
        let dir = std::env::temp_dir().join(format!("mainstay-document-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        let file = dir.join("x.conf");
        let (mut documents, mut reports) = Documents::new();
        // An interval that no test waits for: only what the kernel tells counts.
        documents.watch("x", &file, Duration::from_secs(3600), Duration::ZERO);
        assert_eq!(next(&mut reports).await, None);
        fs::write(dir.join("new"), "one").expect("written");
        fs::rename(dir.join("new"), &file).expect("renamed");
        let one = next(&mut reports).await.expect("there");
        fs::write(dir.join("new"), "two").expect("written");
        fs::rename(dir.join("new"), &file).expect("renamed over");
        let two = next(&mut reports).await.expect("there");
        assert_ne!(one, two);
        fs::remove_file(&file).expect("removed");
        assert_eq!(next(&mut reports).await, None);
        drop(documents);
        fs::remove_dir_all(&dir).expect("removed");
    }

    #[tokio::test]
    async fn without_its_directory_a_file_is_found_by_looking() {
        let dir = std::env::temp_dir().join(format!("mainstay-nowhere-{}", std::process::id()));
        let (mut documents, mut reports) = Documents::new();
        documents.watch("x", &dir.join("x"), Duration::from_millis(10), Duration::ZERO);
        assert_eq!(next(&mut reports).await, None);
        fs::create_dir_all(&dir).expect("a directory");
        fs::write(dir.join("x"), "one").expect("written");
        assert!(next(&mut reports).await.is_some());
        fs::remove_dir_all(&dir).expect("removed");
    }
}
