//! Deadlines, on the clock that goes on while the machine sleeps.
//!
//! A deadline is a value, never cancelled: whoever handles it looks whether it still resources
//! anything.

use mainstay_sys::clock;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::{
    collections::BTreeMap,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Deadline {
    /// A lease: kill the tree of this incarnation.
    Fence {
        job: u64,
        incarnation: u64,
    },
    /// The stop signal had its time.
    Escalate {
        job: u64,
        incarnation: u64,
    },
    /// Look again whether the tree is gone.
    Recheck {
        job: u64,
        incarnation: u64,
    },
    Task {
        task: u64,
    },
    /// The agent should have said that it has taken it.
    #[serde(rename = "Untaken")]
    RequestTimeout {
        token: u64,
    },
    StartAgent,
    /// It has closed the link and should be gone.
    AgentDying {
        pid: u32,
    },
    /// Tell the clients of control sockets.
    #[serde(rename = "Tell")]
    StateReport,
    /// A client that does not read its last state.
    Linger {
        client: u64,
    },
    /// The end of a stop that the keeper carries out.
    NodeStop,
    /// The end of the time that the last steps of a run may take.
    Last,
    /// Look again whether the last output is written.
    LastOutput,
    /// Look again whether the next binary can take over.
    Upgrade,
    /// The new binary had its time to look at what it would take over.
    Check {
        pid: u32,
    },
}

#[derive(Debug)]
pub(crate) struct Deadlines {
    timer: OwnedFd,
    due: BTreeMap<(u64, u64), Deadline>,
    next_id: u64,
    armed: Option<u64>,
}

impl Deadlines {
    pub(crate) fn new() -> io::Result<Deadlines> {
        let timer = timerfd_create(
            TimerfdClockId::Boottime,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )?;
        Ok(Deadlines { timer, due: BTreeMap::new(), next_id: 0, armed: None })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }

    pub(crate) fn after(&mut self, delay: Duration, deadline: Deadline) {
        let delay = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        self.at(clock::boottime().saturating_add(delay), deadline);
    }

    /// `at`: CLOCK_BOOTTIME, ns.
    pub(crate) fn at(&mut self, at: u64, deadline: Deadline) {
        self.due.insert((at, self.next_id), deadline);
        self.next_id += 1;
    }

    /// Takes what is due.
    pub(crate) fn take_due(&mut self) -> Vec<Deadline> {
        let mut taken = Vec::new();
        if !self.due.is_empty() {
            let now = clock::boottime();
            while let Some(entry) = self.due.first_entry().filter(|entry| entry.key().0 <= now) {
                taken.push(entry.remove());
            }
        }
        taken
    }

    /// Sets the timer for the next one. Call before sleeping.
    pub(crate) fn arm(&mut self) {
        let next = self.due.first_key_value().map(|((at, _), _)| *at);
        if next == self.armed {
            return;
        }
        self.armed = next;
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value = next.map_or(never, |at| Timespec {
            tv_sec: i64::try_from(at / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(at % 1_000_000_000).unwrap_or(0),
        });
        let spec = Itimerspec { it_interval: never, it_value: value };
        // A valid time on a timer of ours is always accepted.
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &spec);
    }

    /// What is still to come, with its time.
    pub(crate) fn all(&self) -> Vec<(u64, Deadline)> {
        self.due.iter().map(|((at, _), deadline)| (*at, *deadline)).collect()
    }

    pub(crate) fn quiet(&mut self) {
        let _ = rustix::io::read(&self.timer, &mut [0u8; 8]);
        self.armed = None;
    }
}
