//! What a request is to lead to, and when to stop waiting for it.

use mainstay_agent::view::JobStatus;
use mainstay_core::job::Phase;
use std::time::Duration;

/// How long a request waits for its goal unless it says otherwise.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// It runs, or it has run and ended as it should.
    Up { beyond: u64 },
    /// No process of it is left.
    Down,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    Reached,
    Failed,
    Waiting,
}

impl Goal {
    pub(crate) fn progress(self, job: &JobStatus) -> Progress {
        match self {
            Goal::Up { beyond } => match job.state {
                Phase::Running if job.incarnation > beyond => Progress::Reached,
                Phase::Exited if job.as_desired => Progress::Reached,
                // The run that was asked for has failed, even if another try will follow.
                Phase::Exited | Phase::Fatal | Phase::Backoff => Progress::Failed,
                Phase::Running
                | Phase::Stopped
                | Phase::Starting
                | Phase::Stopping
                | Phase::Unknown => Progress::Waiting,
            },
            Goal::Down => match job.state {
                Phase::Stopped | Phase::Exited | Phase::Fatal => Progress::Reached,
                Phase::Starting
                | Phase::Running
                | Phase::Backoff
                | Phase::Stopping
                | Phase::Unknown => Progress::Waiting,
            },
        }
    }
}

/// `10s`, `500ms`, `2m`, a number of seconds, or `0` for not at all.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: f64 = digits.parse().map_err(|_| wrong(text))?;
    let unit = match &text[digits.len()..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong(text)),
    };
    Duration::try_from_secs_f64(number * unit).map_err(|_| wrong(text))
}

fn wrong(text: &str) -> String {
    format!("'{text}' is not a time to wait: write 10s, 500ms, 2m, or 0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_written_with_a_unit_or_in_seconds() {
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        for text in ["", "s", "-1s", "1 s", "1y", "nan", "inf", "1e400"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
