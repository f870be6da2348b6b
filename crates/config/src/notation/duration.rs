//! Durations as people write them: `90s`, `1h30m`, `200ms`, `1.5s`, `7d`, or a number of seconds.
//!
//! Units go from large to small and each comes once, so that a typing error is found rather than
//! added up.

use std::time::Duration;

const UNITS: [(&str, u32); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];
/// A century: anything longer is a mistake, and timers may add durations without overflow.
const LONGEST: Duration = Duration::from_secs(36_500 * 86_400);

/// `None`: not a duration.
pub fn parse(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = Duration::ZERO;
    let mut units = UNITS.iter();
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let (_, millis) = units.find(|(name, _)| *name == unit)?;
        total = total.checked_add(amount(number, *millis)?)?;
        rest = tail;
    }
    (!text.is_empty() && total <= LONGEST).then_some(total)
}

/// A number of seconds, not negative.
pub fn seconds(number: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(number).ok().filter(|it| *it <= LONGEST)
}

/// `1m30s`: in milliseconds what [`parse`] reads as the same.
#[must_use]
pub fn written(duration: Duration) -> String {
    let mut millis = duration.as_millis();
    let mut text = String::new();
    for (unit, size) in UNITS {
        let size = u128::from(size);
        if millis >= size {
            text.push_str(&format!("{}{unit}", millis / size));
            millis %= size;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

fn amount(number: &str, unit: u32) -> Option<Duration> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    // Whole units are counted exactly; only a fraction goes through floating point.
    let whole = Duration::from_millis(whole.parse::<u64>().ok()?.checked_mul(u64::from(unit))?);
    let part = format!("0.{fraction}").parse::<f64>().ok()? * f64::from(unit) / 1000.0;
    whole.checked_add(Duration::try_from_secs_f64(part).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_written() {
        for (text, millis) in [
            ("90s", 90_000),
            ("1h30m", 5_400_000),
            ("200ms", 200),
            ("1.5s", 1500),
            ("7d", 604_800_000),
            ("0s", 0),
            ("1m0.25s", 60_250),
            ("1s5ms", 1005),
        ] {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_duration_is_refused() {
        for text in [
            "",
            "5",
            "s",
            "-1s",
            "+1s",
            "1 s",
            " 1s",
            "1s ",
            "1S",
            "1.s",
            ".5s",
            "1..5s",
            "1e3s",
            "1s1h",
            "1s1s",
            "1w",
            "1,5s",
            "99999999999999999999d",
            "36501d",
            "१s",
            "1ms1s",
            "1µs",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn numbers_of_seconds_are_neither_negative_nor_endless() {
        assert_eq!(seconds(1.5), Some(Duration::from_millis(1500)));
        for number in [-1.0, f64::NAN, f64::INFINITY, 1e300, 1e12] {
            assert_eq!(seconds(number), None, "{number}");
        }
    }
}
