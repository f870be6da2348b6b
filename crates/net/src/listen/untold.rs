//! What happens too often to be told each time.

use std::{
    fmt,
    time::{Duration, Instant},
};

/// After one that was told, others are only counted for so long.
const QUIET: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(super) struct Untold {
    told: Option<Instant>,
    count: u64,
}

/// How many were not told before one that is. Shown as what is added to its text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Before(u64);

impl fmt::Display for Before {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            count => write!(f, " ({count} others before it)"),
        }
    }
}

impl Untold {
    /// `None`: this one is not told either.
    pub(super) fn next(&mut self, now: Instant) -> Option<Before> {
        if self.told.is_some_and(|told| now.saturating_duration_since(told) < QUIET) {
            self.count += 1;
            return None;
        }
        self.told = Some(now);
        Some(Before(std::mem::take(&mut self.count)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_told_once_and_then_counted() {
        let (mut untold, begin) = (Untold::default(), Instant::now());
        assert_eq!(untold.next(begin), Some(Before(0)));
        for _ in 0..1000 {
            assert_eq!(untold.next(begin + QUIET / 2), None);
        }
        assert_eq!(untold.next(begin + QUIET), Some(Before(1000)));
        assert_eq!(untold.next(begin + 3 * QUIET), Some(Before(0)));
    }
}
