//! What is counted, for those who show it: a plain copy, taken at one moment.

use super::app::AppStatus;
use mainstay_core::{
    event::{Ending, EventName, Kind, RunEnd},
    exit::Exit,
    job::{Desired, Health, Phase, Verdict},
    name::Name,
    node::NodePhase,
};
use std::time::Duration;

/// Everything that can be counted inside the loop, at one moment.
#[derive(Debug, Clone)]
pub struct Measures {
    pub node: String,
    pub phase: NodePhase,
    pub agent_restarts: u64,
    pub journal_failed: bool,
    /// Those of the node itself.
    pub events: EventCounts,
    pub steps: Histogram,
    /// Of this agent: with an input, or with a question.
    pub longest_step: Duration,
    pub lateness: Histogram,
    pub jobs: Vec<JobMeasures>,
    pub watches: Vec<WatchMeasures>,
    /// Of the fleet, if the node belongs to one.
    pub apps: Vec<AppStatus>,
    /// Show what ContainerPilot showed, too.
    pub containerpilot: bool,
}

#[derive(Debug, Clone)]
pub struct JobMeasures {
    pub name: Name,
    pub phase: Phase,
    pub desired: Desired,
    pub health: Health,
    /// Maintenance is over, and its checks have not passed since.
    pub awaits_pass: bool,
    pub as_desired: bool,
    pub restarts: u64,
    /// When it entered its phase: wall clock, ns.
    pub since: i64,
    pub events: EventCounts,
    pub exits: Exits,
    pub checks: Vec<CheckMeasures>,
    /// Where others are told to find it.
    pub advertised: Option<(String, u16)>,
}

#[derive(Debug, Clone)]
pub struct WatchMeasures {
    pub name: Name,
    /// `None`: not answered yet.
    pub instances: Option<usize>,
    pub events: EventCounts,
}

#[derive(Debug, Clone)]
pub struct CheckMeasures {
    pub name: String,
    pub verdict: Verdict,
    pub passed: u64,
    pub failed: u64,
    /// `None`: nobody asks it, it tells.
    pub durations: Option<Histogram>,
}

/// How often each event was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventCounts([u32; EventName::ALL.len()]);

impl Default for EventCounts {
    fn default() -> EventCounts {
        EventCounts([0; EventName::ALL.len()])
    }
}

impl EventCounts {
    /// Those that were seen at all.
    pub fn iter(&self) -> impl Iterator<Item = (EventName, u64)> {
        let seen = EventName::ALL.iter().copied().zip(self.0.map(u64::from));
        seen.filter(|(_, count)| *count > 0)
    }

    pub fn note(&mut self, kind: &Kind) {
        let count = &mut self.0[kind.name() as usize];
        *count = count.saturating_add(1);
    }
}

/// How runs of a job have ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Exits {
    /// As expected.
    pub success: u64,
    /// With a code that is not expected.
    pub failure: u64,
    pub signal: u64,
    pub oom: u64,
    /// They never began.
    pub error: u64,
    /// Somebody wanted that.
    pub stopped: u64,
    /// The incarnation that was counted last.
    last: u64,
}

impl Exits {
    pub fn note(&mut self, kind: &Kind) {
        let Some(RunEnd { incarnation, exit, ending }) = kind.run_end() else { return };
        if incarnation == std::mem::replace(&mut self.last, incarnation) {
            return;
        }
        match (ending, exit) {
            (Ending::Success, _) => self.success += 1,
            (Ending::Stopped, _) => self.stopped += 1,
            (Ending::Failure, Exit::Code { .. }) => self.failure += 1,
            (Ending::Failure, Exit::Signal { oom: true, .. }) => self.oom += 1,
            (Ending::Failure, Exit::Signal { oom: false, .. }) => self.signal += 1,
            (Ending::Failure, Exit::Error { .. }) => self.error += 1,
        }
    }
}

/// Counts of values by their size.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// Ascending; one more than these counts what is above all of them.
    pub bounds: &'static [f64],
    /// Each value once, in the first bucket that holds it.
    pub counts: Vec<u64>,
    pub sum: f64,
}

impl Histogram {
    #[must_use]
    pub fn new(bounds: &'static [f64]) -> Histogram {
        Histogram { bounds, counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    pub fn observe(&mut self, value: f64) {
        self.counts[self.bounds.partition_point(|bound| *bound < value)] += 1;
        self.sum += value;
    }

    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// What is shown of a metric that users feed.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    Counter(f64),
    Gauge(f64),
    /// Each value once, in the first bucket that holds it; one more than there are bounds.
    Histogram {
        bounds: Vec<f64>,
        counts: Vec<u64>,
        sum: f64,
    },
    /// (share, value); not a number while there is no value.
    Summary {
        quantiles: Vec<(f64, f64)>,
        count: u64,
        sum: f64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_in_the_first_bucket_that_holds_it() {
        let mut histogram = Histogram::new(&[1.0, 2.0]);
        [0.5, 1.0, 1.5, 2.0, 7.0].into_iter().for_each(|value| histogram.observe(value));
        assert_eq!(histogram.counts, [2, 2, 1]);
        assert_eq!((histogram.count(), histogram.sum), (5, 12.0));
    }
}
