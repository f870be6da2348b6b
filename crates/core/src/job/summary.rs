//! A job in so few words that the keeper can remember them: for an agent that has lost its journal.

use super::{Desired, Job, Phase};
use crate::exit::Exit;
use serde::{Deserialize, Serialize};

/// A job that is not to run, and what it has come to. One that is to run needs no words: the keeper
/// has its process, or had it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct JobSummary {
    pub desired: Desired,
    /// STOPPED, EXITED or FATAL; STOPPED also while it is on its way there.
    pub phase: Phase,
    /// How its last run ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
}

impl Job {
    /// `None`: it is to run.
    #[must_use]
    pub fn summary(&self) -> Option<JobSummary> {
        let (phase, exit) = match self.phase() {
            Phase::Stopped | Phase::Exited | Phase::Fatal => (self.phase(), self.last_exit()),
            Phase::Starting
            | Phase::Running
            | Phase::Backoff
            | Phase::Stopping
            | Phase::Unknown => (Phase::Stopped, None),
        };
        match self.desired() {
            Desired::Run => None,
            desired @ (Desired::Rest | Desired::Disabled) => {
                Some(JobSummary { desired, phase, exit: exit.cloned() })
            }
        }
    }
}
