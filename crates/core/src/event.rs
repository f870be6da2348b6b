//! What happened, for jobs to react to and for people to read.

use crate::{
    exit::Exit,
    job::Phase,
    name::{Name, NameError},
    signal::Signal,
};
use serde::{Deserialize, Serialize};

/// Numbered from 1 within a run of the node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub seq: u64,
    /// Wall clock, nanoseconds since the epoch.
    pub time: i64,
    pub source: Source,
    #[serde(flatten)]
    pub kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Source {
    Job(Name),
    /// Written `global`.
    Node(GlobalWord),
    Watch(WatchWord),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum GlobalWord {
    #[serde(rename = "global")]
    Global,
}

/// Written `watch.NAME`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
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
    pub fn as_str(&self) -> &str {
        match self {
            Source::Job(name) => name.as_str(),
            Source::Node(GlobalWord::Global) => "global",
            Source::Watch(word) => &word.0,
        }
    }
}

/// Serialised as `"event": name` and, where there is more to say, `"detail": {…}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", content = "detail", rename_all = "camelCase")]
pub enum Kind {
    Startup,
    ExitSuccess {
        incarnation: u64,
        exit: Exit,
    },
    ExitFailed {
        incarnation: u64,
        exit: Exit,
    },
    Healthy,
    Unhealthy,
    /// A watch has other instances than before; how many now.
    Changed {
        instances: usize,
    },
    Stopping,
    Stopped,
    /// The job has waited for its conditions as long as `when.timeout` lets it.
    TimerExpired,
    EnterMaintenance,
    ExitMaintenance,
    /// A check has changed its mind.
    Check {
        name: String,
        passing: bool,
        output: String,
    },
    Enabled,
    Disabled,
    /// A new plan is in force.
    Reloaded {
        added: Vec<Name>,
        changed: Vec<Name>,
        removed: Vec<Name>,
    },
    /// For observers: cannot be waited for by a job.
    State {
        from: Phase,
        to: Phase,
        pid: Option<u32>,
        incarnation: u64,
    },
    Signal {
        signal: Signal,
    },
    AgentRestarted {
        restarts: u64,
    },
    Upgraded {
        from: String,
        to: String,
    },
    LogGap {
        lines: u64,
    },
    StrayKilled {
        pid: u32,
        command: String,
    },
}
