//! Time stamps: RFC 3339, UTC, nanoseconds (`2026-01-31T09:05:00.000000001Z`).

use std::fmt::Write;

/// As long as every stamp is.
pub const LENGTH: usize = 30;

/// Formats stamps; the date of the last second is kept, since output comes in bursts.
#[derive(Debug, Clone)]
pub struct Stamper {
    second: i64,
    text: [u8; LENGTH],
}

impl Default for Stamper {
    fn default() -> Stamper {
        Stamper { second: i64::MIN, text: *b"0000-00-00T00:00:00.000000000Z" }
    }
}

impl Stamper {
    /// `wall` is nanoseconds since the epoch.
    pub fn format(&mut self, wall: i64) -> &[u8; LENGTH] {
        let second = wall.div_euclid(1_000_000_000);
        if second != self.second {
            self.second = second;
            self.write_second(second);
        }
        write_digits(&mut self.text[20..29], wall.rem_euclid(1_000_000_000));
        &self.text
    }

    fn write_second(&mut self, second: i64) {
        let (year, month, day) = civil(second.div_euclid(86_400));
        let of_day = second.rem_euclid(86_400);
        let text = &mut self.text;
        write_digits(&mut text[0..4], year.clamp(0, 9999));
        write_digits(&mut text[5..7], month);
        write_digits(&mut text[8..10], day);
        write_digits(&mut text[11..13], of_day / 3600);
        write_digits(&mut text[14..16], of_day / 60 % 60);
        write_digits(&mut text[17..19], of_day % 60);
    }
}

/// One stamp as a string.
#[must_use]
pub fn rfc3339(wall: i64) -> String {
    let mut text = String::with_capacity(LENGTH);
    for byte in Stamper::default().format(wall) {
        text.push(char::from(*byte));
    }
    text
}

/// `20260131T090500Z`, for file names.
#[must_use]
pub fn compact(wall: i64) -> String {
    let second = wall.div_euclid(1_000_000_000);
    let (year, month, day) = civil(second.div_euclid(86_400));
    let of_day = second.rem_euclid(86_400);
    let mut text = String::with_capacity(16);
    let (hour, minute, rest) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    // Writing into a String cannot fail.
    let _ = write!(text, "{year:04}{month:02}{day:02}T{hour:02}{minute:02}{rest:02}Z");
    text
}

fn write_digits(place: &mut [u8], mut number: i64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
    }
}

/// Year, month and day of a day counted from 1970-01-01, in the proleptic Gregorian calendar.
/// Counts in eras of 400 years that begin on the first of March, so that leap days come last.
fn civil(day: i64) -> (i64, i64, i64) {
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day_of_month = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_instants_read_as_the_calendar_has_them() {
        for (wall, text) in [
            (0, "1970-01-01T00:00:00.000000000Z"),
            (951_782_400_000_000_001, "2000-02-29T00:00:00.000000001Z"),
            (1_709_251_199_999_999_999, "2024-02-29T23:59:59.999999999Z"),
            (4_107_542_399_000_000_000, "2100-02-28T23:59:59.000000000Z"),
            (4_107_542_400_000_000_000, "2100-03-01T00:00:00.000000000Z"),
            (-1_000_000_000, "1969-12-31T23:59:59.000000000Z"),
        ] {
            assert_eq!(rfc3339(wall), text);
        }
        assert_eq!(compact(951_782_400_000_000_001), "20000229T000000Z");
    }

    #[test]
    fn a_stamper_that_is_reused_follows_the_clock_both_ways() {
        let mut stamper = Stamper::default();
        for wall in [5_000_000_000, 5_000_000_001, 4_999_999_999, 6_000_000_000] {
            let text = stamper.format(wall).to_vec();
            assert_eq!(text, rfc3339(wall).into_bytes());
        }
    }
}
