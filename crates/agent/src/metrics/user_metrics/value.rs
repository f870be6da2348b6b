//! The value of one metric.
//!
//! A summary keeps the values of the last ten minutes, at most a thousand of them: its quantiles
//! are exact for what it keeps, and it never grows.

use mainstay_core::plan::MetricKind;
use mainstay_wire::api::Reading;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Nanoseconds for which a value counts in a summary.
const WINDOW: u64 = 600 * 1_000_000_000;
const MOST: usize = 1000;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Value {
    Counter(f64),
    Gauge(f64),
    Histogram {
        bounds: Vec<f64>,
        counts: Vec<u64>,
        sum: f64,
    },
    Summary {
        count: u64,
        sum: f64,
        /// With when they came (CLOCK_MONOTONIC, ns), oldest first.
        recent: VecDeque<(u64, f64)>,
    },
}

impl Value {
    pub(super) fn new(kind: &MetricKind) -> Value {
        match kind {
            MetricKind::Counter => Value::Counter(0.0),
            MetricKind::Gauge => Value::Gauge(0.0),
            MetricKind::Histogram { buckets } => Value::Histogram {
                bounds: buckets.clone(),
                counts: vec![0; buckets.len() + 1],
                sum: 0.0,
            },
            MetricKind::Summary { .. } => {
                Value::Summary { count: 0, sum: 0.0, recent: VecDeque::new() }
            }
        }
    }

    /// Whether it can go on as a value of this kind.
    pub(super) fn fits(&self, kind: &MetricKind) -> bool {
        match (self, kind) {
            (Value::Counter(_), MetricKind::Counter)
            | (Value::Gauge(_), MetricKind::Gauge)
            | (Value::Summary { .. }, MetricKind::Summary { .. }) => true,
            (Value::Histogram { bounds, counts, .. }, MetricKind::Histogram { buckets }) => {
                bounds == buckets && counts.len() == buckets.len() + 1
            }
            (
                Value::Counter(_)
                | Value::Gauge(_)
                | Value::Histogram { .. }
                | Value::Summary { .. },
                MetricKind::Counter
                | MetricKind::Gauge
                | MetricKind::Histogram { .. }
                | MetricKind::Summary { .. },
            ) => false,
        }
    }

    pub(super) fn take(&mut self, value: f64, now: u64) {
        match self {
            Value::Counter(total) => add(total, value),
            Value::Gauge(last) => *last = value,
            Value::Histogram { bounds, counts, sum } => {
                counts[bounds.partition_point(|bound| *bound < value)] += 1;
                add(sum, value);
            }
            Value::Summary { count, sum, recent } => {
                *count += 1;
                add(sum, value);
                forget(recent, now);
                if recent.len() == MOST {
                    recent.pop_front();
                }
                recent.push_back((now, value));
            }
        }
    }

    pub(super) fn read(&mut self, kind: &MetricKind, now: u64) -> Reading {
        match self {
            Value::Counter(total) => Reading::Counter(*total),
            Value::Gauge(last) => Reading::Gauge(*last),
            Value::Histogram { bounds, counts, sum } => {
                Reading::Histogram { bounds: bounds.clone(), counts: counts.clone(), sum: *sum }
            }
            Value::Summary { count, sum, recent } => {
                forget(recent, now);
                let mut sorted: Vec<f64> = recent.iter().map(|(_, value)| *value).collect();
                sorted.sort_by(f64::total_cmp);
                let wanted: &[f64] = match kind {
                    MetricKind::Summary { quantiles } => quantiles,
                    MetricKind::Counter | MetricKind::Gauge | MetricKind::Histogram { .. } => &[],
                };
                let quantiles = wanted.iter().map(|share| (*share, quantile(&sorted, *share)));
                Reading::Summary { quantiles: quantiles.collect(), count: *count, sum: *sum }
            }
        }
    }
}

/// Stays finite: what is not cannot be written down and read again.
fn add(total: &mut f64, value: f64) {
    *total = (*total + value).clamp(f64::MIN, f64::MAX);
}

fn forget(recent: &mut VecDeque<(u64, f64)>, now: u64) {
    while recent.front().is_some_and(|(came, _)| now.saturating_sub(*came) > WINDOW) {
        recent.pop_front();
    }
}

/// The smallest value that at least this share of them does not exceed.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_last_ten_minutes() {
        let kind = MetricKind::Summary { quantiles: vec![0.0, 0.5, 0.9, 1.0] };
        let mut value = Value::new(&kind);
        value.take(1000.0, 1);
        for n in 1..=10u8 {
            value.take(f64::from(n), WINDOW + 1 + u64::from(n));
        }
        let Reading::Summary { quantiles, count, sum } = value.read(&kind, WINDOW + 20) else {
            panic!("a summary")
        };
        assert_eq!(quantiles, [(0.0, 1.0), (0.5, 5.0), (0.9, 9.0), (1.0, 10.0)]);
        assert_eq!((count, sum), (11, 1055.0));
    }

    #[test]
    fn a_summary_does_not_grow() {
        let kind = MetricKind::Summary { quantiles: vec![0.5] };
        let mut value = Value::new(&kind);
        (0..3 * MOST as u64).for_each(|n| value.take(1.0, n));
        let Value::Summary { recent, count, .. } = &value else { panic!("a summary") };
        assert_eq!((recent.len(), *count), (MOST, 3 * MOST as u64));
    }
}
