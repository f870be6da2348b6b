//! A directory in which a process is held: what its control socket and its state file say.

use crate::{Control, until};
use rustix::fs::{Mode, OFlags, open};
use serde_json::Value;
use std::{
    fs,
    io::ErrorKind,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
};

#[derive(Debug, Clone)]
pub struct Watched {
    dir: PathBuf,
}

/// What comes of a connect.
#[derive(Debug)]
pub enum Reached {
    NoSuchFile,
    Refused,
    Connected(Control),
}

impl Watched {
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Watched {
        Watched { dir: dir.into() }
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Connects, however long the path is.
    #[must_use]
    pub fn try_connect(&self) -> Reached {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(dir) = open(&self.dir, flags, Mode::empty()) else { return Reached::NoSuchFile };
        let path = format!("/proc/self/fd/{}/control", dir.as_raw_fd());
        match Control::connect(Path::new(&path)) {
            Ok(control) => Reached::Connected(control),
            Err(error) if error.kind() == ErrorKind::NotFound => Reached::NoSuchFile,
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => Reached::Refused,
            Err(error) => panic!("cannot connect in {}: {error}", self.dir.display()),
        }
    }

    /// Waits until something listens.
    #[must_use]
    pub fn connect(&self) -> Control {
        until("something listens", || match self.try_connect() {
            Reached::Connected(control) => Some(control),
            Reached::NoSuchFile | Reached::Refused => None,
        })
    }

    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self.try_connect(), Reached::Refused)
    }

    /// The state file; invalid JSON is as good as none.
    #[must_use]
    pub fn state(&self) -> Option<Value> {
        serde_json::from_slice(&fs::read(self.dir.join("state")).ok()?).ok()
    }
}
