//! Waiting for what a request leads to: the jobs are looked at with every event, until all have got
//! to their goal, one cannot, or time is over.

mod goal;

pub use goal::{Goal, Incarnations};

use crate::handle::{Gone, Handle, Selection};
use goal::Progress;
use mainstay_core::{event::Kind, exit::Exit, job::Desired, name::Name};
use mainstay_wire::api::JobStatus;
use std::{fmt, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

/// How long a request waits for its goal unless it says otherwise.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Begun before the request is made, so that nothing that follows from it is missed.
#[derive(Debug)]
pub struct Wait<'a> {
    handle: &'a Handle,
    /// Zero: not at all.
    patience: Duration,
    deadline: Instant,
    changes: watch::Receiver<u64>,
    /// The last event before.
    since: u64,
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

impl Wait<'_> {
    #[must_use]
    pub fn begin(handle: &Handle, patience: Duration) -> Wait<'_> {
        let deadline = Instant::now() + patience;
        let (changes, since) = (handle.events().subscribe(), handle.events().last());
        Wait { handle, patience, deadline, changes, since }
    }

    /// Returns when the task of this number, begun for the job, has ended well.
    ///
    /// # Errors
    /// How it has ended otherwise, or that it has not.
    pub async fn wait_for_task(&mut self, job: &Name, number: u64) -> Result<(), WaitError> {
        if self.patience.is_zero() {
            return Ok(());
        }
        loop {
            self.changes.mark_unchanged();
            let events = self.handle.events().after(self.since, usize::MAX).events;
            match events.iter().find_map(|event| end_of(&event.kind, number)) {
                Some((Exit::Code { code: 0 }, _)) => return Ok(()),
                Some((exit, output)) => {
                    let (exit, output) = (exit.clone(), output.to_owned());
                    return Err(WaitError::TaskFailed { job: job.clone(), exit, output });
                }
                None => {}
            }
            if timeout_at(self.deadline, self.changes.changed()).await.is_err() {
                let patience = self.patience;
                return Err(WaitError::TaskTimeOver { job: job.clone(), patience });
            }
        }
    }

    /// Returns when all of them have got there.
    ///
    /// # Errors
    /// The first job that cannot, or the first that is too slow.
    pub async fn wait(
        mut self,
        selection: Selection,
        goal: impl Fn(&JobStatus) -> Option<Goal>,
    ) -> Result<(), WaitError> {
        if self.patience.is_zero() {
            return Ok(());
        }
        loop {
            self.changes.mark_unchanged();
            let jobs = self.handle.jobs(selection.clone()).await?;
            let mut slow = None;
            for job in jobs {
                let Some(goal) = goal(&job) else { continue };
                match goal.progress(&job) {
                    Progress::Reached => {}
                    Progress::Failed => return Err(WaitError::Failed(Box::new(job))),
                    Progress::Waiting if matches!(goal, Goal::Up { .. }) && is_hopeless(&job) => {
                        return Err(WaitError::Hopeless(Box::new(job)));
                    }
                    Progress::Waiting => slow = slow.or(Some(job)),
                }
            }
            let Some(slow) = slow else { return Ok(()) };
            if timeout_at(self.deadline, self.changes.changed()).await.is_err() {
                return Err(WaitError::TimeOver { job: Box::new(slow), patience: self.patience });
            }
        }
    }
}

/// The end of the task of this number, and what it said.
fn end_of(kind: &Kind, number: u64) -> Option<(&Exit, &str)> {
    match kind {
        Kind::TaskEnded { number: ended, exit, output, .. } => {
            (*ended == number).then_some((exit, output.as_str()))
        }
        _ => None,
    }
}

fn is_hopeless(job: &JobStatus) -> bool {
    job.waiting.iter().any(|one| one.reason.is_some())
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
