//! When a job starts, and what it follows.

use crate::{name::Name, signal::Signal};
use serde::{Deserialize, Serialize};
use std::{fmt, time::Duration};

/// The default (nothing in it) starts at startup.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct When {
    /// Latches: all must have happened at least once in this run.
    pub once: Vec<Condition>,
    pub trigger: Option<Trigger>,
    /// From startup (from its reload for a job added later); past it the job is given up.
    pub timeout: Option<Duration>,
}

/// Starts the job again and again; one that comes too early or during a run is kept, once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trigger {
    /// Any of these (several when the source has instances).
    Each(Vec<Condition>),
    /// The first run comes as soon as the latches are set.
    Interval(Duration),
    Cron(Cron),
}

/// Checked by `config`; the agent works out when it is due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cron {
    pub expression: String,
    /// `None`: local time.
    pub tz: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Condition {
    pub source: SourceRef,
    pub event: Awaited,
}

/// Who says something that can be waited for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceRef {
    /// Written `global`.
    Node,
    Job(Name),
    /// Written `watch.NAME`.
    Watch(Name),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Awaited {
    Startup,
    ExitSuccess,
    ExitFailed,
    Healthy,
    Unhealthy,
    Changed,
    Stopping,
    Stopped,
    EnterMaintenance,
    ExitMaintenance,
    TimerExpired,
    Signal(Signal),
}

/// The standing form: the source is up while it is healthy (a watch: while it has an instance).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct While {
    pub source: SourceRef,
    pub on_loss: OnLoss,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnLoss {
    /// Stopped, and started when the source is back.
    Stop,
    /// Left alone, and restarted when the source is back.
    Restart,
    /// Left alone: only its start waits for the source.
    Keep,
}

impl fmt::Display for SourceRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceRef::Node => f.write_str("global"),
            SourceRef::Job(name) => write!(f, "{name}"),
            SourceRef::Watch(name) => write!(f, "watch.{name}"),
        }
    }
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Awaited::Startup => "startup",
            Awaited::ExitSuccess => "exitSuccess",
            Awaited::ExitFailed => "exitFailed",
            Awaited::Healthy => "healthy",
            Awaited::Unhealthy => "unhealthy",
            Awaited::Changed => "changed",
            Awaited::Stopping => "stopping",
            Awaited::Stopped => "stopped",
            Awaited::EnterMaintenance => "enterMaintenance",
            Awaited::ExitMaintenance => "exitMaintenance",
            Awaited::TimerExpired => "timerExpired",
            Awaited::Signal(signal) => return write!(f, "{signal}"),
        })
    }
}
