//! Why something that was asked for is not done, or has not led where it should.

use super::{job::JobStatus, reload::Changes};
use mainstay_core::{exit::Exit, job::Desired, name::Name, node::Refusal};
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
    #[error("the configuration is in force, but {error}")]
    Unreached { changes: Box<Changes>, error: WaitError },
}

/// Why a wait has ended short of its goal.
#[derive(Debug, thiserror::Error)]
pub enum WaitError {
    #[error(transparent)]
    Gone(#[from] Gone),
    /// The run that was waited for has failed.
    #[error("{}", Failed(.0))]
    Failed(Box<JobStatus>),
    /// What the job waits for itself can never come.
    #[error("{}", Hopeless(.0))]
    Hopeless(Box<JobStatus>),
    /// The request stands; only the time to wait for it is over.
    #[error("{}", TooSlow(.job, *.patience))]
    TimeOver { job: Box<JobStatus>, patience: Duration },
    /// A command that was run for the job has failed.
    #[error("the reload command of {job} failed: {exit}{}", Said(.output))]
    TaskFailed { job: Name, exit: Exit, output: String },
    #[error("the reload command of {job} has not ended after {patience:?}; it goes on")]
    TaskTimeOver { job: Name, patience: Duration },
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

/// What a command had to say, behind how it ended.
struct Said<'a>(&'a str);

impl fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.trim_end() {
            "" => Ok(()),
            text => write!(f, ": {text}"),
        }
    }
}

struct Failed<'a>(&'a JobStatus);

impl fmt::Display for Failed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}", self.0.name, word(self.0))?;
        self.0.exit.as_ref().map_or(Ok(()), |exit| write!(f, ": {exit}"))
    }
}

struct Hopeless<'a>(&'a JobStatus);

impl fmt::Display for Hopeless<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.0.name;
        if self.0.desired == Desired::Disabled {
            return write!(f, "{name} is disabled; `mainstay enable {name}` lets it start");
        }
        let Some(one) = self.0.waiting.iter().find(|one| one.reason.is_some()) else {
            return write!(f, "{name} can never start");
        };
        let (source, event) = (&one.source, &one.event);
        let reason = one.reason.as_deref().unwrap_or_default();
        write!(
            f,
            "{name} waits for {source} {event}, which can never come: {reason}; \
             `mainstay start {name} --now` does not wait"
        )
    }
}

struct TooSlow<'a>(&'a JobStatus, Duration);

impl fmt::Display for TooSlow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooSlow(job, patience) = self;
        let name = &job.name;
        write!(f, "{name} is still {} after {patience:?}", word(job))?;
        if let Some(first) = job.waiting.first() {
            let (source, event) = (&first.source, &first.event);
            write!(f, ", waiting for {source} {event} (`mainstay why {name}`)")?;
        }
        write!(f, "; the request stands and goes on")
    }
}

fn word(job: &JobStatus) -> String {
    format!("{:?}", job.state).to_uppercase()
}
