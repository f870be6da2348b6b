//! Listening sockets that are held for jobs, so that they outlive restarts of job and agent.

use mainstay_core::plan::Socket;
use mainstay_sys::{disk::Disk, nonblocking};
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use std::{
    io,
    net::SocketAddr,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

#[derive(Debug)]
pub(crate) struct HeldSocket {
    pub(crate) socket: Socket,
    pub(crate) fd: OwnedFd,
}

/// Brings what is held in line with what is wanted; those that stay are not touched.
pub(crate) fn hold(
    held: &mut Vec<HeldSocket>,
    wanted: &[Socket],
    disks: &Disk,
) -> Result<(), (String, io::Error)> {
    held.retain(|held| wanted.contains(&held.socket));
    for socket in wanted {
        if !held.iter().any(|held| held.socket == *socket) {
            let fd = open(&socket.address, disks).map_err(|error| {
                (format!("cannot listen on {} for socket '{}'", socket.address, socket.name), error)
            })?;
            held.push(HeldSocket { socket: socket.clone(), fd });
        }
    }
    Ok(())
}

/// In the order of the plan, which is the order of descriptors.
pub(crate) fn in_order<'a>(held: &'a [HeldSocket], wanted: &[Socket]) -> Vec<BorrowedFd<'a>> {
    let find = |socket: &Socket| held.iter().find(|held| held.socket == *socket);
    wanted.iter().filter_map(find).map(|held| held.fd.as_fd()).collect()
}

fn open(address: &str, disks: &Disk) -> io::Result<OwnedFd> {
    if let Some(path) = address.strip_prefix("unix:") {
        let path = PathBuf::from(path);
        return disks.run(move || open_unix(&path));
    }
    let (address, kind) = match address.strip_prefix("udp:") {
        Some(rest) => (rest, SocketType::DGRAM),
        None => (address, SocketType::STREAM),
    };
    let address: SocketAddr = address
        .parse()
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "not an address: use IP:PORT"))?;
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let fd = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    if kind == SocketType::STREAM {
        sockopt::set_socket_reuseaddr(&fd, true)?;
    }
    rustix::net::bind(&fd, &address)?;
    if kind == SocketType::STREAM {
        rustix::net::listen(&fd, BACKLOG)?;
    }
    Ok(fd)
}

/// Without `O_NONBLOCK` on the listening socket: the job decides how it accepts.
fn open_unix(path: &Path) -> io::Result<OwnedFd> {
    nonblocking::remove_stale_socket(path)?;
    let fd = nonblocking::bind(path, SocketType::STREAM)?;
    rustix::net::listen(&fd, BACKLOG)?;
    rustix::io::ioctl_fionbio(&fd, false)?;
    Ok(fd)
}

const BACKLOG: i32 = 1024;
