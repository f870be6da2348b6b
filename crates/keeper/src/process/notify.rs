//! sd_notify: what jobs say about themselves, from the datagram to the agent.

use crate::{keeper::Keeper, process::tree::Tree};
use mainstay_sys::{credentials, proc};
use mainstay_wire::link::ToAgent;
use rustix::io::Errno;
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
/// Datagrams taken at a time, so that no job keeps the others waiting.
const NOTIFICATIONS: usize = 32;

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

impl Keeper {
    pub(crate) fn read_notifications(&mut self, id: u64) {
        for _ in 0..NOTIFICATIONS {
            let Some(job) = self.jobs.get_mut(&id) else { return };
            let Some(notification) = job.notify.as_ref().and_then(receive) else { return };
            let Some(process) = &mut job.process else { continue };
            if notification.fields.is_empty()
                || !belongs(&process.tree, process.pid, notification.sender)
            {
                continue;
            }
            process.notified.extend(notification.fields.clone());
            let key = (id, process.incarnation);
            if let Some(node) = self.node() {
                node.notifications.entry(key).or_default().extend(notification.fields);
            }
        }
    }

    /// A newline on its notification descriptor means the same as READY=1; more is not expected.
    pub(crate) fn read_ready_pipe(&mut self, id: u64) {
        let Some(process) = self.jobs.get_mut(&id).and_then(|job| job.process.as_mut()) else {
            return;
        };
        let Some(pipe) = &process.ready else { return };
        let mut bytes = [0; 512];
        let said = match rustix::io::read(pipe, &mut bytes) {
            Ok(0) => false,
            Ok(count) if bytes[..count].contains(&b'\n') => true,
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => return,
            Err(_) => false,
        };
        self.poller.remove(pipe);
        process.ready = None;
        if said {
            let ready = [("READY".to_owned(), "1".to_owned())];
            process.notified.extend(ready.clone());
            let key = (id, process.incarnation);
            if let Some(node) = self.node() {
                node.notifications.entry(key).or_default().extend(ready);
            }
        }
    }

    /// Passes notifications on when the agent has read what came before: it gets the latest of each.
    pub(crate) fn send_notifications(&mut self) {
        let Some(node) = self.node() else { return };
        let listens = node.agent.as_ref().is_some_and(|agent| agent.welcomed && agent.is_idle());
        if !listens || node.notifications.is_empty() {
            return;
        }
        for ((id, incarnation), fields) in std::mem::take(&mut node.notifications) {
            if let Some(job) = self.jobs.get(&id) {
                let message = ToAgent::Notified { job: job.name.clone(), incarnation, fields };
                self.send(&message);
            }
        }
    }
}

/// Whether a sender is of the job's tree. The socket belongs to the job's user, so one that has
/// gone already (as `systemd-notify` has) is believed. One that we cannot see is no descendant.
fn belongs(tree: &Tree, leader: u32, sender: Option<u32>) -> bool {
    let Some(sender) = sender else { return false };
    if sender == leader {
        return true;
    }
    match tree {
        Tree::Cgroup { group, .. } => group.procs().contains(&sender) || proc::is_dead(sender),
        Tree::Group => true,
    }
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
