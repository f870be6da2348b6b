//! How long to wait, so that many who wait do not all come at once.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(10);

/// Between two tries: doubling, and different for everybody.
#[derive(Debug)]
pub(crate) struct Backoff {
    whose: String,
    tries: u32,
}

impl Backoff {
    pub(crate) fn new(whose: &str) -> Backoff {
        Backoff { whose: whose.to_owned(), tries: 0 }
    }

    /// The wait after another failure: between half and all of the doubled time.
    pub(crate) fn next(&mut self) -> Duration {
        let full = FIRST.saturating_mul(1 << self.tries.min(16)).min(LONGEST);
        self.tries = self.tries.saturating_add(1);
        full.mul_f64(0.5 + share(&(&self.whose, self.tries)) / 2.0)
    }

    pub(crate) fn reset(&mut self) {
        self.tries = 0;
    }
}

/// The first heartbeat: somewhere in the interval, always at the same place for the same service.
pub(crate) fn first_beat(id: &str, heartbeat: Duration) -> Duration {
    heartbeat.mul_f64(0.1 + 0.9 * share(&id))
}

/// From 0 to 1, the same for the same.
fn share(of: &impl Hash) -> f64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    f64::from(u32::try_from(hasher.finish() >> 32).expect("32 bits")) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_and_begin_anew_after_success() {
        let mut backoff = Backoff::new("web");
        let waits: Vec<Duration> = (0..40).map(|_| backoff.next()).collect();
        assert!(waits[0] >= FIRST / 2 && waits[0] <= FIRST, "{waits:?}");
        assert!(waits[3] > waits[0], "{waits:?}");
        assert!(waits.iter().all(|wait| *wait <= LONGEST), "{waits:?}");
        backoff.reset();
        assert!(backoff.next() <= FIRST);
    }

    #[test]
    fn first_heartbeats_are_spread_over_the_interval() {
        let heartbeat = Duration::from_secs(10);
        let mut tenths = [0; 10];
        for number in 0..500 {
            let beat = first_beat(&format!("web-{number}"), heartbeat);
            assert!(beat <= heartbeat);
            tenths[usize::try_from(beat.as_millis() / 1001).expect("small")] += 1;
        }
        assert!(tenths[1..].iter().all(|count| *count > 20), "{tenths:?}");
    }
}
