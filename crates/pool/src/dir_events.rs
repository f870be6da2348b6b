//! What happens in a directory, as the kernel tells it: entries that come, go and change, not what
//! is below them. A thread begins to watch, as a file system may hang; nobody holds one while waiting.

use crate::WATCHED;
use rustix::fs::inotify::{CreateFlags, ReadFlags, WatchFlags, add_watch, init};
use std::{
    io,
    path::{Path, PathBuf},
};
use tokio::net::unix::pipe::Receiver;

/// Room for some events, and for the longest name that one can have.
const BUFFER: usize = 4096;
/// Of an event without a name.
const HEAD: usize = 16;
/// A file that is written to is of no use before it is closed.
const CHANGES: WatchFlags = WatchFlags::MOVE
    .union(WatchFlags::CREATE)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// What has happened since the last answer, taken together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirChange {
    /// To entries, or more than the kernel could keep.
    Entries,
    /// To entries whose names begin with a dot, and to no others.
    HiddenEntries,
    /// The directory is gone or has another name: nothing more is told.
    Itself,
}

/// A directory that is watched until this is dropped.
#[derive(Debug)]
pub struct DirEvents(Receiver);

impl DirEvents {
    /// What is told begins here: a look after this misses nothing.
    ///
    /// # Errors
    /// When there is no such directory, it cannot be watched, or does not answer in time.
    pub async fn of(directory: &Path) -> io::Result<DirEvents> {
        DirEvents::begin(directory.to_owned(), CHANGES).await
    }

    /// Those of the directory that a file is in. One that is renamed over the file, or a link that
    /// is switched as a whole, is told there and not by the file. Attributes count here: a file may
    /// become one that can be read.
    ///
    /// # Errors
    /// As with `of`.
    pub async fn around(file: &Path) -> io::Result<DirEvents> {
        let parent = file.parent().filter(|it| !it.as_os_str().is_empty());
        let directory = parent.map_or_else(|| PathBuf::from("."), Path::to_owned);
        DirEvents::begin(directory, CHANGES | WatchFlags::ATTRIB).await
    }

    async fn begin(directory: PathBuf, changes: WatchFlags) -> io::Result<DirEvents> {
        let begin = move || {
            let events = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
            add_watch(&events, &directory, changes)?;
            io::Result::Ok(events)
        };
        // It is no pipe, and is waited for and read like one.
        Ok(DirEvents(Receiver::from_owned_fd_unchecked(WATCHED.run(begin).await??)?))
    }

    /// Waits for the next change. May be dropped at any time.
    ///
    /// # Errors
    /// When the kernel gives up.
    pub async fn next(&mut self) -> io::Result<DirChange> {
        loop {
            self.0.readable().await?;
            let mut buffer = [0; BUFFER];
            match self.0.try_read(&mut buffer) {
                Ok(length) => return Ok(taken_together(&buffer[..length])),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// All events of a buffer, one after the other: the number of the watch, what has happened, a cookie,
/// how long the name is, and the name with zeros up to that length.
fn taken_together(mut bytes: &[u8]) -> DirChange {
    let gone = ReadFlags::IGNORED | ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF;
    let mut change = DirChange::HiddenEntries;
    while let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() {
        let [_, happened, _, length] = [0, 4, 8, 12]
            .map(|at| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]));
        if ReadFlags::from_bits_retain(happened).intersects(gone) {
            return DirChange::Itself;
        }
        let (name, rest) = rest.split_at(rest.len().min(length as usize));
        if !name.starts_with(b".") {
            change = DirChange::Entries;
        }
        bytes = rest;
    }
    change
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, time::Duration};
    use tokio::time::timeout;

    async fn next(events: &mut DirEvents) -> DirChange {
        timeout(Duration::from_secs(20), events.next()).await.expect("in time").expect("told")
    }

    #[test]
    fn an_event_without_a_name_or_with_a_plain_one_is_about_entries_and_the_end_outdoes_both() {
        let event = |happened: ReadFlags, name: &[u8]| {
            let numbers = [1, happened.bits(), 0, name.len() as u32];
            [numbers.map(u32::to_ne_bytes).as_flattened(), name].concat()
        };
        let hidden = event(ReadFlags::CREATE, b".lock\0\0\0");
        let plain = event(ReadFlags::CLOSE_WRITE, b"web.json\0\0\0\0");
        let overflow = event(ReadFlags::QUEUE_OVERFLOW, b"");
        let end = event(ReadFlags::DELETE_SELF, b"");
        assert_eq!(taken_together(&hidden.repeat(3)), DirChange::HiddenEntries);
        assert_eq!(taken_together(&[&*hidden, &*plain, &*hidden].concat()), DirChange::Entries);
        assert_eq!(taken_together(&[&*hidden, &*overflow].concat()), DirChange::Entries);
        assert_eq!(taken_together(&[&*plain, &*end, &*plain].concat()), DirChange::Itself);
    }

    #[tokio::test]
    async fn entries_that_come_and_go_are_told_and_so_is_the_end_of_the_directory() {
        let dir = std::env::temp_dir().join(format!("mainstay-events-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        let mut events = DirEvents::around(&dir.join("file")).await.expect("it is there");
        fs::write(dir.join(".lock"), "").expect("written");
        assert_eq!(next(&mut events).await, DirChange::HiddenEntries);
        fs::write(dir.join(".new"), "one").expect("written");
        fs::rename(dir.join(".new"), dir.join("file")).expect("renamed");
        assert_eq!(next(&mut events).await, DirChange::Entries);
        let quiet = timeout(Duration::from_millis(50), events.next()).await;
        assert!(quiet.is_err(), "all of it was told: {quiet:?}");
        fs::remove_dir_all(&dir).expect("removed");
        while next(&mut events).await != DirChange::Itself {}
        assert!(DirEvents::of(&dir).await.is_err(), "it is not there");
    }
}
