//! Cron: turns expressions into the next moment on the wall clock.
//!
//! That clock may jump. While something is armed it is looked at once a minute at least; set back,
//! everything armed is worked out anew; set forward, what was passed over is due once.

use crate::clock;
use croner::Cron as Expression;
use jiff::{Timestamp, tz::TimeZone};
use mainstay_core::{name::Name, plan::Cron};
use std::{
    collections::{BTreeSet, HashMap},
    str::FromStr,
    time::Duration,
};
use tokio::time::sleep;

/// How late a jump of the clock is seen.
const LOOK: Duration = Duration::from_secs(60);
/// Less than this is no jump, only a clock being kept right.
const DRIFT: i64 = 2_000_000_000;

#[derive(Debug, Default)]
pub(crate) struct Crons {
    armed: HashMap<Name, Armed>,
    /// When each of them is due, the next one first.
    due: BTreeSet<(i64, Name)>,
    /// Wall minus monotonic clock when something was last armed or looked at, in nanoseconds.
    offset: i64,
}

#[derive(Debug)]
struct Armed {
    cron: Cron,
    /// Nanoseconds since the epoch.
    at: i64,
}

/// What both clocks say, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clocks {
    pub(crate) mono: i64,
    pub(crate) wall: i64,
}

impl Clocks {
    pub(crate) fn now() -> Clocks {
        let now = clock::now();
        Clocks { mono: i64::try_from(now.mono.0).unwrap_or(i64::MAX), wall: now.wall }
    }

    fn offset(self) -> i64 {
        self.wall.saturating_sub(self.mono)
    }
}

impl Crons {
    /// Due at the next moment after now that the expression names.
    pub(crate) fn arm(&mut self, job: &Name, cron: &Cron, now: Clocks) {
        if self.armed.is_empty() {
            self.offset = now.offset();
        }
        self.forget(job);
        match next(cron, now.wall) {
            Ok(at) => {
                self.armed.insert(job.clone(), Armed { cron: cron.clone(), at });
                self.due.insert((at, job.clone()));
            }
            Err(error) => {
                tracing::error!("{job}: '{}' is never due: {error}", cron.expression);
            }
        }
    }

    pub(crate) fn forget(&mut self, job: &Name) {
        if let Some(armed) = self.armed.remove(job) {
            self.due.remove(&(armed.at, job.clone()));
        }
    }

    /// Takes out whatever is due.
    pub(crate) fn take_due(&mut self, now: Clocks) -> Vec<Name> {
        if now.offset() < self.offset.saturating_sub(DRIFT) {
            for (job, armed) in &mut self.armed {
                armed.at = next(&armed.cron, now.wall).unwrap_or(i64::MAX);
                tracing::info!("{job}: the clock was set back; its next time is worked out anew");
            }
            self.due = self.armed.iter().map(|(job, it)| (it.at, job.clone())).collect();
        }
        self.offset = now.offset();
        let mut due = Vec::new();
        while let Some((_, job)) = self.due.first().filter(|(at, _)| *at <= now.wall).cloned() {
            self.forget(&job);
            due.push(job);
        }
        due
    }

    /// Returns when one may be due; never if none is armed. May be dropped at any time.
    pub(crate) async fn due(&self) {
        match self.due.first() {
            Some((at, _)) => {
                let left = at.saturating_sub(Clocks::now().wall);
                let left = Duration::from_nanos(u64::try_from(left).unwrap_or(0));
                sleep(left.min(LOOK)).await;
            }
            None => std::future::pending().await,
        }
    }
}

pub(crate) fn next(cron: &Cron, after: i64) -> Result<i64, String> {
    let zone = match &cron.tz {
        Some(name) => TimeZone::get(name).map_err(|error| error.to_string())?,
        None => TimeZone::system(),
    };
    let expression = Expression::from_str(&cron.expression).map_err(|error| error.to_string())?;
    let after = Timestamp::from_nanosecond(after.into()).map_err(|error| error.to_string())?;
    let found = expression
        .find_next_occurrence(&after.to_zoned(zone), false)
        .map_err(|error| error.to_string())?;
    i64::try_from(found.timestamp().as_nanosecond()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn wall(text: &str) -> i64 {
        let time: Timestamp = text.parse().expect("a time");
        i64::try_from(time.as_nanosecond()).expect("this century")
    }

    fn clocks(mono: i64, wall: i64) -> Clocks {
        Clocks { mono, wall }
    }

    fn every(expression: &str, tz: &str) -> Cron {
        Cron { expression: expression.to_owned(), tz: Some(tz.to_owned()) }
    }

    fn job() -> Name {
        Name::new("job").expect("a name")
    }

    #[test]
    fn it_is_due_at_its_time_in_its_zone_and_once() {
        let mut crons = Crons::default();
        let noon = wall("2026-07-01T12:00:00Z");
        crons.arm(&job(), &every("0 3 * * *", "Europe/Stockholm"), clocks(0, noon));
        let three = wall("2026-07-02T01:00:00Z") - noon;
        assert!(crons.take_due(clocks(three - SECOND, noon + three - SECOND)).is_empty());
        assert_eq!(crons.take_due(clocks(three, noon + three)), [job()]);
        assert!(crons.take_due(clocks(three * 2, noon + three * 2)).is_empty());
    }

    #[test]
    fn a_clock_set_forward_makes_it_due_once() {
        let mut crons = Crons::default();
        let noon = wall("2026-07-01T12:00:00Z");
        crons.arm(&job(), &every("*/10 * * * *", "UTC"), clocks(0, noon));
        let late = wall("2026-07-01T15:05:00Z");
        assert_eq!(crons.take_due(clocks(60 * SECOND, late)), [job()]);
    }

    #[test]
    fn a_clock_set_back_does_not_keep_it_waiting_for_the_old_time() {
        let mut crons = Crons::default();
        let noon = wall("2026-07-01T12:00:00Z");
        crons.arm(&job(), &every("*/10 * * * *", "UTC"), clocks(0, noon));
        let early = wall("2026-07-01T09:01:00Z");
        assert!(crons.take_due(clocks(60 * SECOND, early)).is_empty());
        let due = wall("2026-07-01T09:10:00Z");
        assert_eq!(crons.take_due(clocks(600 * SECOND, due)), [job()]);
    }

    #[test]
    fn an_expression_that_never_comes_is_never_due() {
        let mut crons = Crons::default();
        crons.arm(&job(), &every("0 0 30 2 *", "UTC"), clocks(0, 0));
        assert!(crons.take_due(clocks(0, i64::MAX / 2)).is_empty());
    }
}
