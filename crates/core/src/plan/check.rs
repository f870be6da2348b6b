//! Health checks of a job.

use serde::{Deserialize, Serialize};
use std::{path::PathBuf, time::Duration};

/// A job is healthy while all its checks pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Unique within the job.
    pub name: String,
    pub probe: Probe,
    pub interval: Duration,
    pub timeout: Duration,
    /// It is not asked for so long after the start.
    #[serde(default)]
    pub delay: Duration,
    /// Failures before the first pass do not count for so long after the start.
    pub start_period: Duration,
    /// So many passes in a row make it passing.
    pub rise: u32,
    /// So many failures in a row make it failing.
    pub fall: u32,
    /// Of `notify`: from READY=1 on the job has to say WATCHDOG=1 so often, and is told so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watchdog: Option<Duration>,
    #[serde(default, skip_serializing_if = "CheckOutput::is_in_event")]
    pub output: CheckOutput,
}

/// What becomes of what an exec check writes. The last of it is in its event in any case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckOutput {
    /// Nothing else.
    #[default]
    Event,
    /// Forwarded as the output of the job is.
    Forward,
    /// Forwarded as it is.
    Raw,
}

impl CheckOutput {
    fn is_in_event(&self) -> bool {
        *self == CheckOutput::Event
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Probe {
    /// A keeper task: passes with exit code 0.
    Exec(Vec<String>),
    Http(Http),
    /// `host:port`: passes when a connection is made.
    Tcp(String),
    /// sd_notify: passes with READY=1. WATCHDOG=1 is expected every `watchdog`, or without one every
    /// `timeout` once the job has sent one (or as its WATCHDOG_USEC says).
    Notify,
    /// s6: passes when the job writes a newline to this descriptor.
    Fd(u32),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Http {
    pub url: String,
    pub method: String,
    pub headers: Vec<(String, String)>,
    /// Passing status codes, inclusive ranges; empty: 200 to 399.
    pub status: Vec<(u16, u16)>,
    /// A regular expression that the body (its first 64 KiB) must match.
    pub body_matches: Option<String>,
    /// Connect to this unix socket instead of the host of the URL.
    #[serde(default, with = "crate::text::path")]
    pub unix: Option<PathBuf>,
    pub tls: HttpTls,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpTls {
    #[serde(default, with = "crate::text::path")]
    pub ca: Option<PathBuf>,
    /// Written down by the user: do not verify the certificate.
    pub insecure: bool,
    pub server_name: Option<String>,
}

impl Check {
    pub const INTERVAL: Duration = Duration::from_secs(10);
    /// Before the first pass: every 100 ms, doubling to the interval.
    pub const FIRST_INTERVAL: Duration = Duration::from_millis(100);

    /// A check with every default in place.
    #[must_use]
    pub fn new(name: String, probe: Probe) -> Check {
        Check {
            name,
            probe,
            interval: Check::INTERVAL,
            timeout: Check::INTERVAL,
            delay: Duration::ZERO,
            start_period: Duration::ZERO,
            rise: 1,
            fall: 1,
            watchdog: None,
            output: CheckOutput::Event,
        }
    }

    /// How long after its start a job that tells by itself may take to say that it is ready.
    #[must_use]
    pub fn ready_within(&self) -> Duration {
        self.timeout.max(self.start_period)
    }

    /// How long a job that was healthy may be without a pass of it: as long as a check that is
    /// asked needs to fail.
    #[must_use]
    pub fn recovers_within(&self) -> Duration {
        match self.is_told() {
            true => self.ready_within(),
            false => {
                let before = self.start_period.max(self.delay);
                before.saturating_add(self.interval.saturating_mul(self.fall))
            }
        }
    }

    /// Told by the job itself instead of being asked for.
    #[must_use]
    pub fn is_told(&self) -> bool {
        match self.probe {
            Probe::Exec(_) | Probe::Http(_) | Probe::Tcp(_) => false,
            Probe::Notify | Probe::Fd(_) => true,
        }
    }
}
