//! When a job starts, and what it follows.

use crate::{
    event::{During, EventName, Speaker, Tone},
    name::Name,
    signal::Signal,
};
use serde::{Deserialize, Serialize};
use std::{fmt, time::Duration};

/// The default (nothing in it) starts at startup.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct When {
    /// Latches: each must have been said in the life of its source.
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
    Rollout(RolloutSource),
}

/// What is rolled out, and can be waited for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RolloutSource {
    /// Written `profile.NAME`.
    Profile(Name),
    /// Written `template.NAME`.
    Template(Name),
}

/// What a job can wait for: `"healthy"`, `{"signal": "SIGHUP"}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Awaited {
    Event(EventName),
    Signal { signal: Signal },
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

impl When {
    /// Latches, and what triggers.
    pub fn conditions(&self) -> impl Iterator<Item = &Condition> {
        let each = match &self.trigger {
            Some(Trigger::Each(conditions)) => conditions.as_slice(),
            Some(Trigger::Interval(_) | Trigger::Cron(_)) | None => &[],
        };
        self.once.iter().chain(each)
    }
}

impl fmt::Display for SourceRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceRef::Node => f.write_str("global"),
            SourceRef::Job(name) => write!(f, "{name}"),
            SourceRef::Watch(name) => write!(f, "watch.{name}"),
            SourceRef::Rollout(source) => write!(f, "{source}"),
        }
    }
}

impl fmt::Display for RolloutSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RolloutSource::Profile(name) => write!(f, "profile.{name}"),
            RolloutSource::Template(name) => write!(f, "template.{name}"),
        }
    }
}

impl RolloutSource {
    /// As it is written: `profile.NAME` or `template.NAME`.
    #[must_use]
    pub fn parse(text: &str) -> Option<RolloutSource> {
        let (kind, name) = text.split_once('.')?;
        let name = Name::new(name).ok()?;
        match kind {
            "profile" => Some(RolloutSource::Profile(name)),
            "template" => Some(RolloutSource::Template(name)),
            _ => None,
        }
    }
}

impl Condition {
    /// What is up says that it is healthy.
    #[must_use]
    pub fn up(source: &SourceRef) -> Condition {
        Condition { source: source.clone(), event: Awaited::UP }
    }
}

impl Awaited {
    /// What is up has said this.
    pub(crate) const UP: Awaited = Awaited::Event(EventName::Healthy);

    /// The event whose name is awaited; a signal has its own name.
    #[must_use]
    pub fn name(self) -> Option<EventName> {
        match self {
            Awaited::Event(name) => Some(name),
            Awaited::Signal { .. } => None,
        }
    }

    #[must_use]
    pub fn is_said_by(self, speaker: Speaker) -> bool {
        self.name().unwrap_or(EventName::Signal).is_said_by(speaker)
    }

    /// It belongs to the end of its source: who waits for it is a hook.
    #[must_use]
    pub fn ends(self) -> bool {
        self.name().is_some_and(EventName::ends)
    }

    /// It tells of a change in health.
    #[must_use]
    pub fn is_health(self) -> bool {
        self.name().is_some_and(EventName::is_health)
    }

    /// Who waits for it is not needed if it never comes.
    #[must_use]
    pub fn is_bad_news(self) -> bool {
        self.name().is_some_and(|name| name.tone() == Tone::Bad)
    }

    #[must_use]
    pub fn during(self) -> Option<During> {
        self.name().and_then(EventName::during)
    }
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Awaited::Event(name) => write!(f, "{name}"),
            Awaited::Signal { signal } => write!(f, "{signal}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_awaited_is_written_as_before() {
        let signal = Awaited::Signal { signal: Signal::TERM };
        for (awaited, json) in [
            (Awaited::Event(EventName::Healthy), r#""healthy""#),
            (signal, r#"{"signal":"SIGTERM"}"#),
        ] {
            assert_eq!(serde_json::to_string(&awaited).expect("written"), json);
            assert_eq!(serde_json::from_str::<Awaited>(json).expect("read"), awaited);
        }
    }
}
