//! Who is at the other end of a unix socket.
//!
//! A process that our pid namespace does not see has pid 0: that is no error, and nobody's pid.

use std::{
    io, mem,
    os::fd::{AsFd, AsRawFd},
    ptr,
};

/// The user who connected.
///
/// # Errors
/// As getsockopt(2).
pub fn peer_uid(socket: impl AsFd) -> io::Result<u32> {
    // SAFETY: the kernel fills a plain record of ours, whose length it is told.
    unsafe {
        let mut peer: libc::ucred = mem::zeroed();
        let mut length = size_of::<libc::ucred>() as libc::socklen_t;
        let answer = libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        );
        if answer == 0 { Ok(peer.uid) } else { Err(io::Error::last_os_error()) }
    }
}

/// A datagram: how long it is, and who sent it, if that is a process that we can see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram {
    pub length: usize,
    pub sender: Option<u32>,
}

/// Receives a datagram from a socket that passes credentials, without waiting. Descriptors that
/// come along find no room and are closed by the kernel.
///
/// # Errors
/// As recvmsg(2).
pub fn receive(socket: impl AsFd, bytes: &mut [u8]) -> io::Result<Datagram> {
    // SAFETY: arithmetic only.
    const SPACE: usize = unsafe { libc::CMSG_SPACE(size_of::<libc::ucred>() as u32) } as usize;
    #[repr(C, align(8))]
    struct Space([u8; SPACE]);
    let mut space = Space([0; SPACE]);
    let mut vector = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: all pointers are to buffers of ours with their lengths; what the kernel says about
    // its control message is looked at through the macros made for it, and copied.
    unsafe {
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = &raw mut vector;
        message.msg_iovlen = 1;
        message.msg_control = space.0.as_mut_ptr().cast();
        message.msg_controllen = SPACE as _;
        let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
        let count = libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut message, flags);
        let length = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        let told = !header.is_null()
            && ((*header).cmsg_level, (*header).cmsg_type)
                == (libc::SOL_SOCKET, libc::SCM_CREDENTIALS);
        let sender = told
            .then(|| ptr::read_unaligned(libc::CMSG_DATA(header).cast::<libc::ucred>()).pid)
            .and_then(|pid| u32::try_from(pid).ok())
            .filter(|pid| *pid != 0);
        Ok(Datagram { length, sender })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixDatagram, UnixStream};

    #[test]
    fn we_are_known_to_ourselves() {
        let (one, other) = UnixStream::pair().expect("a pair");
        assert_eq!(peer_uid(&one).expect("a peer"), rustix::process::geteuid().as_raw());
        drop(other);
        let (one, other) = UnixDatagram::pair().expect("a pair");
        rustix::net::sockopt::set_socket_passcred(&one, true).expect("a socket");
        other.send(b"hello").expect("sent");
        let mut bytes = [0; 16];
        let got = receive(&one, &mut bytes).expect("a datagram");
        assert_eq!(got, Datagram { length: 5, sender: Some(std::process::id()) });
        assert_eq!(&bytes[..5], b"hello");
        let nothing = receive(&one, &mut bytes).expect_err("nothing more");
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
    }
}
