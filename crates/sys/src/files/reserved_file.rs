//! A file that grows by pieces and is replaced as a whole now and then, with room for both kept in
//! advance: a disk that somebody else has filled stops neither.
//!
//! ```text
//!  journal        lines lines lines 000000000000      the room behind them is ours already
//!  .journal.new   00000000000000000000000000000      the next content is written here,
//!                 └── and then the two change names
//! ```
//!
//! What follows the content is zeros. The file in reserve is zeros from its first byte on, or was
//! left in the midst of something: its end is wiped first and its beginning last. Where the file
//! system cannot keep room, or cannot exchange names, it works as a plain file does.

use super::state_dir::{StateDir, temporary};
use rustix::{
    fs::{AtFlags, FallocateFlags, Mode, OFlags, RenameFlags},
    io::Errno,
};
use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

/// Zeros are written so many at a time.
const WIPED: u64 = 64 << 10;

#[derive(Debug)]
pub struct ReservedFile {
    dir: StateDir,
    name: PathBuf,
    other_name: PathBuf,
    mode: u32,
    file: File,
    /// So much of it is content.
    length: u64,
    /// Where the next content goes; all zeros.
    other: Option<File>,
    /// So much room both should have.
    room: u64,
}

impl ReservedFile {
    /// A file with this content in place of whatever is there, whose room it takes over.
    ///
    /// # Errors
    /// As [`StateDir::replace`].
    pub fn create(
        dir: StateDir,
        name: &Path,
        mode: u32,
        content: &[u8],
    ) -> io::Result<ReservedFile> {
        match open_there(&dir, name) {
            Ok(file) => {
                let mut there = ReservedFile::of(dir, name, mode, file, 0)?;
                there.replace(content)?;
                Ok(there)
            }
            Err(_) => {
                let file = dir.replace(name, mode, content)?;
                ReservedFile::of(dir, name, mode, file, content.len() as u64)
            }
        }
    }

    /// The file as it is there. What follows so many bytes of content is wiped.
    ///
    /// # Errors
    /// As open(2) and write(2).
    pub fn open(dir: StateDir, name: &Path, mode: u32, length: u64) -> io::Result<ReservedFile> {
        let file = open_there(&dir, name)?;
        let behind = file.metadata()?.len().saturating_sub(length);
        let mut tail = vec![0; usize::try_from(behind).unwrap_or(0)];
        file.read_exact_at(&mut tail, length)?;
        if let Some(last) = tail.iter().rposition(|byte| *byte != 0) {
            wipe(&file, length, length + last as u64 + 1)?;
        }
        ReservedFile::of(dir, name, mode, file, length)
    }

    fn of(
        dir: StateDir,
        name: &Path,
        mode: u32,
        file: File,
        length: u64,
    ) -> io::Result<ReservedFile> {
        let (name, other_name) = (name.to_owned(), temporary(name)?);
        let (other, room) = (None, file.metadata()?.len());
        Ok(ReservedFile { dir, name, other_name, mode, file, length, other, room })
    }

    /// How much content there is.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Adds to the content.
    ///
    /// # Errors
    /// As write(2). Nothing was added.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.file.write_all_at(bytes, self.length) {
            Ok(()) => {
                self.length += bytes.len() as u64;
                Ok(())
            }
            Err(error) => {
                // A torn piece is no content; where it stays, the next one is written over it.
                let end = self.file.metadata().map_or(self.length, |it| it.len());
                let _ = wipe(&self.file, self.length, end.min(self.length + bytes.len() as u64));
                Err(error)
            }
        }
    }

    /// Replaces the content.
    ///
    /// # Errors
    /// As open(2), write(2) and rename(2). The old content is still there.
    pub fn replace(&mut self, content: &[u8]) -> io::Result<()> {
        let new = match self.other.take() {
            Some(other) => other,
            None => self.open_other()?,
        };
        if let Err(error) = new.write_all_at(content, 0) {
            self.give_back(new);
            return Err(error);
        }
        let exchanged = rustix::fs::renameat_with(
            self.dir.fd(),
            &self.other_name,
            self.dir.fd(),
            &self.name,
            RenameFlags::EXCHANGE,
        );
        if exchanged.is_err() {
            rustix::fs::renameat(self.dir.fd(), &self.other_name, self.dir.fd(), &self.name)?;
        }
        let old = std::mem::replace(&mut self.file, new);
        self.length = content.len() as u64;
        if exchanged.is_ok() {
            self.give_back(old);
        }
        Ok(())
    }

    /// A file that somebody has written beside it, with so much content, takes its place: once it
    /// has as much room. That in reserve stays as it is.
    ///
    /// # Errors
    /// As fallocate(2) and rename(2). The old content is still there.
    pub fn replace_by(&mut self, beside: &Path, file: File, length: u64) -> io::Result<()> {
        reserve(&file, self.room)?;
        rustix::fs::renameat(self.dir.fd(), beside, self.dir.fd(), &self.name)?;
        (self.file, self.length) = (file, length);
        Ok(())
    }

    /// So much room each content has.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.room
    }

    /// Keeps so much room for each content, from its first byte on.
    ///
    /// # Errors
    /// As fallocate(2): [`io::ErrorKind::Unsupported`] where the file system keeps none. The room that
    /// there was is still kept.
    pub fn keep_room(&mut self, room: u64) -> io::Result<()> {
        let other = match self.other.take() {
            Some(other) => other,
            None => self.open_other()?,
        };
        let kept = allocate(&self.file, room).and_then(|()| allocate(&other, room));
        match kept {
            Ok(()) => self.room = room,
            // Half of it is of no use, and others may need it.
            Err(_) => self.file.set_len(self.room.max(self.length))?,
        }
        self.other = Some(other);
        kept
    }

    /// The file for the next content: what was left of one, or a new one.
    fn open_other(&self) -> io::Result<File> {
        if let Ok(found) = open_there(&self.dir, &self.other_name) {
            let mut first = [0];
            if found.read_at(&mut first, 0)? == 1 && first != [0] {
                wipe(&found, 0, found.metadata()?.len())?;
            }
            return Ok(found);
        }
        match rustix::fs::unlinkat(self.dir.fd(), &self.other_name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let flags = flags | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(self.mode);
        Ok(rustix::fs::openat(self.dir.fd(), &self.other_name, flags, mode)?.into())
    }

    /// Puts a file in reserve, with the room that it has, as far as that is wanted.
    fn give_back(&mut self, file: File) {
        let length = file.metadata().map_or(0, |it| it.len());
        let shortened = length <= self.room || file.set_len(self.room).is_ok();
        if shortened && wipe(&file, 0, length.min(self.room)).is_ok() {
            self.other = Some(file);
        } else {
            let _ = rustix::fs::unlinkat(self.dir.fd(), &self.other_name, AtFlags::empty());
        }
    }
}

/// A file that is there, and nothing else that has its name.
fn open_there(dir: &StateDir, name: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(dir.fd(), name, flags, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

/// Takes so much room for a file from the disk, unless the file system keeps none.
///
/// # Errors
/// As fallocate(2).
pub fn reserve(file: &File, room: u64) -> io::Result<()> {
    match allocate(file, room) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
        reserved => reserved,
    }
}

/// Its room is taken from the disk, and reads as zeros.
fn allocate(file: &File, room: u64) -> io::Result<()> {
    let length = file.metadata()?.len();
    if length >= room {
        return Ok(());
    }
    let allocated = rustix::fs::fallocate(file, FallocateFlags::empty(), 0, room);
    if allocated.is_err() {
        let _ = file.set_len(length);
    }
    Ok(allocated?)
}

/// Zeros from there to there, the last of them first.
fn wipe(file: &File, from: u64, to: u64) -> io::Result<()> {
    let zeros = [0; WIPED as usize];
    let mut end = to;
    while end > from {
        let start = end.saturating_sub(WIPED).max(from);
        let count = usize::try_from(end - start).unwrap_or(zeros.len());
        file.write_all_at(&zeros[..count], start)?;
        end = start;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state_dir::Durability;
    use std::fs;

    const ROOM: u64 = 256 << 10;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("mainstay-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a directory");
        path
    }

    fn state_dir(path: &Path) -> StateDir {
        StateDir::open(path, Durability::Process).expect("a directory")
    }

    fn content(path: &Path) -> Vec<u8> {
        let bytes = fs::read(path.join("journal")).expect("a file");
        let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        bytes[..length].to_vec()
    }

    fn create(path: &Path, content: &[u8]) -> ReservedFile {
        let dir = state_dir(path);
        let mut file = ReservedFile::create(dir, "journal".as_ref(), 0o600, content).expect("made");
        file.keep_room(ROOM).expect("there is room");
        file
    }

    #[test]
    fn content_is_added_and_replaced_and_zeros_follow_it() {
        let path = scratch("reserved");
        let mut file = create(&path, b"one\n");
        file.append(b"two\n").expect("added");
        assert_eq!(content(&path), b"one\ntwo\n");
        file.replace(b"three\n").expect("replaced");
        file.append(b"four\n").expect("added");
        assert_eq!((content(&path), file.length()), (b"three\nfour\n".to_vec(), 11));
        file.replace(b"5\n").expect("replaced");
        assert_eq!(content(&path), b"5\n", "nothing of what was there before comes back");
        let kept = fs::read(path.join(".journal.new")).expect("in reserve");
        assert!(kept.len() as u64 == ROOM && kept.iter().all(|byte| *byte == 0));
        fs::remove_dir_all(&path).expect("clean up");
    }

    #[test]
    fn what_was_left_in_the_midst_of_something_is_wiped() {
        let path = scratch("reserved-left");
        drop(create(&path, b"one\nhalf a li"));
        fs::write(path.join(".journal.new"), b"begun\nand not finished").expect("written");
        let opened = ReservedFile::open(state_dir(&path), "journal".as_ref(), 0o600, 4);
        let mut file = opened.expect("it is there");
        assert_eq!(content(&path), b"one\n");
        file.replace(b"2\n").expect("replaced");
        assert_eq!(content(&path), b"2\n");
        fs::remove_dir_all(&path).expect("clean up");
    }

    #[test]
    fn what_was_written_beside_it_takes_over_with_as_much_room() {
        let path = scratch("reserved-beside");
        let mut file = create(&path, b"one\n");
        fs::write(path.join(".journal.snapshot"), b"two\n").expect("written");
        let opened = fs::OpenOptions::new().write(true).open(path.join(".journal.snapshot"));
        let beside = opened.expect("there");
        file.replace_by(".journal.snapshot".as_ref(), beside, 4).expect("there is room");
        file.append(b"three\n").expect("added");
        assert_eq!(content(&path), b"two\nthree\n");
        for name in ["journal", ".journal.new"] {
            assert_eq!(fs::metadata(path.join(name)).expect("there").len(), ROOM, "{name}");
        }
        file.replace(b"4\n").expect("replaced");
        assert_eq!(content(&path), b"4\n");
        fs::remove_dir_all(&path).expect("clean up");
    }

    #[test]
    fn who_is_in_the_place_of_either_is_not_followed() {
        let path = scratch("reserved-link");
        fs::write(path.join("victim"), "theirs").expect("written");
        std::os::unix::fs::symlink(path.join("victim"), path.join(".journal.new")).expect("made");
        let mut file = create(&path, b"one\n");
        file.replace(b"two\n").expect("replaced");
        assert_eq!(fs::read(path.join("victim")).expect("there"), b"theirs");
        fs::remove_file(path.join("journal")).expect("ours");
        file.replace(b"three\n").expect("replaced, though the old one is gone");
        assert_eq!(content(&path), b"three\n");
        fs::remove_dir_all(&path).expect("clean up");
    }
}
