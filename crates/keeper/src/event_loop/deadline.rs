//! Deadlines. They stand still while the machine sleeps, so that nobody is late on waking; but a
//! lease runs out meanwhile (`Fence`).
//!
//! A deadline is a value, never cancelled: whoever handles it looks whether it still means
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
    StartSpare,
    /// A spare that was woken should have greeted.
    AgentSilent {
        pid: u32,
    },
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
    /// Say again what the service manager has not taken.
    ServiceManager,
    Watchdog,
    /// Look for those who died with another, whose signals merge.
    Dead,
    /// Look again whether the next binary can take over.
    Upgrade,
    /// The new binary had its time to look at what it would take over.
    Check {
        pid: u32,
    },
}

#[derive(Debug)]
pub(crate) struct Deadlines {
    /// CLOCK_MONOTONIC.
    waits: ClockQueue,
    /// CLOCK_BOOTTIME.
    leases: ClockQueue,
}

/// What is due by one clock.
#[derive(Debug)]
struct ClockQueue {
    clock: fn() -> u64,
    timer: OwnedFd,
    due: BTreeMap<(u64, u64), Deadline>,
    next_id: u64,
    armed: Option<u64>,
}

impl Deadlines {
    pub(crate) fn new() -> io::Result<Deadlines> {
        Ok(Deadlines {
            waits: ClockQueue::new(TimerfdClockId::Monotonic, clock::monotonic)?,
            leases: ClockQueue::new(TimerfdClockId::Boottime, clock::boottime)?,
        })
    }

    pub(crate) fn fds(&self) -> [BorrowedFd<'_>; 2] {
        [self.waits.timer.as_fd(), self.leases.timer.as_fd()]
    }

    pub(crate) fn after(&mut self, delay: Duration, deadline: Deadline) {
        let delay = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        let queue = self.queue(deadline);
        queue.add((queue.clock)().saturating_add(delay), deadline);
    }

    /// `at`: CLOCK_BOOTTIME, ns. What is no lease has as long as it has from now.
    pub(crate) fn at(&mut self, at: u64, deadline: Deadline) {
        match deadline.is_lease() {
            true => self.leases.add(at, deadline),
            false => {
                self.waits.add(translated(at, clock::boottime(), clock::monotonic()), deadline)
            }
        }
    }

    fn queue(&mut self, deadline: Deadline) -> &mut ClockQueue {
        match deadline.is_lease() {
            true => &mut self.leases,
            false => &mut self.waits,
        }
    }

    /// Takes what is due.
    pub(crate) fn take_due(&mut self) -> Vec<Deadline> {
        let mut taken = self.leases.take_due();
        taken.extend(self.waits.take_due());
        taken
    }

    /// Sets the timers for the next one. Call before sleeping.
    pub(crate) fn arm(&mut self) {
        self.waits.arm();
        self.leases.arm();
    }

    /// What is still to come, with its time by CLOCK_BOOTTIME as it is now.
    pub(crate) fn all(&self) -> Vec<(u64, Deadline)> {
        let (mono, boot) = (clock::monotonic(), clock::boottime());
        let waits = self.waits.all().map(|(at, it)| (translated(at, mono, boot), it));
        waits.chain(self.leases.all()).collect()
    }

    pub(crate) fn quiet(&mut self) {
        self.waits.quiet();
        self.leases.quiet();
    }
}

/// A time of one clock by another, given what both say now.
fn translated(at: u64, now: u64, other_now: u64) -> u64 {
    match at.checked_sub(now) {
        Some(left) => other_now.saturating_add(left),
        None => other_now.saturating_sub(now - at),
    }
}

impl Deadline {
    /// Others rely on its end, whatever this machine does meanwhile.
    fn is_lease(self) -> bool {
        matches!(self, Deadline::Fence { .. })
    }
}

impl ClockQueue {
    fn new(id: TimerfdClockId, clock: fn() -> u64) -> io::Result<ClockQueue> {
        let timer = timerfd_create(id, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        Ok(ClockQueue { clock, timer, due: BTreeMap::new(), next_id: 0, armed: None })
    }

    fn add(&mut self, at: u64, deadline: Deadline) {
        self.due.insert((at, self.next_id), deadline);
        self.next_id += 1;
    }

    fn take_due(&mut self) -> Vec<Deadline> {
        let mut taken = Vec::new();
        if !self.due.is_empty() {
            let now = (self.clock)();
            while let Some(entry) = self.due.first_entry().filter(|entry| entry.key().0 <= now) {
                taken.push(entry.remove());
            }
        }
        taken
    }

    fn arm(&mut self) {
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

    fn all(&self) -> impl Iterator<Item = (u64, Deadline)> {
        self.due.iter().map(|((at, _), deadline)| (*at, *deadline))
    }

    fn quiet(&mut self) {
        if rustix::io::read(&self.timer, &mut [0u8; 8]).is_ok() {
            self.armed = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const HOUR: u64 = 3_600_000_000_000;

    thread_local! {
        static MONO: Cell<u64> = const { Cell::new(HOUR) };
        static BOOT: Cell<u64> = const { Cell::new(2 * HOUR) };
    }

    #[test]
    fn a_machine_that_sleeps_lets_a_lease_run_out_and_nothing_else() {
        let mut deadlines = Deadlines::new().expect("timers");
        deadlines.waits.clock = || MONO.get();
        deadlines.leases.clock = || BOOT.get();
        let fence = Deadline::Fence { job: 1, incarnation: 1 };
        let task = Deadline::Task { task: 7 };
        deadlines.after(Duration::from_secs(60), task);
        deadlines.after(Duration::from_secs(60), fence);
        // It sleeps for three hours.
        BOOT.set(BOOT.get() + 3 * HOUR);
        assert_eq!(deadlines.take_due(), [fence]);
        MONO.set(MONO.get() + 61_000_000_000);
        assert_eq!(deadlines.take_due(), [task]);
    }

    #[test]
    fn a_wait_keeps_what_is_left_of_it_over_a_hand_over() {
        let mut deadlines = Deadlines::new().expect("timers");
        let task = Deadline::Task { task: 7 };
        deadlines.after(Duration::from_secs(60), task);
        deadlines.after(Duration::from_secs(60), Deadline::Fence { job: 1, incarnation: 1 });
        let mut next = Deadlines::new().expect("timers");
        deadlines.all().into_iter().for_each(|(at, deadline)| next.at(at, deadline));
        let (was, is) = (deadlines.waits.all().next(), next.waits.all().next());
        let (Some((was, _)), Some((is, _))) = (was, is) else { panic!("both wait") };
        assert!(was.abs_diff(is) < 1_000_000_000, "{was} {is}");
        assert!(deadlines.leases.all().eq(next.leases.all()));
        assert_eq!(translated(3, 5, 100), 98, "what is overdue stays so");
    }
}
