//! Connecting to a socket of the run directory.

use rustix::{
    fs::{Mode, OFlags, open},
    net::{
        AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect as connect_to, socket_with,
        sockopt::{Timeout, set_socket_timeout},
    },
};
use std::{
    io,
    os::{fd::AsRawFd, unix::ffi::OsStrExt, unix::net::UnixStream},
    path::Path,
    time::Duration,
};

/// The longest path that fits a socket address.
const LONGEST: usize = 107;

/// Connects to `name` in `dir`, however long the path is. Connecting, reading and writing each
/// take `patience` at most: a listener that is frozen lets nobody in.
pub(crate) fn connect(dir: &Path, name: &str, patience: Duration) -> io::Result<UnixStream> {
    let path = dir.join(name);
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    for timeout in [Timeout::Send, Timeout::Recv] {
        set_socket_timeout(&socket, timeout, Some(patience))?;
    }
    if path.as_os_str().as_bytes().len() <= LONGEST {
        connect_to(&socket, &SocketAddrUnix::new(&path)?)?;
    } else {
        let dir = open(dir, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let path = format!("/proc/self/fd/{}/{name}", dir.as_raw_fd());
        connect_to(&socket, &SocketAddrUnix::new(path)?)?;
    }
    Ok(UnixStream::from(socket))
}
