//! One job: its state, and what is decided about it.

use crate::exit::Exit;
use serde::{Deserialize, Serialize};

/// Supervisor's states, as observers see them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Phase {
    Stopped,
    Starting,
    Running,
    Backoff,
    Stopping,
    Exited,
    Fatal,
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Desired {
    Run,
    Rest,
    Disabled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    Unknown,
    Healthy,
    Unhealthy,
}

/// Serialised into the journal, so it is a format: see `wire::link::FORMAT`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {}

impl Job {
    #[must_use]
    pub fn phase(&self) -> Phase {
        todo!()
    }

    #[must_use]
    pub fn desired(&self) -> Desired {
        todo!()
    }

    #[must_use]
    pub fn health(&self) -> Health {
        todo!()
    }

    /// Of the process that is alive now.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        todo!()
    }

    /// The latest; 0 before the first run.
    #[must_use]
    pub fn incarnation(&self) -> u64 {
        todo!()
    }

    /// How often policy (not a user) has started it again.
    #[must_use]
    pub fn restarts(&self) -> u64 {
        todo!()
    }

    #[must_use]
    pub fn last_exit(&self) -> Option<&Exit> {
        todo!()
    }

    /// When it entered its phase: wall clock, ns.
    #[must_use]
    pub fn since(&self) -> i64 {
        todo!()
    }
}
