//! How long to leave a server alone that is in trouble, so that many who wait do not come at once.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

/// The waits between tries: doubling, and different for everybody.
#[derive(Debug)]
pub struct Backoff {
    whose: String,
    first: Duration,
    longest: Duration,
    tries: u32,
}

impl Backoff {
    /// `whose` tells apart those who would come at once otherwise.
    #[must_use]
    pub fn new(whose: impl Into<String>, first: Duration, longest: Duration) -> Backoff {
        Backoff { whose: whose.into(), first, longest, tries: 0 }
    }

    /// The wait after another failure: between half and all of the doubled time.
    pub fn next_wait(&mut self) -> Duration {
        let full = self.first.saturating_mul(1 << self.tries.min(16)).min(self.longest);
        self.tries = self.tries.saturating_add(1);
        full.mul_f64(0.5 + share(&(&self.whose, self.tries)) / 2.0)
    }

    /// After a success.
    pub fn reset(&mut self) {
        self.tries = 0;
    }
}

/// From 0 to 1, the same for the same.
#[must_use]
pub fn share(of: &impl Hash) -> f64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    f64::from(u32::try_from(hasher.finish() >> 32).expect("32 bits")) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_and_begin_anew_after_success() {
        let (first, longest) = (Duration::from_secs(1), Duration::from_secs(300));
        let mut backoff = Backoff::new("web", first, longest);
        let waits: Vec<Duration> = (0..40).map(|_| backoff.next_wait()).collect();
        assert!(waits[0] >= first / 2 && waits[0] <= first, "{waits:?}");
        assert!(waits[3] > waits[0] && waits.iter().all(|wait| *wait <= longest), "{waits:?}");
        assert!(waits[39] >= longest / 2, "{waits:?}");
        let other = Backoff::new("other", first, longest).next_wait();
        assert_ne!(waits[0], other, "not all at once");
        backoff.reset();
        assert!(backoff.next_wait() <= first);
    }
}
