//! What happened, for jobs to react to and for people to read. Which events there are is in the
//! `table`.

mod history;
mod outbox;
mod read;
mod table;
mod text;

pub(crate) use history::{History, Signals};
pub(crate) use outbox::Outbox;
pub use table::{During, Ending, EventName, Kind, RunEnd, Tone};
pub use text::{LONGEST, cut};

use crate::{
    name::{Name, NameError},
    plan::RolloutSource,
};
use serde::Serialize;
use std::fmt;

/// Numbered from 1 within a run of the node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    pub seq: u64,
    /// Wall clock, nanoseconds since the epoch.
    pub time: i64,
    pub source: Source,
    #[serde(flatten)]
    pub kind: Kind,
}

/// What kind of source says an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    Job,
    Node,
    Watch,
    /// A profile or a template.
    Rollout,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Source {
    Job(Name),
    /// Written `global`.
    Node(GlobalWord),
    Watch(WatchWord),
    Rollout(RolloutWord),
}

/// Written `profile.NAME` or `template.NAME`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct RolloutWord(String);

impl RolloutWord {
    /// What it names.
    #[must_use]
    pub fn source(&self) -> Option<RolloutSource> {
        RolloutSource::parse(&self.0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum GlobalWord {
    #[serde(rename = "global")]
    Global,
}

/// Written `watch.NAME`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub struct WatchWord(String);

const WATCH: &str = "watch.";

impl WatchWord {
    /// The name of the watch.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.strip_prefix(WATCH).unwrap_or(&self.0)
    }
}

impl TryFrom<String> for WatchWord {
    type Error = NameError;

    fn try_from(text: String) -> Result<WatchWord, NameError> {
        Name::new(text.strip_prefix(WATCH).unwrap_or_default())?;
        Ok(WatchWord(text))
    }
}

impl From<WatchWord> for String {
    fn from(word: WatchWord) -> String {
        word.0
    }
}

impl Source {
    pub const NODE: Source = Source::Node(GlobalWord::Global);

    #[must_use]
    pub fn watch(name: &Name) -> Source {
        Source::Watch(WatchWord(format!("{WATCH}{name}")))
    }

    #[must_use]
    pub fn rollout(source: &RolloutSource) -> Source {
        Source::Rollout(RolloutWord(source.to_string()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Source::Job(name) => name.as_str(),
            Source::Node(GlobalWord::Global) => "global",
            Source::Watch(word) => &word.0,
            Source::Rollout(word) => &word.0,
        }
    }
}

impl EventName {
    /// It belongs to the end of its source: who waits for it is a hook.
    #[must_use]
    pub fn ends(self) -> bool {
        match self.during() {
            Some(During::Stop | During::Gone) => true,
            Some(During::Wait | During::Run) | None => false,
        }
    }
}

impl fmt::Display for EventName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
