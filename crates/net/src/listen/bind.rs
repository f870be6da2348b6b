//! Listeners: TCP, and unix sockets of our own or of somebody else.

use super::{accept::Acceptor, connection::Accepted};
use crate::connect;
use rustix::{
    fs::{Mode, fchmod},
    net::{
        AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with, sockopt,
    },
};
use std::{
    fs, io,
    net::SocketAddr,
    os::unix::{fs::FileTypeExt, net},
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::{
    net::{TcpListener, UnixListener, UnixStream},
    time::timeout,
};

const BACKLOG: i32 = 1024;
const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);
/// Whoever owns a socket file answers by then.
const OWNER: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub enum Listener {
    Tcp(TcpListener),
    /// Its file is somebody else's.
    Unix(UnixListener),
    /// With its file, which goes with it.
    UnixFile(UnixListener, SocketFile),
}

/// The file of a socket. Dropped, it is removed.
#[derive(Debug)]
pub struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl Listener {
    /// At `host:port`.
    ///
    /// # Errors
    /// When none of the host's addresses can be listened at.
    pub async fn tcp(at: &str) -> io::Result<Listener> {
        let (host, port) = connect::split(at)?;
        let mut failure = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
        for address in connect::addresses(host, port).await? {
            match bind_tcp(address) {
                Ok(listener) => return Ok(Listener::Tcp(listener)),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// A socket file that only we may connect to, in place of one that nobody listens at any more.
    ///
    /// # Errors
    /// When somebody listens there, something else is there, or it cannot be made.
    pub async fn private_unix(path: &Path) -> io::Result<Listener> {
        match fs::symlink_metadata(path) {
            Ok(there) if !there.file_type().is_socket() => {
                let text = "there is a file at that path that is no socket: remove it";
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
            }
            Ok(_) => {
                if let Ok(Ok(_)) = timeout(OWNER, UnixStream::connect(path)).await {
                    let text = "another process listens there";
                    return Err(io::Error::new(io::ErrorKind::AddrInUse, text));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let mut beside = path.as_os_str().to_owned();
        beside.push(".new");
        let beside = PathBuf::from(beside);
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None)?;
        // The file takes its mode from the socket: it is never open to others, not for a moment.
        fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
        bind(&socket, &SocketAddrUnix::new(&beside)?)?;
        listen(&socket, BACKLOG)?;
        if let Err(error) = fs::rename(&beside, path) {
            let _ = fs::remove_file(&beside);
            return Err(error);
        }
        let listener = UnixListener::from_std(net::UnixListener::from(socket))?;
        Ok(Listener::UnixFile(listener, SocketFile(path.to_owned())))
    }
}

impl Acceptor for Listener {
    type Accepted = Accepted;

    async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Listener::Tcp(listener) => {
                listener.accept().await.map(|(stream, _)| Accepted::Tcp(stream))
            }
            Listener::Unix(listener) | Listener::UnixFile(listener, _) => {
                listener.accept().await.map(|(stream, _)| Accepted::Unix(stream))
            }
        }
    }
}

/// The address can be taken again at once after whoever listened there has died.
///
/// # Errors
/// When the address is taken, is not ours, or is not for us.
pub fn bind_tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, FLAGS, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &address)?;
    listen(&socket, BACKLOG)?;
    TcpListener::from_std(socket.into())
}
