//! A file as a source. One that somebody is writing is not a version.

use super::{SourceError, fetcher::Fetched};
use crate::profile::{self, Document, LARGEST};
use mainstay_core::plan::ProfileFormat;
use mainstay_pool::WATCHED;
use mainstay_sys::{
    lease::{Writers, writers},
    nonblocking::open_file,
};
use std::{
    fs::{File, Metadata},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};
use tokio::time::{Instant, sleep};

/// So long somebody who writes is waited for.
const LIMIT: Duration = Duration::from_secs(1);
const AGAIN: Duration = Duration::from_millis(20);
/// Where nobody tells of writers: the last write is so long ago.
const QUIET: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(super) struct FileSource {
    path: PathBuf,
    format: ProfileFormat,
    seen: Option<Stamp>,
}

/// Which file it was, as far as the kernel tells without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: (u64, u64),
    size: u64,
    written: (i64, i64),
    changed: (i64, i64),
}

/// One look at a file.
enum Look {
    Same,
    Read(Stamp, Vec<u8>),
    BeingWritten,
}

impl FileSource {
    pub(super) fn new(path: &Path, format: Option<ProfileFormat>) -> FileSource {
        let format = format.unwrap_or_else(|| profile::format_of_path(path));
        FileSource { path: path.to_owned(), format, seen: None }
    }

    pub(super) async fn fetch(&mut self, fresh: bool) -> Result<Fetched, SourceError> {
        let deadline = Instant::now() + LIMIT;
        let seen = self.seen.filter(|_| !fresh);
        loop {
            let path = self.path.clone();
            let look = WATCHED.run(move || look(&path, seen)).await?;
            match look.map_err(|source| SourceError::File { path: self.shown(), source })? {
                Look::Same => return Ok(Fetched::Unchanged),
                Look::Read(stamp, bytes) => {
                    self.seen = Some(stamp);
                    let format = self.format;
                    return Ok(Fetched::Document(Document { format, bytes, label: None }));
                }
                Look::BeingWritten if Instant::now() < deadline => sleep(AGAIN).await,
                // Its end is noticed.
                Look::BeingWritten if seen.is_some() => return Ok(Fetched::Unchanged),
                Look::BeingWritten => return Err(SourceError::BeingWritten(self.shown())),
            }
        }
    }

    pub(super) fn forget(&mut self) {
        self.seen = None;
    }

    fn shown(&self) -> String {
        self.path.display().to_string()
    }
}

fn look(path: &Path, seen: Option<Stamp>) -> io::Result<Look> {
    let file = File::from(open_file(path)?);
    let before = file.metadata()?;
    if seen == Some(stamp(&before)) {
        return Ok(Look::Same);
    }
    match writers(&file)? {
        Writers::Nobody => {}
        Writers::Somebody => return Ok(Look::BeingWritten),
        Writers::Unknown if is_quiet(&before) => {}
        Writers::Unknown => return Ok(Look::BeingWritten),
    }
    let mut bytes = Vec::new();
    // One that is larger is refused by whoever reads it.
    (&file).take(LARGEST as u64 + 1).read_to_end(&mut bytes)?;
    let after = stamp(&file.metadata()?);
    match after == stamp(&before) {
        true => Ok(Look::Read(after, bytes)),
        false => Ok(Look::BeingWritten),
    }
}

fn is_quiet(found: &Metadata) -> bool {
    let since = found.modified().map(|written| SystemTime::now().duration_since(written));
    // A time in the future says nothing.
    since.is_ok_and(|since| since.is_ok_and(|since| since >= QUIET))
}

pub(super) fn stamp(found: &Metadata) -> Stamp {
    Stamp {
        inode: (found.dev(), found.ino()),
        size: found.len(),
        written: (found.mtime(), found.mtime_nsec()),
        changed: (found.ctime(), found.ctime_nsec()),
    }
}
