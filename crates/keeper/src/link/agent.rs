//! The agent as the keeper sees it: a child that may die, and the link to it.

use crate::event_loop::poller::Interest;
use mainstay_wire::{
    frame::{self, FrameDecoder, FrameError, Message},
    link::{ToAgent, ToKeeper},
};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Beyond this, what an agent that does not read can do without is not kept for it.
const ENOUGH: usize = 4 << 20;

/// What is read at once. On the heap: a clone leaves that out, and takes the stack along.
const READ: usize = 32 << 10;

/// One process that is, or was, the agent.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) pid: u32,
    link: OwnedFd,
    decoder: FrameDecoder,
    read: Box<[u8]>,
    out: Vec<u8>,
    sent: usize,
    /// It said hello and knows what we hold: from now on it hears of everything.
    pub(crate) welcomed: bool,
    pub(crate) ready: bool,
    interest: Interest,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LinkRead {
    Some,
    Nothing,
    End,
}

impl Agent {
    pub(crate) fn new(pid: u32, link: OwnedFd) -> Agent {
        Agent {
            pid,
            link,
            decoder: FrameDecoder::default(),
            read: vec![0; READ].into(),
            out: Vec::new(),
            sent: 0,
            welcomed: false,
            ready: false,
            interest: Interest::Read,
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.link.as_fd()
    }

    pub(crate) fn read(&mut self) -> LinkRead {
        match rustix::io::read(&self.link, &mut self.read[..]) {
            Ok(0) => LinkRead::End,
            Ok(count) => {
                self.decoder.push(&self.read[..count]);
                LinkRead::Some
            }
            Err(Errno::AGAIN | Errno::INTR) => LinkRead::Nothing,
            Err(_) => LinkRead::End,
        }
    }

    pub(crate) fn next(&mut self) -> Result<Option<Message<ToKeeper>>, FrameError> {
        self.decoder.next_message()
    }

    /// Puts a message in line; false when it is too long for that.
    pub(crate) fn queue(&mut self, message: &ToAgent) -> bool {
        let welcome = matches!(message, ToAgent::Welcome(_));
        if !self.welcomed && !welcome || self.unsent() > ENOUGH && dispensable(message) {
            return true;
        }
        let Ok(bytes) = frame::encode(message) else { return false };
        self.welcomed |= welcome;
        self.out.extend_from_slice(&bytes);
        true
    }

    /// Notes what is waited for on the link; whether that is something else than before.
    pub(crate) fn listens_for(&mut self, interest: Interest) -> bool {
        std::mem::replace(&mut self.interest, interest) != interest
    }

    fn unsent(&self) -> usize {
        self.out.len() - self.sent
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.unsent() == 0
    }

    /// Sends what it takes now; whether something is left.
    pub(crate) fn flush(&mut self) -> bool {
        while self.unsent() > 0 {
            match rustix::io::write(&self.link, &self.out[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return true,
                // Its end is told by its exit.
                Err(_) => break,
            }
        }
        self.out.clear();
        self.sent = 0;
        if self.out.capacity() > 1 << 20 {
            self.out = Vec::new();
        }
        false
    }
}

/// What a later message says again, or what only tells.
fn dispensable(message: &ToAgent) -> bool {
    match message {
        ToAgent::LogGap { .. }
        | ToAgent::Rotated { .. }
        | ToAgent::StrayKilled { .. }
        | ToAgent::Notified { .. }
        | ToAgent::Figures { .. } => true,
        ToAgent::Welcome(_)
        | ToAgent::Spawned { .. }
        | ToAgent::Exited(_)
        | ToAgent::TaskDone { .. }
        | ToAgent::Asked { .. }
        | ToAgent::Signalled { .. }
        | ToAgent::UpgradeFailed { .. } => false,
    }
}
