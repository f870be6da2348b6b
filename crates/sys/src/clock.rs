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

/// What [`boottime`] was at a time of the wall clock, as far as that has not jumped since.
#[must_use]
pub fn boottime_at(time: std::time::SystemTime) -> u64 {
    let age = time.elapsed().unwrap_or_default().as_nanos();
    boottime().saturating_sub(u64::try_from(age).unwrap_or(u64::MAX))
}

/// Since the epoch; may jump.
#[must_use]
pub fn wall() -> i64 {
    nanoseconds(ClockId::Realtime)
}
