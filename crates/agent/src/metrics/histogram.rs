//! Counts of values by their size.

/// Upper bounds for what takes microseconds to a second, in seconds.
pub(crate) const QUICK: &[f64] = &[0.000_05, 0.000_1, 0.000_5, 0.001, 0.005, 0.025, 0.1, 1.0];
/// Upper bounds for what asks others, in seconds.
pub(crate) const PATIENT: &[f64] = &[0.005, 0.025, 0.1, 0.5, 2.5, 10.0];

#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// Ascending; one more than these counts what is above all of them.
    pub bounds: &'static [f64],
    /// Each value once, in the first bucket that holds it.
    pub counts: Vec<u64>,
    pub sum: f64,
}

impl Histogram {
    pub(crate) fn new(bounds: &'static [f64]) -> Histogram {
        Histogram { bounds, counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    pub(crate) fn observe(&mut self, value: f64) {
        self.counts[self.bounds.partition_point(|bound| *bound < value)] += 1;
        self.sum += value;
    }

    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
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
