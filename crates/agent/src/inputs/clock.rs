//! The clocks that inputs are stamped with.

use mainstay_core::clock::{Mono, Now};
use mainstay_sys::clock;

pub(crate) fn now() -> Now {
    Now { mono: mono(), wall: clock::wall() }
}

/// Raw CLOCK_MONOTONIC, so that a deadline means the same to the next agent.
pub(crate) fn mono() -> Mono {
    Mono(clock::monotonic())
}
