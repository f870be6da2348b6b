//! Many measurements of one thing.

/// The value below which `percent` of the samples lie; None without samples.
pub(crate) fn percentile(samples: &[f64], percent: f64) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let rank = (percent / 100.0 * last as f64).round() as usize;
    sorted.get(rank.min(last)).copied()
}

pub(crate) fn median(samples: &[f64]) -> Option<f64> {
    percentile(samples, 50.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_samples() {
        let samples: Vec<f64> = (1..=101).map(f64::from).collect();
        assert_eq!(percentile(&samples, 50.0), Some(51.0));
        assert_eq!(percentile(&samples, 99.0), Some(100.0));
        assert_eq!(percentile(&[], 50.0), None);
    }
}
