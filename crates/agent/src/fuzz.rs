//! Readers of what the disk, servers and the configuration say, for fuzzing.

use crate::{checks, inputs::cron, journal};
use mainstay_core::plan::Cron;

/// Reads a journal whose lines have no checksums yet; how much of it counts.
#[must_use]
pub fn journal(lines: &[u8]) -> Option<usize> {
    journal::fuzz_read(lines)
}

/// A journal in that form.
#[must_use]
pub fn sample_journal() -> Vec<u8> {
    journal::fuzz_sample()
}

/// What an http check makes of this answer: whether it passes, and what it says.
#[must_use]
pub fn http(answer: &[u8]) -> (bool, String) {
    checks::fuzz_http(answer)
}

/// The next time after `after` (ns since the epoch) that an expression names, in UTC.
pub fn cron(expression: &str, after: i64) -> Result<i64, String> {
    cron::next(&Cron { expression: expression.to_owned(), tz: Some("UTC".to_owned()) }, after)
}
