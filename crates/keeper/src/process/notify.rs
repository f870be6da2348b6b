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
/// Only STATUS is free text; it is for people.
const LONGEST_STATUS: usize = 256;
const LONGEST_VALUE: usize = 32;

/// One datagram: who sent it, and its assignments.
pub(crate) struct Notification {
    /// `None`: a process that we cannot see.
    pub(crate) sender: Option<u32>,
    pub(crate) fields: BTreeMap<String, String>,
}

/// Receives the next datagram, if there is one.
pub(crate) fn receive(socket: &OwnedFd) -> Option<Notification> {
    let mut bytes = [0; 4096];
    let received = loop {
        match credentials::receive(socket, &mut bytes) {
            Ok(received) => break received,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    };
    Some(Notification { sender: received.sender, fields: parse(&bytes[..received.length]) })
}

pub(crate) fn parse(bytes: &[u8]) -> BTreeMap<String, String> {
    let text = String::from_utf8_lossy(bytes);
    text.lines()
        .filter_map(|line| line.split_once('='))
        .filter(|(name, _)| KNOWN.contains(name))
        .filter_map(|(name, value)| Some((name.to_owned(), tidy(name, value)?)))
        .collect()
}

/// A value as it is passed on; `None`: it is none.
fn tidy(name: &str, value: &str) -> Option<String> {
    if name == "STATUS" {
        return Some(
            value.chars().filter(|char| !char.is_control()).take(LONGEST_STATUS).collect(),
        );
    }
    (value.len() <= LONGEST_VALUE && value.bytes().all(|byte| byte.is_ascii_graphic()))
        .then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_assignments_that_we_know_are_taken_and_all_of_them_are_short() {
        let long = "x".repeat(2000);
        let text = format!(
            "READY=1\nFDSTORE=1\nno assignment\nERRNO={long}\nSTATUS=warm\u{1} up {long}\n"
        );
        let fields = parse(text.as_bytes());
        assert_eq!(fields.keys().collect::<Vec<_>>(), ["READY", "STATUS"]);
        assert!(fields["STATUS"].starts_with("warm up x"), "{fields:?}");
        assert_eq!(fields["STATUS"].len(), LONGEST_STATUS);
    }
}
