//! How long to leave a server alone that is in trouble, so that many who wait do not come at once.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(300);

/// Doubling, and different for everybody.
#[derive(Debug)]
pub(super) struct Backoff {
    whose: String,
    tries: u32,
}

impl Backoff {
    pub(super) fn new(profile: &str) -> Backoff {
        let node = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Backoff { whose: format!("{node} {profile}"), tries: 0 }
    }

    /// After another failure: between half and all of the doubled time.
    pub(super) fn next(&mut self) -> Duration {
        let full = FIRST.saturating_mul(1 << self.tries.min(16)).min(LONGEST);
        self.tries = self.tries.saturating_add(1);
        let mut hasher = DefaultHasher::new();
        (&self.whose, self.tries).hash(&mut hasher);
        let share = f64::from((hasher.finish() >> 32) as u32) / f64::from(u32::MAX);
        full.mul_f64(0.5 + share / 2.0)
    }

    pub(super) fn reset(&mut self) {
        self.tries = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_and_begin_anew_after_success() {
        let mut backoff = Backoff::new("web");
        let waits: Vec<Duration> = (0..40).map(|_| backoff.next()).collect();
        assert!(waits[0] >= FIRST / 2 && waits[0] <= FIRST, "{waits:?}");
        assert!(waits[3] > waits[0] && waits.iter().all(|wait| *wait <= LONGEST), "{waits:?}");
        assert_ne!(waits[0], Backoff::new("other").next(), "not all at once");
        backoff.reset();
        assert!(backoff.next() <= FIRST);
    }
}
