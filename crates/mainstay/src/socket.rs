//! Connecting to a socket of a directory, if it is that of somebody whom we may trust.

use crate::dirs;
use mainstay_sys::credentials;
use rustix::{
    fs::{Mode, OFlags, open},
    net::{
        AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect as connect_to, socket_with,
        sockopt::{Timeout, set_socket_timeout},
    },
    process::{geteuid, getgroups},
};
use std::{
    fs, io,
    os::{
        fd::{AsFd, AsRawFd},
        unix::{ffi::OsStrExt, fs::MetadataExt, net::UnixStream},
    },
    path::Path,
    time::Duration,
};

/// The longest path that fits a socket address.
const LONGEST: usize = 107;

/// Connects to `name` in `dir`, however long the path is. Connecting, reading and writing each
/// take `patience` at most: a listener that is frozen lets nobody in. Nothing is said to a listener
/// of somebody else.
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
    trust(&socket, dir, &path)?;
    Ok(UnixStream::from(socket))
}

/// Whoever listens is root or ourselves; or, in a directory that was named and is his, a user whose
/// node root asks about, or whose node has opened its socket to a group of ours.
fn trust(socket: impl AsFd, dir: &Path, path: &Path) -> io::Result<()> {
    let (peer, ours) = (credentials::peer_uid(socket)?, geteuid());
    if peer == 0 || peer == ours.as_raw() {
        return Ok(());
    }
    let named_his = !dirs::is_usual(dir) && fs::metadata(dir)?.uid() == peer;
    if named_his && (ours.is_root() || is_opened_to_us(path)?) {
        return Ok(());
    }
    let text = format!("whoever listens there is user {peer}, neither you nor root");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

/// To a group that we are in, and not to everybody.
fn is_opened_to_us(socket: &Path) -> io::Result<bool> {
    const EVERYBODY: u32 = 0o002;
    let file = fs::metadata(socket)?;
    let in_group = getgroups()?.iter().any(|group| group.as_raw() == file.gid());
    Ok(in_group && file.mode() & EVERYBODY == 0)
}
