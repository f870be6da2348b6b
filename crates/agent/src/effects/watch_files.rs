//! The files of watches in the run directory: for each the instances that are known of it, for jobs,
//! whoever they run as.
//!
//! They are written outside the loop, one after the other; of several changes that wait for the
//! disk the last one counts. What is started meanwhile waits for those that were asked for before
//! it ([`WatchFiles::pending`]): a job that runs because of a change finds it in the file.

use mainstay_core::{discovery::InstanceList, name::Name};
use mainstay_pool::RUN_FILES;
use mainstay_sys::state_dir::{Durability, StateDir};
use std::{
    collections::BTreeMap,
    fs::{self, Permissions},
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};
use tokio::sync::watch;

#[derive(Debug)]
pub(crate) struct WatchFiles {
    dir: PathBuf,
    wanted: watch::Sender<Wanted>,
    written: watch::Receiver<u64>,
}

/// What the files are to hold, and the number of the last change.
#[derive(Debug, Default)]
struct Wanted {
    number: u64,
    /// `None`: nobody is pointed to it any more.
    files: BTreeMap<Name, Option<InstanceList>>,
}

/// A change of a file that is not on the disk yet.
#[derive(Debug, Clone)]
pub(crate) struct PendingWrite {
    number: u64,
    written: watch::Receiver<u64>,
}

impl PendingWrite {
    pub(crate) async fn done(mut self) {
        // The writer ends with the runtime only.
        let _ = self.written.wait_for(|written| *written >= self.number).await;
    }
}

impl WatchFiles {
    /// Must be called inside the runtime.
    pub(crate) fn start(run_dir: &Path) -> WatchFiles {
        let dir = run_dir.join("watches");
        let (wanted, mut changes) = watch::channel(Wanted::default());
        let (done, written) = watch::channel(0);
        let (writer, queue) = (dir.clone(), wanted.clone());
        tokio::spawn(async move {
            while changes.changed().await.is_ok() {
                let mut taken = Wanted::default();
                queue.send_if_modified(|wanted| {
                    taken.number = wanted.number;
                    taken.files = std::mem::take(&mut wanted.files);
                    false
                });
                let (dir, number) = (writer.clone(), taken.number);
                if let Err(unserved) = RUN_FILES.run(move || write_all(&dir, taken.files)).await {
                    tracing::error!("the files of watches are not written: {unserved}");
                }
                done.send_replace(number);
            }
        });
        WatchFiles { dir, wanted, written }
    }

    pub(crate) fn path(&self, watch: &Name) -> PathBuf {
        path(&self.dir, watch)
    }

    pub(crate) fn put(&self, watch: &Name, instances: InstanceList) {
        self.change(watch, Some(instances));
    }

    pub(crate) fn remove(&self, watch: &Name) {
        self.change(watch, None);
    }

    fn change(&self, watch: &Name, content: Option<InstanceList>) {
        self.wanted.send_modify(|wanted| {
            wanted.number += 1;
            wanted.files.insert(watch.clone(), content);
        });
    }

    /// The last change, unless it is on the disk.
    pub(crate) fn pending(&self) -> Option<PendingWrite> {
        let number = self.wanted.borrow().number;
        let written = self.written.clone();
        (*self.written.borrow() < number).then_some(PendingWrite { number, written })
    }
}

fn path(dir: &Path, watch: &Name) -> PathBuf {
    dir.join(file_name(watch))
}

fn file_name(watch: &Name) -> String {
    format!("{watch}.json")
}

fn write_all(dir: &Path, files: BTreeMap<Name, Option<InstanceList>>) {
    for (watch, content) in files {
        let file = path(dir, &watch);
        match content {
            Some(instances) => {
                if let Err(error) = write(dir, &watch, &instances) {
                    tracing::error!("cannot write {}: {error}", file.display());
                }
            }
            None => drop(fs::remove_file(file)),
        }
    }
}

fn write(dir: &Path, watch: &Name, instances: &InstanceList) -> io::Result<()> {
    // Whatever our mask is.
    let open_to_all = |mode| Permissions::from_mode(mode);
    match fs::create_dir(dir) {
        Ok(()) => fs::set_permissions(dir, open_to_all(0o755))?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let dir = StateDir::open(dir, Durability::Process)?;
    let mut file = dir.begin(file_name(watch), 0o644)?;
    file.file().set_permissions(open_to_all(0o644))?;
    file.file().write_all(instances.as_json().as_bytes())?;
    file.file().write_all(b"\n")?;
    file.commit().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_pending_is_done_once_the_last_change_is_in_the_file() {
        let dir = std::env::temp_dir().join(format!("mainstay-watches-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        let name = |text: &str| Name::new(text).expect("a name");
        let files = WatchFiles::start(&dir);
        assert!(files.pending().is_none());
        files.put(&name("gone"), InstanceList::default());
        files.put(&name("cache"), InstanceList::default());
        files.remove(&name("gone"));
        files.pending().expect("nothing is written yet").done().await;
        assert_eq!(fs::read_to_string(files.path(&name("cache"))).expect("a file"), "[]\n");
        assert!(!files.path(&name("gone")).exists());
        assert!(files.pending().is_none());
        fs::remove_dir_all(&dir).expect("our own directory");
    }
}
