//! What lies in a directory, by descriptors: files, links and directories, each looked at, put in
//! place and removed as itself. A link is never followed.
//!
//! Nothing here syncs the directory: who changes several entries does that once ([`StateDir::sync`]).

use super::state_dir::{Durability, StateDir};
use rustix::{
    fs::{
        AtFlags, Dir, FileType, Gid, Mode, OFlags, Uid, fchmod, fchown, fsync, openat, readlinkat,
        renameat, statat, symlinkat, unlinkat,
    },
    io::Errno,
};
use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

/// Of one name, so much is kept that was set aside.
const MOST_ASIDE: usize = 9;
/// The deepest directory that is removed with all that it holds.
const DEEPEST: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryKind {
    File,
    Directory,
    Link,
    /// A pipe, a socket, a device.
    Other,
}

/// What lies under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub kind: EntryKind,
    /// Permissions only.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub size: u64,
}

impl StateDir {
    /// `None`: nothing lies there.
    ///
    /// # Errors
    /// As stat(2).
    pub fn entry(&self, name: impl AsRef<Path>) -> io::Result<Option<Entry>> {
        let stat = match statat(self.fd(), name.as_ref(), AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(None),
            stat => stat?,
        };
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Directory,
            FileType::Symlink => EntryKind::Link,
            _ => EntryKind::Other,
        };
        let size = u64::try_from(stat.st_size).unwrap_or_default();
        let mode = stat.st_mode & 0o7777;
        Ok(Some(Entry { kind, mode, uid: stat.st_uid, gid: stat.st_gid, size }))
    }

    /// The content of a regular file that is no longer than that.
    ///
    /// # Errors
    /// As open(2) and read(2); `FileTooLarge` beyond the limit.
    pub fn read_up_to(&self, name: impl AsRef<Path>, longest: u64) -> io::Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(self.fd(), name.as_ref(), flags, Mode::empty())?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let mut content = Vec::new();
        file.take(longest + 1).read_to_end(&mut content)?;
        match content.len() as u64 > longest {
            true => Err(io::ErrorKind::FileTooLarge.into()),
            false => Ok(content),
        }
    }

    /// The names of all that lies in it.
    ///
    /// # Errors
    /// As readdir(3).
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(self.fd())? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if !matches!(name, b"." | b"..") {
                names.push(OsStr::from_bytes(name).to_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    /// A directory in it that is there itself.
    ///
    /// # Errors
    /// As open(2).
    pub fn open_dir(&self, name: impl AsRef<Path>) -> io::Result<StateDir> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = openat(self.fd(), name.as_ref(), flags, Mode::empty())?;
        Ok(StateDir::of(fd, Durability::Machine))
    }

    /// Gives a regular file its permissions, whatever the umask says, and its owner.
    ///
    /// # Errors
    /// As fchown(2) and fchmod(2).
    pub fn permit(
        &self,
        name: impl AsRef<Path>,
        mode: u32,
        owner: Option<(u32, u32)>,
    ) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(self.fd(), name.as_ref(), flags, Mode::empty())?;
        // First the owner: a change of it takes the special bits away.
        if let Some((uid, gid)) = owner {
            fchown(&file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
        }
        Ok(fchmod(&file, Mode::from_raw_mode(mode))?)
    }

    /// Puts an entry in the place of another one, without a sync.
    ///
    /// # Errors
    /// As rename(2).
    pub fn put(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
        Ok(renameat(self.fd(), from.as_ref(), self.fd(), to.as_ref())?)
    }

    /// Takes what lies there out of this directory, to a name of its own in another one, and syncs:
    /// `KIND.aside`, or with a number. What was set aside before stays; of many, the last is replaced.
    ///
    /// # Errors
    /// As rename(2).
    pub fn set_aside(
        &self,
        name: impl AsRef<Path>,
        place: &StateDir,
        kind: &str,
    ) -> io::Result<String> {
        let last = format!("{kind}.aside-{MOST_ASIDE}");
        let more = (2..MOST_ASIDE).map(|number| format!("{kind}.aside-{number}"));
        let mut all = std::iter::once(format!("{kind}.aside")).chain(more);
        let aside = match all.find(|it| matches!(place.entry(it), Ok(None))) {
            Some(free) => free,
            None => {
                place.remove_all(&last)?;
                last
            }
        };
        renameat(self.fd(), name.as_ref(), place.fd(), &aside)?;
        self.sync()?;
        place.sync()?;
        Ok(aside)
    }

    /// Makes a link.
    ///
    /// # Errors
    /// As symlink(2).
    pub fn link(&self, target: impl AsRef<Path>, name: impl AsRef<Path>) -> io::Result<()> {
        Ok(symlinkat(target.as_ref(), self.fd(), name.as_ref())?)
    }

    /// Where a link leads.
    ///
    /// # Errors
    /// As readlink(2).
    pub fn link_target(&self, name: impl AsRef<Path>) -> io::Result<PathBuf> {
        let target = readlinkat(self.fd(), name.as_ref(), Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()).into())
    }

    /// Removes what lies there, with all that it holds. Nothing lying there is as well.
    ///
    /// # Errors
    /// As unlink(2), and when it is nested too deep.
    pub fn remove_all(&self, name: impl AsRef<Path>) -> io::Result<()> {
        self.remove_below(name.as_ref(), DEEPEST)
    }

    fn remove_below(&self, name: &Path, depth: usize) -> io::Result<()> {
        match self.entry(name)?.map(|entry| entry.kind) {
            None => Ok(()),
            Some(EntryKind::Directory) if depth == 0 => {
                Err(io::Error::other("its directories are nested too deep"))
            }
            Some(EntryKind::Directory) => {
                let dir = self.open_dir(name)?;
                for name in dir.names()? {
                    dir.remove_below(Path::new(&name), depth - 1)?;
                }
                Ok(unlinkat(self.fd(), name, AtFlags::REMOVEDIR)?)
            }
            Some(EntryKind::File | EntryKind::Link | EntryKind::Other) => self.remove(name),
        }
    }

    /// What was changed in it is on the disk.
    ///
    /// # Errors
    /// As fsync(2).
    pub fn sync(&self) -> io::Result<()> {
        Ok(fsync(self.fd())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink};

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("mainstay-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a directory");
        path
    }

    #[test]
    fn entries_are_looked_at_and_removed_as_themselves() {
        let path = scratch("entries");
        fs::create_dir_all(path.join("kept/in")).expect("made");
        fs::write(path.join("kept/in/file"), "theirs").expect("written");
        fs::create_dir_all(path.join("gone/deep")).expect("made");
        fs::write(path.join("gone/deep/file"), "ours").expect("written");
        symlink(path.join("kept"), path.join("gone/link")).expect("made");
        symlink("kept/in/file", path.join("link")).expect("made");
        let dir = StateDir::open(&path, Durability::Machine).expect("there");
        let kind = |name: &str| dir.entry(name).expect("looked at").map(|entry| entry.kind);
        assert_eq!(kind("link"), Some(EntryKind::Link));
        assert_eq!(kind("kept"), Some(EntryKind::Directory));
        assert_eq!(kind("nothing"), None);
        assert_eq!(dir.link_target("link").expect("read"), Path::new("kept/in/file"));
        assert!(dir.read_up_to("link", 100).is_err(), "a link is not followed");
        assert_eq!(dir.names().expect("read"), ["gone", "kept", "link"]);
        dir.remove_all("gone").expect("removed");
        dir.remove_all("link").expect("removed");
        dir.remove_all("nothing").expect("it is as if it was");
        assert_eq!(dir.names().expect("read"), ["kept"]);
        assert_eq!(fs::read(path.join("kept/in/file")).expect("there"), b"theirs");
        let inner = dir.open_dir("kept").and_then(|it| it.open_dir("in")).expect("there");
        assert_eq!(inner.read_up_to("file", 6).expect("fits"), b"theirs");
        let long = inner.read_up_to("file", 5).expect_err("longer");
        assert_eq!(long.kind(), io::ErrorKind::FileTooLarge);
        inner.permit("file", 0o640, None).expect("ours");
        assert_eq!(inner.entry("file").expect("there").expect("there").mode, 0o640);
        fs::remove_dir_all(&path).expect("clean up");
    }

    #[test]
    fn what_is_set_aside_stays_until_there_is_too_much_of_it() {
        let path = scratch("aside");
        let dir = StateDir::open(&path, Durability::Machine).expect("there");
        for number in 1..=MOST_ASIDE + 2 {
            fs::write(path.join("kept"), number.to_string()).expect("written");
            let aside = dir.set_aside("kept", &dir, "kept").expect("renamed");
            assert_eq!(fs::read(path.join(aside)).expect("there"), number.to_string().as_bytes());
        }
        assert_eq!(fs::read(path.join("kept.aside")).expect("the first"), b"1");
        assert_eq!(fs::read(path.join("kept.aside-2")).expect("the second"), b"2");
        assert_eq!(dir.names().expect("read").len(), MOST_ASIDE);
        fs::create_dir(path.join("kept")).expect("made");
        dir.set_aside("kept", &dir, "kept").expect("a directory as well");
        fs::remove_dir_all(&path).expect("clean up");
    }
}
