//! How long to wait, so that many who wait do not all come at once.

use mainstay_net::{Backoff, share};
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(10);

/// Between two tries at a catalogue.
pub(crate) fn between_tries(whose: &str) -> Backoff {
    Backoff::new(whose, FIRST, LONGEST)
}

/// The first heartbeat: somewhere in the interval, always at the same place for the same service.
pub(crate) fn first_beat(id: &str, heartbeat: Duration) -> Duration {
    heartbeat.mul_f64(0.1 + 0.9 * share(&id))
}

#[cfg(test)]
mod tests {
    use super::*;

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
