//! What the writer reads: the read ends of pipes and terminals, and whose they are.

use mainstay_core::{name::Name, plan::Log};
use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

/// Whose output it is: a job's, or our own (keeper and agent).
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub(crate) enum Owner {
    Job(Name),
    Own,
}

impl Owner {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Owner::Job(name) => name.as_str(),
            Owner::Own => "mainstay",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(crate) enum Channel {
    Stdout,
    Stderr,
}

impl Channel {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Channel::Stdout => "stdout",
            Channel::Stderr => "stderr",
        }
    }
}

/// What the job writes to.
#[derive(Debug)]
pub(crate) enum WriteEnd {
    Pipe,
    /// Its lines end with `\r\n`. We keep its end open until the job is gone.
    Terminal(Option<OwnedFd>),
}

/// The read end of one pipe or terminal, and what becomes of what comes out of it.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) key: u64,
    pub(crate) owner: Owner,
    pub(crate) channel: Channel,
    pub(crate) log: Log,
    /// Of the process that writes; `None`: it is not told.
    pub(crate) pid: Option<u32>,
    pub(crate) end: Arc<ReadEnd>,
    pub(crate) write_end: WriteEnd,
    /// The beginning of a line whose end has not come yet.
    pub(crate) partial: Vec<u8>,
}

/// A read end, and who writes at the other one.
///
/// While the writer hangs, the next incarnation of a job goes on with the pipe of the last one: else
/// there would be one more descriptor with every restart. Each gets a number; the writer closes
/// the pipe only if the one whose end it has seen is still the last.
#[derive(Debug)]
pub(crate) struct ReadEnd {
    fd: OwnedFd,
    users: AtomicU32,
}

/// In `users`: the writer has closed it, or is about to.
const ENDED: u32 = 1 << 31;

impl ReadEnd {
    pub(crate) fn new(fd: OwnedFd) -> ReadEnd {
        ReadEnd { fd, users: AtomicU32::new(0) }
    }

    /// The number of whoever writes into it now.
    pub(super) fn user(&self) -> u32 {
        self.users.load(Ordering::Acquire)
    }

    /// This one writes no more: whether it is to be closed.
    pub(super) fn ends(&self, user: u32) -> bool {
        let ended = user | ENDED;
        self.users.compare_exchange(user, ended, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Another one will write into it, unless it is closed. His end must be open already.
    pub(super) fn reuse(&self) -> bool {
        let next = |users: u32| (users & ENDED == 0).then_some(users + 1);
        self.users.try_update(Ordering::AcqRel, Ordering::Acquire, next).is_ok()
    }
}

impl AsFd for ReadEnd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_was_seen_late_does_not_close_what_another_writes_into() {
        let (read, _write) = rustix::pipe::pipe().expect("a pipe");
        let end = ReadEnd::new(read);
        let first = end.user();
        assert!(end.reuse());
        assert!(!end.ends(first), "somebody else writes by now");
        assert!(end.ends(end.user()));
        assert!(!end.reuse(), "it is closed");
    }
}
