//! The agent as the keeper sees it: a child that may die, and the link to it.

use crate::event_loop::poller::Interest;
use mainstay_sys::reap::How;
use mainstay_wire::{
    frame::{self, FrameDecoder, FrameError},
    link::{ToAgent, ToKeeper},
};
use rustix::io::Errno;
use std::{
    collections::VecDeque,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

/// Beyond this, what an agent that does not read can do without is not kept for it.
const ENOUGH: usize = 4 << 20;

/// One process that is, or was, the agent.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) pid: u32,
    link: OwnedFd,
    decoder: FrameDecoder,
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
        let mut bytes = [0; 32 << 10];
        match rustix::io::read(&self.link, &mut bytes) {
            Ok(0) => LinkRead::End,
            Ok(count) => {
                self.decoder.push(&bytes[..count]);
                LinkRead::Some
            }
            Err(Errno::AGAIN | Errno::INTR) => LinkRead::Nothing,
            Err(_) => LinkRead::End,
        }
    }

    pub(crate) fn next(&mut self) -> Result<Option<ToKeeper>, FrameError> {
        self.decoder.next()
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

/// What follows when an agent has died.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AfterDeath {
    /// It refused to begin: the run ends with its code.
    End(i32),
    Restart {
        after: Duration,
    },
}

/// All agents of a run, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Succession {
    pub(crate) restarts: u64,
    ever_ready: bool,
    failures: u32,
    /// When agents were replaced at once, lately (CLOCK_BOOTTIME).
    at_once: VecDeque<u64>,
}

impl Succession {
    const FIRST_DELAY: Duration = Duration::from_millis(100);
    const LONGEST_DELAY: Duration = Duration::from_secs(10);
    /// So many replacements at once within so long are normal life; more is a loop.
    const AT_ONCE: usize = 30;
    const WITHIN: u64 = 10_000_000_000;
    const USAGE: i32 = 2;
    const CONFIGURATION: i32 = 78;

    pub(crate) fn resume(restarts: u64) -> Succession {
        Succession { restarts, ever_ready: true, ..Succession::default() }
    }

    pub(crate) fn became_ready(&mut self) {
        self.ever_ready = true;
    }

    pub(crate) fn died(&mut self, was_ready: bool, how: How, now: u64) -> AfterDeath {
        if let (false, How::Code(code @ (Succession::USAGE | Succession::CONFIGURATION))) =
            (self.ever_ready, how)
        {
            return AfterDeath::End(code);
        }
        self.restarts += 1;
        self.at_once.retain(|at| now.saturating_sub(*at) < Succession::WITHIN);
        if was_ready && self.at_once.len() < Succession::AT_ONCE {
            self.failures = 0;
            self.at_once.push_back(now);
            return AfterDeath::Restart { after: Duration::ZERO };
        }
        let delay = Succession::FIRST_DELAY.saturating_mul(1 << self.failures.min(16));
        self.failures += 1;
        AfterDeath::Restart { after: delay.min(Succession::LONGEST_DELAY) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KILLED: How = How::Signal(9);

    #[test]
    fn an_agent_that_was_ready_is_replaced_at_once_until_it_is_a_loop() {
        let mut succession = Succession::default();
        succession.became_ready();
        for _ in 0..Succession::AT_ONCE {
            assert_eq!(
                succession.died(true, KILLED, 5),
                AfterDeath::Restart { after: Duration::ZERO }
            );
        }
        assert_eq!(
            succession.died(true, KILLED, 6),
            AfterDeath::Restart { after: Duration::from_millis(100) }
        );
        let later = 6 + Succession::WITHIN;
        assert_eq!(
            succession.died(true, KILLED, later),
            AfterDeath::Restart { after: Duration::ZERO }
        );
    }

    #[test]
    fn an_agent_that_never_gets_ready_is_backed_off() {
        let mut succession = Succession::default();
        let delays: Vec<u128> = (0..9)
            .map(|_| match succession.died(false, How::Code(1), 0) {
                AfterDeath::Restart { after } => after.as_millis(),
                AfterDeath::End(_) => panic!("not a refusal"),
            })
            .collect();
        assert_eq!(delays, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
    }

    #[test]
    fn a_refusal_ends_the_run_only_before_any_agent_was_ready() {
        let mut succession = Succession::default();
        assert_eq!(succession.died(false, How::Code(78), 0), AfterDeath::End(78));
        assert_eq!(succession.died(false, How::Code(2), 0), AfterDeath::End(2));
        succession.became_ready();
        assert!(matches!(succession.died(false, How::Code(78), 0), AfterDeath::Restart { .. }));
    }
}
