//! sd_notify: what jobs say about themselves.

use mainstay_sys::credentials;
use std::{collections::BTreeMap, io, os::fd::OwnedFd};

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
    /// `None`: a process that we cannot see.
    pub(crate) sender: Option<u32>,
    pub(crate) fields: BTreeMap<String, String>,
}

/// Receives the next datagram, if there is one.
pub(crate) fn receive(socket: &OwnedFd) -> Option<Notice> {
    let mut bytes = [0; 4096];
    let received = loop {
        match credentials::receive(socket, &mut bytes) {
            Ok(received) => break received,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    };
    Some(Notice { sender: received.sender, fields: parse(&bytes[..received.length]) })
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
