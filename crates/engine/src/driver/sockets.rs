//! The two sockets of an engine, at one address.

use mainstay_net::listen::bind_tcp;
use std::{
    io,
    net::{SocketAddr, TcpListener, UdpSocket},
};

/// Ports that are chosen by the system may be free for one of the two only.
const TRIES: usize = 16;

#[derive(Debug)]
pub(crate) struct Sockets {
    pub(crate) udp: UdpSocket,
    pub(crate) tcp: TcpListener,
    pub(crate) at: SocketAddr,
}

impl Sockets {
    /// # Errors
    /// When the address is not ours, or one of the two is taken.
    pub(crate) fn bind(listen: SocketAddr) -> io::Result<Sockets> {
        let mut tries = 0..TRIES;
        loop {
            let bound = bind_both(listen);
            match bound {
                Err(error)
                    if error.kind() == io::ErrorKind::AddrInUse
                        && listen.port() == 0
                        && tries.next().is_some() => {}
                Ok(_) | Err(_) => return bound,
            }
        }
    }
}

fn bind_both(listen: SocketAddr) -> io::Result<Sockets> {
    let tcp = bind_tcp(listen)?.into_std()?;
    let at = tcp.local_addr()?;
    let udp = UdpSocket::bind(at)?;
    udp.set_nonblocking(true)?;
    Ok(Sockets { udp, tcp, at })
}
