//! What the kernel says about processes: execs and exits as they happen, and the tree of a peer.

pub(crate) mod connector;
pub(crate) mod poll;
pub(crate) mod tree;
pub(crate) mod watch;

use rustix::process::Pid;
use rustix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC, the clock that the kernel stamps its process events with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant(u64);

impl Instant {
    pub(crate) fn now() -> Instant {
        let now = clock_gettime(ClockId::Monotonic);
        Instant(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
    }

    pub(crate) fn from_nanos(nanos: u64) -> Instant {
        Instant(nanos)
    }

    pub(crate) fn seconds_since(self, earlier: Instant) -> f64 {
        self.0.saturating_sub(earlier.0) as f64 / 1e9
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    /// The process has become another program; which one is in /proc/PID/comm.
    Exec(Pid, Instant),
    Exit(Pid, Instant),
}
