//! How often a job may come back by itself, and how long it waits each time.
//!
//! Without `delay`: at once after a stable run, else 200 ms doubling to `max_delay`. With `delay`:
//! that long, doubling to `max_delay`; a stable run begins again at `delay`, and zero stays zero.
//!
//! `limit` counts restarts, for ever or `within` a sliding window. The window is exact up to
//! [`EXACT`] restarts; a larger limit is counted in slots of a 64th of the window, so that neither
//! memory nor journal grows with a number somebody wrote into a file.
//!
//! `start_retries` counts starts that failed in a row: the first that succeeds is a new beginning.

use crate::{clock::Mono, plan::Restart};
use serde::{Deserialize, Serialize};
use std::{collections::VecDeque, time::Duration};

/// A process that was up for so long is stable: its end is a new trouble, not the old one.
pub(crate) const STABLE: Duration = Duration::from_secs(10);
const FIRST_DELAY: Duration = Duration::from_millis(200);
const EXACT: u32 = 64;

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Budget {
    /// Delayed restarts since the last stable run.
    doublings: u32,
    spent: Spent,
    /// Starts in a row that failed.
    #[serde(default)]
    failed_starts: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Spent {
    Ever(u32),
    /// Oldest first: when, and how many.
    Lately(VecDeque<(Mono, u32)>),
}

impl Default for Spent {
    fn default() -> Spent {
        Spent::Ever(0)
    }
}

impl Budget {
    /// A run is over that had started or not; `false`: it is not to be tried again.
    pub(super) fn note_start(&mut self, retries: Option<u32>, started: bool) -> bool {
        self.failed_starts = if started { 0 } else { self.failed_starts.saturating_add(1) };
        retries.is_none_or(|retries| self.failed_starts <= retries)
    }

    /// One more restart: how long to wait for it, or `None` when there is none left.
    pub(super) fn spend(&mut self, policy: &Restart, now: Mono, stable: bool) -> Option<Duration> {
        if let Some(limit) = policy.limit
            && !self.spent.one_more(limit, policy.within, now)
        {
            return None;
        }
        Some(self.next_delay(policy, stable))
    }

    fn next_delay(&mut self, policy: &Restart, stable: bool) -> Duration {
        if stable {
            self.doublings = 0;
        }
        let (first, longest) = match policy.delay {
            None if stable => return Duration::ZERO,
            None => (FIRST_DELAY, policy.max_delay),
            Some(delay) => (delay, policy.max_delay.max(delay)),
        };
        let factor = 1u32.checked_shl(self.doublings).unwrap_or(u32::MAX);
        let delay = first.saturating_mul(factor).min(longest);
        if delay < longest {
            self.doublings += 1;
        }
        delay
    }
}

impl Spent {
    /// Counts one more if the limit allows it.
    fn one_more(&mut self, limit: u32, within: Option<Duration>, now: Mono) -> bool {
        match within {
            None => self.one_more_ever(limit),
            Some(window) => self.one_more_lately(limit, window, now),
        }
    }

    fn one_more_ever(&mut self, limit: u32) -> bool {
        let spent = match self {
            Spent::Ever(spent) => *spent,
            Spent::Lately(times) => total(times),
        };
        let allowed = spent < limit;
        *self = Spent::Ever(if allowed { spent + 1 } else { spent });
        allowed
    }

    fn one_more_lately(&mut self, limit: u32, window: Duration, now: Mono) -> bool {
        let mut times = match self {
            // The plan had no window before: what was spent then has no time.
            Spent::Ever(_) => VecDeque::new(),
            Spent::Lately(times) => std::mem::take(times),
        };
        while times.front().is_some_and(|(at, _)| now.since(*at) >= window) {
            times.pop_front();
        }
        let allowed = total(&times) < limit;
        if allowed {
            let slot = if limit > EXACT { window / EXACT } else { Duration::ZERO };
            match times.back_mut() {
                Some((at, count)) if now.since(*at) < slot => *count += 1,
                Some(_) | None => times.push_back((now, 1)),
            }
        }
        *self = Spent::Lately(times);
        allowed
    }
}

fn total(times: &VecDeque<(Mono, u32)>) -> u32 {
    times.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::RestartOn;

    fn policy() -> Restart {
        Restart::on(RestartOn::Failure)
    }

    fn at(seconds: u64) -> Mono {
        Mono(seconds * 1_000_000_000)
    }

    fn delays(policy: &Restart, runs: &[bool]) -> Vec<u128> {
        let mut budget = Budget::default();
        let delay = |stable: &bool| budget.spend(policy, at(0), *stable).expect("no limit");
        runs.iter().map(delay).map(|delay| delay.as_millis()).collect()
    }

    #[test]
    fn by_default_only_a_stable_run_is_followed_at_once() {
        let (short, stable) = (false, true);
        assert_eq!(delays(&policy(), &[short, short, short]), [200, 400, 800]);
        assert_eq!(
            delays(&policy(), &[stable, short, short, stable, short]),
            [0, 200, 400, 0, 200]
        );
    }

    #[test]
    fn the_default_delay_ends_at_thirty_seconds() {
        assert_eq!(delays(&policy(), &[false; 40])[7..11], [25_600, 30_000, 30_000, 30_000]);
        assert_eq!(delays(&policy(), &[false; 400]).last(), Some(&30_000));
    }

    #[test]
    fn a_given_delay_holds_even_after_a_stable_run() {
        let delay = Some(Duration::from_secs(1));
        let policy = Restart { delay, max_delay: Duration::from_secs(3), ..policy() };
        assert_eq!(
            delays(&policy, &[true, false, false, true, false]),
            [1000, 2000, 3000, 1000, 2000]
        );
    }

    #[test]
    fn a_delay_longer_than_the_longest_is_kept_and_zero_stays_zero() {
        let long = Restart { delay: Some(Duration::from_secs(60)), ..policy() };
        assert_eq!(delays(&long, &[false, false]), [60_000, 60_000]);
        let none = Restart { delay: Some(Duration::ZERO), ..policy() };
        assert_eq!(delays(&none, &[false; 50]), [0; 50]);
    }

    #[test]
    fn a_window_forgets_what_is_older() {
        let within = Some(Duration::from_secs(10));
        let policy = Restart { limit: Some(2), within, ..policy() };
        let mut budget = Budget::default();
        let mut spend = |seconds| budget.spend(&policy, at(seconds), false).is_some();
        assert_eq!([spend(0), spend(5), spend(9)], [true, true, false]);
        assert_eq!([spend(10), spend(11), spend(15)], [true, false, true]);
    }

    #[test]
    fn a_huge_limit_is_counted_in_bounded_memory() {
        let within = Some(Duration::from_secs(640));
        let policy = Restart { limit: Some(1_000_000), within, ..policy() };
        let mut budget = Budget::default();
        for second in 0..10_000 {
            assert!(budget.spend(&policy, at(second), false).is_some());
        }
        let Spent::Lately(times) = &budget.spent else { panic!("a window") };
        assert!(times.len() <= 65, "{}", times.len());
        assert!((630..=640).contains(&total(times)), "{}", total(times));
    }

    #[test]
    fn a_limit_of_zero_allows_no_restart() {
        for within in [None, Some(Duration::from_secs(1))] {
            let policy = Restart { limit: Some(0), within, ..policy() };
            assert_eq!(Budget::default().spend(&policy, at(0), true), None);
        }
    }
}
