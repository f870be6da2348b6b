//! What a request is to lead to, and when to stop waiting for it.

use super::job::JobStatus;
use mainstay_core::{
    job::{Desired, Phase},
    name::Name,
};
use std::{collections::BTreeMap, time::Duration};

/// How long a request waits for its goal unless it says otherwise.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The incarnation that each job had at a moment.
pub type Incarnations = BTreeMap<Name, u64>;

/// What a job is to get to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// It runs, or it has run and ended as it should.
    Up { beyond: u64 },
    /// As `Up`, with another incarnation than before.
    Anew,
    /// It has started: it is healthy, or without checks it has lived for a while; or it has run and
    /// ended as it should.
    Started { beyond: u64 },
    /// As `Started`, with another incarnation than before.
    StartedAnew,
    /// No process of it is left.
    Down,
    /// It has been started if anything lets it.
    Begun,
    /// It rests no more as it did: how it ended before does not count.
    Launched,
}

/// How far a job has got on the way to its goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    Reached,
    Failed,
    Waiting,
}

impl Goal {
    /// The goal of one job, given what was there before.
    #[must_use]
    pub fn after(self, before: &Incarnations, job: &JobStatus) -> Option<Goal> {
        Some(match self {
            Goal::Anew => Goal::Up { beyond: before.get(&job.name).copied().unwrap_or(0) },
            Goal::StartedAnew => {
                Goal::Started { beyond: before.get(&job.name).copied().unwrap_or(0) }
            }
            Goal::Up { .. } | Goal::Started { .. } | Goal::Down | Goal::Begun | Goal::Launched => {
                self
            }
        })
    }

    /// Whoever waits for what can never come does not get there.
    #[must_use]
    pub fn needs_a_start(self) -> bool {
        match self {
            Goal::Up { .. }
            | Goal::Anew
            | Goal::Started { .. }
            | Goal::StartedAnew
            | Goal::Launched => true,
            Goal::Down | Goal::Begun => false,
        }
    }

    /// How far the job has got, as it is now.
    #[must_use]
    pub fn progress(self, job: &JobStatus) -> Progress {
        match self {
            Goal::Anew => Goal::Up { beyond: 0 }.progress(job),
            Goal::StartedAnew => Goal::Started { beyond: 0 }.progress(job),
            Goal::Started { beyond } => match (Goal::Up { beyond }.progress(job), job.state) {
                (Progress::Reached, Phase::Running) if !job.has_started() => Progress::Waiting,
                (progress, _) => progress,
            },
            Goal::Up { beyond } => match job.state {
                Phase::Running if job.incarnation > beyond => Progress::Reached,
                Phase::Exited if job.ended_well() => Progress::Reached,
                // It runs whenever its trigger says so.
                Phase::Stopped if job.as_desired && job.desired == Desired::Run => {
                    Progress::Reached
                }
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
            Goal::Launched => match job.state {
                Phase::Running => Progress::Reached,
                Phase::Starting
                | Phase::Stopping
                | Phase::Stopped
                | Phase::Backoff
                | Phase::Exited
                | Phase::Fatal
                | Phase::Unknown => Progress::Waiting,
            },
            Goal::Begun => match job.state {
                Phase::Running | Phase::Stopped => Progress::Reached,
                Phase::Exited if job.ended_well() => Progress::Reached,
                Phase::Exited | Phase::Fatal | Phase::Backoff => Progress::Failed,
                Phase::Starting | Phase::Stopping | Phase::Unknown => Progress::Waiting,
            },
        }
    }
}
