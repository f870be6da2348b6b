//! Durations as Go reads them (`1h30m`, `1.5s`, `100ms`, `-1s`, units in any order), and as they are
//! written here.

use std::time::Duration;

const UNITS: [(&str, f64); 9] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("μs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("h", 3600e9),
    // Nobody else has it: Go stops at hours.
    ("", f64::NAN),
];
/// A century, as for every duration here.
const LONGEST: f64 = 36_500.0 * 86_400.0 * 1e9;

/// Nanoseconds; `None`: not a duration.
pub(super) fn parse(text: &str) -> Option<f64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0.0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(end);
        if !number.bytes().any(|b| b.is_ascii_digit()) {
            return None;
        }
        let number: f64 = number.parse().ok()?;
        let end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        let (_, nanos) = UNITS.iter().find(|(name, _)| *name == unit && !name.is_empty())?;
        total += number * nanos;
        rest = tail;
    }
    Some(sign * total)
}

/// As a duration, rounded up to milliseconds; `None`: negative, or longer than a century.
pub(super) fn from_nanos(nanos: f64) -> Option<Duration> {
    let fits = nanos.is_finite() && (0.0..=LONGEST).contains(&nanos);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it fits")]
    fits.then(|| Duration::from_millis((nanos / 1e6).ceil() as u64))
}

/// `1m30s`, in quotes.
pub(super) fn written(duration: Duration) -> String {
    format!("\"{}\"", mainstay_config::duration::written(duration))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, nanos) in [
            ("1h30m", 5_400e9),
            ("1.5s", 1.5e9),
            (".5s", 0.5e9),
            ("1.s", 1e9),
            ("100ms", 1e8),
            ("1s1h", 3_601e9),
            ("-2s", -2e9),
            ("+2s", 2e9),
            ("0", 0.0),
            ("10us", 1e4),
            ("10µs", 1e4),
            ("7ns", 7.0),
        ] {
            assert_eq!(parse(text), Some(nanos), "{text}");
        }
        for text in ["", "-", "s", ".s", "1", "1d", "1 s", "1S", "1.2.3s", "1s 2m", "x"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        for millis in [0, 1, 999, 1000, 61_500, 3_600_000, 90_061_001] {
            let duration = Duration::from_millis(millis);
            let text = written(duration);
            assert_eq!(
                mainstay_config::duration::parse(text.trim_matches('"')),
                Some(duration),
                "{text}"
            );
        }
        assert_eq!(from_nanos(1.0), Some(Duration::from_millis(1)));
        assert_eq!(from_nanos(-1.0), None);
        assert_eq!(from_nanos(f64::INFINITY), None);
    }
}
