//! sd_notify: what jobs say about themselves.

use rustix::{
    io::Errno,
    net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg},
};
use std::{collections::BTreeMap, io::IoSliceMut, mem::MaybeUninit, os::fd::OwnedFd};

/// What is passed on; the rest of the protocol is not ours.
const KNOWN: [&str; 9] = [
    "READY",
    "RELOADING",
    "STOPPING",
    "STATUS",
    "ERRNO",
    "MAINPID",
    "WATCHDOG",
    "WATCHDOG_USEC",
    "EXTEND_TIMEOUT_USEC",
];
const LONGEST_VALUE: usize = 1024;

/// One datagram: who sent it, and its assignments.
pub(crate) struct Notice {
    pub(crate) pid: u32,
    pub(crate) fields: BTreeMap<String, String>,
}

/// Receives the next datagram, if there is one.
pub(crate) fn receive(socket: &OwnedFd) -> Option<Notice> {
    let mut bytes = [0; 4096];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1), ScmRights(4))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let received = loop {
        match recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, flags) {
            Ok(received) => break received,
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    };
    // Descriptors that came along are closed here: we store none.
    let sender = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmCredentials(credentials) => Some(credentials.pid),
        _ => None,
    });
    let pid = sender.and_then(|pid| u32::try_from(pid.as_raw_nonzero().get()).ok()).unwrap_or(0);
    Some(Notice { pid, fields: parse(&bytes[..received.bytes]) })
}

fn parse(bytes: &[u8]) -> BTreeMap<String, String> {
    let text = String::from_utf8_lossy(bytes);
    text.lines()
        .filter_map(|line| line.split_once('='))
        .filter(|(name, value)| KNOWN.contains(name) && value.len() <= LONGEST_VALUE)
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_assignments_that_we_know_and_that_are_short_are_taken() {
        let long = format!("STATUS={}", "x".repeat(2000));
        let text = format!("READY=1\nFDSTORE=1\nSTATUS=warm up\nno assignment\n{long}\n");
        let fields = parse(text.as_bytes());
        assert_eq!(
            fields.into_iter().collect::<Vec<_>>(),
            [("READY".to_owned(), "1".to_owned()), ("STATUS".to_owned(), "warm up".to_owned()),]
        );
    }
}
