//! The clocks that inputs are stamped with.

use mainstay_core::clock::{Mono, Now};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Raw CLOCK_MONOTONIC, so that a deadline means the same to the next agent.
pub(crate) fn now() -> Now {
    let wall = clock_gettime(ClockId::Realtime);
    Now { mono: mono(), wall: wall.tv_sec.saturating_mul(1_000_000_000) + wall.tv_nsec }
}

pub(crate) fn mono() -> Mono {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
    let nanos = tv_sec.saturating_mul(1_000_000_000) + tv_nsec;
    Mono(u64::try_from(nanos).expect("CLOCK_MONOTONIC starts at zero"))
}
