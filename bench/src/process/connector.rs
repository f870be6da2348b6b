//! The kernel's process connector: a netlink socket that tells every exec and exit on the machine,
//! stamped where it happens. Nothing is polled, so the watched are not disturbed.
//!
//! Needs CAP_NET_ADMIN in the initial namespaces; elsewhere the kernel stays silent, which `open`
//! notices by the missing acknowledgement.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, netlink, recv, send,
    socket_with,
};
use rustix::process::Pid;

use super::{Event, Instant};

const CN_IDX_PROC: u32 = 1;
const PROC_CN_MCAST_LISTEN: u32 = 1;
const NLMSG_DONE: u16 = 3;
/// nlmsghdr (16) and cn_msg (20) come before the event.
const HEADERS: usize = 36;
const PROC_EVENT_EXEC: u32 = 0x0000_0002;
const PROC_EVENT_EXIT: u32 = 0x8000_0000;
/// A thousand starts are some ten thousand events.
const BUFFER: usize = 64 << 20;

#[derive(Debug)]
pub(crate) struct Connector {
    socket: OwnedFd,
    pub lost: bool,
}

impl Connector {
    pub(crate) fn open() -> Option<Connector> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            Some(netlink::CONNECTOR),
        )
        .ok()?;
        bind(&socket, &netlink::SocketAddrNetlink::new(0, CN_IDX_PROC)).ok()?;
        if set_socket_recv_buffer_size_force(&socket, BUFFER).is_err() {
            set_socket_recv_buffer_size(&socket, BUFFER).ok()?;
        }
        send(&socket, &listen_request(), SendFlags::empty()).ok()?;
        let mut connector = Connector { socket, lost: false };
        connector.receive(Duration::from_millis(200)).map(|_| connector)
    }

    /// The next exec or exit; None when `timeout` passes without one.
    pub(crate) fn next(&mut self, timeout: Duration) -> Option<Event> {
        loop {
            if let Some(event) = decode(&self.receive(timeout)?) {
                return Some(event);
            }
        }
    }

    fn receive(&mut self, timeout: Duration) -> Option<[u8; 128]> {
        let limit = Timespec {
            tv_sec: timeout.as_secs() as i64,
            tv_nsec: i64::from(timeout.subsec_nanos()),
        };
        let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
        if poll(&mut fds, Some(&limit)).ok()? == 0 {
            return None;
        }
        let mut message = [0; 128];
        match recv(&self.socket, &mut message[..], RecvFlags::DONTWAIT) {
            Ok(_) => Some(message),
            Err(error) => {
                self.lost |= error == Errno::NOBUFS;
                None
            }
        }
    }
}

fn listen_request() -> Vec<u8> {
    let mut request = Vec::with_capacity(40);
    request.extend(40_u32.to_ne_bytes());
    request.extend(NLMSG_DONE.to_ne_bytes());
    request.extend(0_u16.to_ne_bytes());
    for word in [0, 0, CN_IDX_PROC, 1, 0, 0] {
        request.extend(u32::to_ne_bytes(word));
    }
    request.extend(4_u16.to_ne_bytes());
    request.extend(0_u16.to_ne_bytes());
    request.extend(PROC_CN_MCAST_LISTEN.to_ne_bytes());
    request
}

/// struct proc_event: what, cpu, timestamp, then the process (threads are left out).
fn decode(message: &[u8; 128]) -> Option<Event> {
    let word = |at: usize| {
        let bytes = &message[HEADERS + at..HEADERS + at + 4];
        u32::from_ne_bytes(bytes.try_into().expect("four bytes were cut out"))
    };
    let stamp = &message[HEADERS + 8..HEADERS + 16];
    let at =
        Instant::from_nanos(u64::from_ne_bytes(stamp.try_into().expect("eight bytes were cut")));
    let (thread, process) = (word(16), word(20));
    if thread != process {
        return None;
    }
    let pid = Pid::from_raw(process as i32)?;
    match word(0) {
        PROC_EVENT_EXEC => Some(Event::Exec(pid, at)),
        PROC_EVENT_EXIT => Some(Event::Exit(pid, at)),
        _ => None,
    }
}
