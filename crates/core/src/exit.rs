//! How a process ended, and what it had used by then.

use crate::{event, signal::Signal};
use serde::{Deserialize, Serialize};
use std::{fmt, time::Duration};

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Exit {
    Code {
        code: i32,
    },
    Signal {
        signal: Signal,
        oom: bool,
    },
    /// It never ran: what was tried, and why it failed. `errno` decides the exit code of a run.
    Error {
        error: String,
        errno: i32,
    },
}

/// What a process had used when it ended, with those of its children that it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Usage {
    /// Seconds of CPU time in its own code.
    #[serde(with = "seconds")]
    pub cpu_user: Duration,
    /// Seconds of CPU time in the kernel.
    #[serde(with = "seconds")]
    pub cpu_system: Duration,
    /// The largest resident set, in bytes.
    pub max_rss: u64,
}

/// Who wanted the end, as far as the keeper knows.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Asked {
    #[default]
    None,
    Stop,
    Kill,
}

/// Why a process that was being stopped was killed instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KillReason {
    /// Somebody wanted just that.
    Asked,
    /// It had not ended within its stop timeout.
    StopTimeout,
    /// The node's own time to stop was over before that.
    Shutdown,
}

impl Exit {
    /// It never ran, for this reason.
    #[must_use]
    pub fn error(error: impl Into<String>, errno: i32) -> Exit {
        let mut exit = Exit::Error { error: error.into(), errno };
        exit.cut_text();
        exit
    }

    pub(crate) fn cut_text(&mut self) {
        match self {
            Exit::Error { error, .. } => event::cut(error),
            Exit::Code { .. } | Exit::Signal { .. } => {}
        }
    }

    /// The code a shell would report: 128+n for a signal, 127 and 126 for what cannot be run.
    #[must_use]
    pub fn shell_code(&self) -> i32 {
        const ENOENT: i32 = 2;
        match self {
            Exit::Code { code } => *code,
            Exit::Signal { signal, .. } => 128 + signal.number(),
            Exit::Error { errno: ENOENT, .. } => 127,
            Exit::Error { .. } => 126,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code { code } => write!(f, "exit code {code}"),
            Exit::Signal { signal, oom: true } => write!(f, "killed by {signal}, out of memory"),
            Exit::Signal { signal, oom: false } => write!(f, "killed by {signal}"),
            Exit::Error { error, .. } => f.write_str(error),
        }
    }
}

/// Seconds as people write them: a number, to the microsecond.
mod seconds {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::time::Duration;

    pub(super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(time.as_secs_f64())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        let time =
            Duration::try_from_secs_f64(f64::deserialize(from)?).map_err(D::Error::custom)?;
        let micros = time.subsec_nanos().saturating_add(500) / 1000;
        Ok(Duration::from_secs(time.as_secs())
            .saturating_add(Duration::from_micros(u64::from(micros))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_written_in_seconds_and_bytes_and_read_as_it_was() {
        for (micros, written) in [
            (0, "0.0"),
            (1_500_000, "1.5"),
            (999_999, "0.999999"),
            (86_400_000_123, "86400.000123"),
        ] {
            let time = Duration::from_micros(micros);
            let usage = Usage { cpu_user: time, cpu_system: Duration::ZERO, max_rss: 4096 };
            let text = serde_json::to_string(&usage).expect("serialised");
            let expected = format!(r#"{{"cpu_user":{written},"cpu_system":0.0,"max_rss":4096}}"#);
            assert_eq!(text, expected);
            assert_eq!(serde_json::from_str::<Usage>(&text).expect("read"), usage);
        }
        let negative = r#"{"cpu_user":-1,"cpu_system":0,"max_rss":0}"#;
        assert!(serde_json::from_str::<Usage>(negative).is_err());
    }
}
