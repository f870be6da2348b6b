//! Connecting to a socket of the run directory.

use rustix::fs::{Mode, OFlags, open};
use std::{
    io,
    os::{fd::AsRawFd, unix::ffi::OsStrExt, unix::net::UnixStream},
    path::Path,
};

/// The longest path that fits a socket address.
const LONGEST: usize = 107;

/// Connects to `name` in `dir`, however long the path is.
pub(crate) fn connect(dir: &Path, name: &str) -> io::Result<UnixStream> {
    let path = dir.join(name);
    if path.as_os_str().as_bytes().len() <= LONGEST {
        return UnixStream::connect(path);
    }
    let dir = open(dir, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    UnixStream::connect(format!("/proc/self/fd/{}/{name}", dir.as_raw_fd()))
}
