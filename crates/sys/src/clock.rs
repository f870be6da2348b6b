//! The three clocks.

use rustix::time::{ClockId, clock_gettime};

fn nanoseconds(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)
}

/// Never jumps, stands still while the machine sleeps.
#[must_use]
pub fn monotonic() -> u64 {
    u64::try_from(nanoseconds(ClockId::Monotonic)).unwrap_or(0)
}

/// Never jumps, goes on while the machine sleeps: what leases are measured with.
#[must_use]
pub fn boottime() -> u64 {
    u64::try_from(nanoseconds(ClockId::Boottime)).unwrap_or(0)
}

/// Since the epoch; may jump.
#[must_use]
pub fn wall() -> i64 {
    nanoseconds(ClockId::Realtime)
}
