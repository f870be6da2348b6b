//! A directory that belongs to us, and what is below it: reached by descriptors, never by a link.

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, Stat, fchmod, fstat, mkdirat, openat, unlinkat},
    io::Errno,
};
use std::{
    ffi::OsStr,
    fs::File,
    io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

const OTHERS_WRITE: u32 = 0o022;

#[derive(Debug)]
pub struct OwnDir(OwnedFd);

impl OwnDir {
    /// Opens a directory that whoever gave its path answers for.
    ///
    /// # Errors
    /// As open(2).
    pub fn open(path: &Path) -> io::Result<OwnDir> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(OwnDir(rustix::fs::open(path, flags, Mode::empty())?))
    }

    /// A directory in it, made if need be. One of ours that others can write is closed to them.
    ///
    /// # Errors
    /// As mkdirat(2) and openat(2), and when it is a link or somebody else's.
    pub fn dir(&self, name: &OsStr, mode: u32) -> io::Result<OwnDir> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || openat(&self.0, name, flags, Mode::empty());
        let dir = match open() {
            Err(Errno::NOENT) => {
                match mkdirat(&self.0, name, Mode::from_raw_mode(mode)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                open()?
            }
            opened => opened?,
        };
        let found = fstat(&dir)?;
        if !is_ours(&found) {
            let text = "the directory belongs to somebody else";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        if found.st_mode & OTHERS_WRITE != 0 {
            fchmod(&dir, Mode::from_raw_mode(found.st_mode & 0o7777 & !OTHERS_WRITE))?;
        }
        Ok(OwnDir(dir))
    }

    /// Opens a file in it for reading and appending, made if need be. Whatever else has its name,
    /// a link or a FIFO, is removed.
    ///
    /// # Errors
    /// As openat(2).
    pub fn append(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let flags = OFlags::RDWR
            | OFlags::APPEND
            | OFlags::CREATE
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::CLOEXEC;
        let open = || openat(&self.0, name, flags, Mode::from_raw_mode(mode));
        let is_file = |fd: &OwnedFd| {
            fstat(fd).is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::RegularFile)
        };
        match open() {
            Ok(fd) if is_file(&fd) => return Ok(fd.into()),
            Ok(_) | Err(Errno::LOOP | Errno::NXIO) => {}
            Err(error) => return Err(error.into()),
        }
        unlinkat(&self.0, name, AtFlags::empty())?;
        match open()? {
            fd if is_file(&fd) => Ok(fd.into()),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file")),
        }
    }
}

impl AsFd for OwnDir {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn is_ours(found: &Stat) -> bool {
    found.st_uid == rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs,
        io::Write,
        os::unix::fs::{PermissionsExt, symlink},
    };

    fn scratch(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("mainstay-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory");
        path
    }

    #[test]
    fn links_are_removed_or_refused_and_never_followed() {
        let path = scratch("own-dir");
        let victim = path.join("victim");
        fs::write(&victim, "theirs").expect("written");
        let own = OwnDir::open(&path).expect("it is there");
        let logs = own.dir("logs".as_ref(), 0o750).expect("made");
        symlink(&victim, path.join("logs/current")).expect("a link");
        let mut file = logs.append("current".as_ref(), 0o640).expect("a file of its own");
        file.write_all(b"ours\n").expect("written");
        assert_eq!(fs::read(&victim).expect("there"), b"theirs");
        assert_eq!(fs::read(path.join("logs/current")).expect("there"), b"ours\n");
        symlink(path.join("logs"), path.join("other")).expect("a link");
        assert!(own.dir("other".as_ref(), 0o750).is_err(), "a directory by a link");
        fs::remove_dir_all(&path).expect("clean up");
    }

    #[test]
    fn a_directory_that_others_can_write_is_closed() {
        let path = scratch("own-open");
        fs::create_dir(path.join("logs")).expect("made");
        fs::set_permissions(path.join("logs"), fs::Permissions::from_mode(0o777)).expect("ours");
        OwnDir::open(&path).and_then(|own| own.dir("logs".as_ref(), 0o750)).expect("ours");
        let mode = fs::metadata(path.join("logs")).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
        fs::remove_dir_all(&path).expect("clean up");
    }
}
