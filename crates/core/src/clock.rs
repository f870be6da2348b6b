//! Time as an input.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The instant at which an input is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Now {
    /// What deadlines are made of: never jumps, and is the same for every agent of one boot.
    pub mono: Mono,
    /// Nanoseconds since the epoch: for time stamps only, it may jump.
    pub wall: i64,
}

/// Nanoseconds of CLOCK_MONOTONIC.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Mono(pub u64);

impl Mono {
    #[must_use]
    pub fn after(self, delay: Duration) -> Mono {
        Mono(self.0.saturating_add(u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX)))
    }

    #[must_use]
    pub fn before(self, time: Duration) -> Mono {
        Mono(self.0.saturating_sub(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
    }

    #[must_use]
    pub fn since(self, earlier: Mono) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}
