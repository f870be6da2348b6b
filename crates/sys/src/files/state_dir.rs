//! State on disk, written in one way only: a file is replaced as a whole, so that whoever reads it
//! sees the old content or the new one.
//!
//! Everything goes through a descriptor of the directory (openat, renameat), whatever becomes of its
//! path meanwhile, and never through a link: the new content is a file that this made itself. What a
//! crash or somebody else left under its temporary name goes first.

use rustix::{
    fs::{AtFlags, Mode, OFlags, fsync, mkdirat, open, openat, renameat, unlinkat},
    io::Errno,
};
use std::{
    ffi::OsString,
    fs::File,
    io::{self, Read, Write},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

/// How much a replacement has to outlive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The process: what is in memory of the kernel is enough.
    Process,
    /// The machine: file and directory are on the disk when it returns.
    Machine,
}

/// A directory whose files are state.
#[derive(Debug)]
pub struct StateDir {
    fd: OwnedFd,
    durability: Durability,
}

/// The new content of a file, under its temporary name. Dropped, it is gone, and the old is there.
#[derive(Debug)]
pub struct Replacement<'a> {
    dir: &'a StateDir,
    name: PathBuf,
    temporary: PathBuf,
    /// `None`: it has its name.
    file: Option<File>,
}

impl StateDir {
    /// # Errors
    /// As open(2).
    pub fn open(path: &Path, durability: Durability) -> io::Result<StateDir> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(StateDir { fd: open(path, flags, Mode::empty())?, durability })
    }

    pub(super) fn of(fd: OwnedFd, durability: Durability) -> StateDir {
        StateDir { fd, durability }
    }

    /// Replaces a file as a whole; gives the new one, positioned at its end. `mode` is subject to
    /// the umask.
    ///
    /// # Errors
    /// As open(2), write(2), fsync(2) and rename(2). The old content is then still there, unless
    /// nothing but the sync of the directory has failed.
    pub fn replace(&self, name: impl AsRef<Path>, mode: u32, content: &[u8]) -> io::Result<File> {
        let mut new = self.begin(name, mode)?;
        new.file().write_all(content)?;
        new.commit()
    }

    /// A replacement that is written piece by piece.
    ///
    /// # Errors
    /// As open(2).
    pub fn begin(&self, name: impl AsRef<Path>, mode: u32) -> io::Result<Replacement<'_>> {
        let name = name.as_ref().to_owned();
        let temporary = temporary(&name)?;
        let file = Some(self.create(&temporary, mode)?);
        Ok(Replacement { dir: self, name, temporary, file })
    }

    /// A new file, in place of what a crash or somebody else left under its name. `mode` is subject
    /// to the umask.
    ///
    /// # Errors
    /// As open(2).
    pub fn create(&self, name: impl AsRef<Path>, mode: u32) -> io::Result<File> {
        let name = name.as_ref();
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let create = || openat(&self.fd, name, flags, Mode::from_raw_mode(mode));
        let file = match create() {
            Err(Errno::EXIST) => {
                unlinkat(&self.fd, name, AtFlags::empty())?;
                create()?
            }
            created => created?,
        };
        Ok(file.into())
    }

    /// Puts a file in the place of another one.
    ///
    /// # Errors
    /// As rename(2) and fsync(2).
    fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
        renameat(&self.fd, from.as_ref(), &self.fd, to.as_ref())?;
        match self.durability {
            Durability::Process => Ok(()),
            Durability::Machine => Ok(fsync(&self.fd)?),
        }
    }

    /// The content of a file; never that of what a link leads to, of a pipe or a device.
    ///
    /// # Errors
    /// As open(2) and read(2).
    pub fn read(&self, name: impl AsRef<Path>) -> io::Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut file = File::from(openat(&self.fd, name.as_ref(), flags, Mode::empty())?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let mut content = Vec::new();
        file.read_to_end(&mut content)?;
        Ok(content)
    }

    pub(super) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// Makes a directory in it.
    ///
    /// # Errors
    /// As mkdir(2).
    pub fn make_dir(&self, name: impl AsRef<Path>, mode: u32) -> io::Result<()> {
        Ok(mkdirat(&self.fd, name.as_ref(), Mode::from_raw_mode(mode))?)
    }

    /// # Errors
    /// As unlink(2).
    pub fn remove(&self, name: impl AsRef<Path>) -> io::Result<()> {
        Ok(unlinkat(&self.fd, name.as_ref(), AtFlags::empty())?)
    }
}

impl Replacement<'_> {
    pub fn file(&mut self) -> &mut File {
        self.file.as_mut().expect("only commit takes it")
    }

    /// Gives it its name.
    ///
    /// # Errors
    /// As [`StateDir::replace`].
    pub fn commit(mut self) -> io::Result<File> {
        if self.dir.durability == Durability::Machine {
            self.file().sync_all()?;
        }
        self.dir.rename(&self.temporary, &self.name)?;
        Ok(self.file.take().expect("only commit takes it"))
    }
}

impl Drop for Replacement<'_> {
    fn drop(&mut self) {
        if self.file.is_some() {
            let _ = unlinkat(&self.dir.fd, &self.temporary, AtFlags::empty());
        }
    }
}

/// A hidden name beside it.
pub(super) fn temporary(name: &Path) -> io::Result<PathBuf> {
    let Some(last) = name.file_name() else { return Err(io::ErrorKind::InvalidInput.into()) };
    let mut hidden = OsString::from(".");
    hidden.push(last);
    hidden.push(".new");
    Ok(name.with_file_name(hidden))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    struct TestDir(PathBuf);

    impl TestDir {
        fn new(name: &str) -> TestDir {
            let path = std::env::temp_dir().join(format!("mainstay-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).expect("a directory");
            TestDir(path)
        }

        fn entries(&self) -> usize {
            fs::read_dir(&self.0).expect("a directory").count()
        }
    }

    impl Drop for TestDir {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_link_under_either_name_is_never_written_through() {
        let dir = TestDir::new("replace-link");
        let (file, elsewhere) = (dir.0.join("state"), dir.0.join("elsewhere"));
        fs::write(&elsewhere, "theirs").expect("written");
        for durability in [Durability::Process, Durability::Machine] {
            let state = StateDir::open(&dir.0, durability).expect("a directory");
            for link in [file.clone(), dir.0.join(".state.new")] {
                let _ = fs::remove_file(&link);
                std::os::unix::fs::symlink(&elsewhere, &link).expect("a link");
                state.replace("state", 0o600, b"ours").expect("replaced");
                assert!(fs::symlink_metadata(&file).expect("there").is_file());
            }
        }
        assert_eq!(fs::read(&file).expect("there"), b"ours");
        assert_eq!(fs::read(&elsewhere).expect("there"), b"theirs");
        assert_eq!(dir.entries(), 2, "nothing is left behind");
    }

    #[test]
    fn what_is_not_committed_leaves_the_old_content_and_nothing_else() {
        let dir = TestDir::new("replace-dropped");
        let state = StateDir::open(&dir.0, Durability::Process).expect("a directory");
        state.replace("state", 0o600, b"old").expect("replaced");
        let mut new = state.begin("state", 0o600).expect("begun");
        new.file().write_all(b"half").expect("written");
        drop(new);
        assert_eq!(fs::read(dir.0.join("state")).expect("there"), b"old");
        assert_eq!(dir.entries(), 1);
    }

    #[test]
    fn the_directory_is_the_one_that_was_opened() {
        let dir = TestDir::new("replace-moved");
        let (here, there) = (dir.0.join("here"), dir.0.join("there"));
        fs::create_dir(&here).expect("a directory");
        let state = StateDir::open(&here, Durability::Machine).expect("a directory");
        fs::rename(&here, &there).expect("renamed");
        std::os::unix::fs::symlink("/", &here).expect("a link");
        state.replace("state", 0o600, b"ours").expect("replaced");
        assert_eq!(fs::read(there.join("state")).expect("there"), b"ours");
    }
}
