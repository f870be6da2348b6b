//! The directory: its lock, and its files, each read and replaced as a whole.

use super::entry::{Entry, now};
use crate::driver::Failure;
use mainstay_net::percent;
use mainstay_sys::{
    nonblocking::open_file,
    state_dir::{Durability, StateDir},
};
use rustix::fs::{FlockOperation, flock};
use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

/// The longest file that is read.
const LONGEST: u64 = 8 << 20;

#[derive(Debug)]
pub(super) struct Dir {
    directory: PathBuf,
}

/// Which file it was: every replacement is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: u64,
    size: u64,
    written: (i64, i64),
}

impl Dir {
    pub(super) fn new(directory: &Path) -> Dir {
        Dir { directory: directory.to_owned() }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The lock, held until the file is dropped; nothing while somebody else holds it.
    pub(super) fn lock(&self) -> Result<Option<File>, Failure> {
        self.make().map_err(|error| self.failed("make", &self.directory, &error))?;
        let path = self.directory.join(".lock");
        let mut options = OpenOptions::new();
        let opened = options.write(true).create(true).truncate(false).mode(0o644).open(&path);
        let file = opened.map_err(|error| self.failed("open", &path, &error))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(self.failed("lock", &path, &error.into())),
        }
    }

    /// What to say when the lock is not to be had.
    pub(super) fn locked(&self, limit: Duration) -> String {
        format!(
            "somebody else has held the lock {} for {limit:?}",
            self.directory.join(".lock").display()
        )
    }

    pub(super) fn make(&self) -> io::Result<()> {
        match self.directory.is_dir() {
            true => Ok(()),
            false => DirBuilder::new().recursive(true).mode(0o755).create(&self.directory),
        }
    }

    pub(super) fn read(&self, service: &str) -> Result<Vec<Entry>, Failure> {
        let path = self.path(service);
        let mut text = Vec::new();
        match open_file(&path)
            .map(File::from)
            .and_then(|file| file.take(LONGEST + 1).read_to_end(&mut text))
        {
            Ok(_) if text.len() as u64 > LONGEST => {
                Err(Failure::Failed(format!("{} is longer than 8 MiB", path.display())))
            }
            // What a crash of the machine may leave behind.
            Ok(0) => Ok(Vec::new()),
            Ok(_) => serde_json::from_slice(&text).map_err(|error| {
                let path = path.display();
                Failure::Failed(format!("{path} makes no sense: {error}; mend or remove it"))
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(self.failed("read", &path, &error)),
        }
    }

    /// Under the lock: changes the entries of a service, and drops those that are forgotten.
    pub(super) fn rewrite(
        &self,
        service: &str,
        change: impl Fn(&mut Vec<Entry>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut entries = self.read(service)?;
        change(&mut entries)?;
        let now = now();
        entries.retain(|entry| !entry.is_forgotten(now));
        entries.sort_by(|one, other| one.instance.cmp(&other.instance));
        let path = self.path(service);
        let written = match entries.is_empty() {
            true => fs::remove_file(&path).or_else(|error| match error.kind() {
                io::ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            }),
            false => self.write(service, &entries),
        };
        written.map_err(|error| self.failed("write", &path, &error))
    }

    /// The lock keeps the name beside it free.
    fn write(&self, service: &str, entries: &[Entry]) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(entries)?;
        text.push(b'\n');
        let dir = StateDir::open(&self.directory, Durability::Process)?;
        dir.replace(file_name(service), 0o644, &text).map(drop)
    }

    /// All that have a file.
    pub(super) fn services(&self) -> Result<Vec<String>, Failure> {
        let read = fs::read_dir(&self.directory)
            .map_err(|error| self.failed("read", &self.directory, &error))?;
        let mut services = Vec::new();
        for file in read {
            let name =
                file.map_err(|error| self.failed("read", &self.directory, &error))?.file_name();
            services.extend(
                name.to_str().and_then(|name| percent::of_file_name(name.strip_suffix(".json")?)),
            );
        }
        services.sort();
        Ok(services)
    }

    pub(super) fn stamp(&self, service: &str) -> Option<Stamp> {
        let found = fs::metadata(self.path(service)).ok()?;
        let written = (found.mtime(), found.mtime_nsec());
        Some(Stamp { inode: found.ino(), size: found.len(), written })
    }

    fn path(&self, service: &str) -> PathBuf {
        self.directory.join(file_name(service))
    }

    fn failed(&self, what: &str, path: &Path, error: &io::Error) -> Failure {
        Failure::Failed(format!("cannot {what} {}: {error}", path.display()))
    }
}

fn file_name(service: &str) -> String {
    format!("{}.json", percent::file_name(service))
}
