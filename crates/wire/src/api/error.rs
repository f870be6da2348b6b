//! Why something that was asked for is not done, or has not led where it should.

use super::{job::JobStatus, reload::Changes};
use mainstay_core::{exit::Exit, explain, job::Phase, name::Name, node::Refusal};
use std::{fmt, time::Duration};

/// The agent has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the agent is ending")]
pub struct Gone;

/// A configuration that cannot be used: the diagnostics, ready to be printed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(pub String);

/// Why a reload was not made, or has not led where it should.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    #[error(transparent)]
    Gone(#[from] Gone),
    #[error(transparent)]
    Invalid(#[from] Invalid),
    #[error("nothing is changed: [api] cannot be had: {0}")]
    Listeners(String),
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Nobody had time for it.
    #[error("nothing is changed: {0}")]
    Unserved(String),
    /// Jobs change too often for it to be known what the plan would do.
    #[error("nothing is changed: {0}")]
    Stale(String),
    #[error("the configuration is in force, but {error}")]
    Unreached { changes: Box<Changes>, error: WaitError },
}

/// Why a wait has ended short of its goal.
#[derive(Debug, thiserror::Error)]
pub enum WaitError {
    #[error(transparent)]
    Gone(#[from] Gone),
    /// The run that was waited for has failed.
    #[error("{}", explain::failed(&.0.name, .0.state, .0.exit.as_ref()))]
    Failed(Box<JobStatus>),
    /// What the job waits for itself can never come.
    #[error("{}", explain::hopeless(&.0.name, .0.desired, &.0.waits_for()))]
    Hopeless(Box<JobStatus>),
    /// The request stands; only the time to wait for it is over.
    #[error("{}{}", explain::too_slow(&.job.name, .job.state, &.job.waits_for(), *.patience), complaints(.job))]
    TimeOver { job: Box<JobStatus>, patience: Duration },
    /// A command that was run for the job has failed.
    #[error("{}", explain::reload_failed(.job, .exit, .output))]
    TaskFailed { job: Name, exit: Exit, output: String },
    #[error("{}", explain::reload_too_slow(.job, *.patience))]
    TaskTimeOver { job: Name, patience: Duration },
    /// An update of what is rolled out has failed.
    #[error("its rollout has failed, and what was there before is in place: {0}")]
    RolloutFailed(String),
    #[error("its rollout is not done after {patience:?}; it goes on")]
    RolloutTimeOver { patience: Duration },
}

/// What keeps a job that runs from being healthy.
fn complaints(job: &JobStatus) -> String {
    match job.complaints().as_slice() {
        _ if job.state != Phase::Running => String::new(),
        [] => String::new(),
        all => format!(" (it is not healthy: {})", all.join("; ")),
    }
}

/// Why values were not taken. None of them was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FeedError {
    #[error("there is no metric '{0}'{1}")]
    Unknown(String, Hint),
    #[error("'{0}' is a counter: {1} cannot be added to it")]
    Negative(String, String),
    #[error("the value of '{0}' is not a finite number")]
    NotFinite(String),
}

/// What else may have been meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    Near(String),
    /// Nothing is measured at all.
    NoneAtAll,
    None,
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Hint::Near(name) => write!(f, ": did you mean '{name}'?"),
            Hint::NoneAtAll => f.write_str(": the configuration has no [telemetry] metrics"),
            Hint::None => Ok(()),
        }
    }
}
