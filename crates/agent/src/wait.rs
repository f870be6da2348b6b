//! Waiting for what a request leads to: the jobs are looked at with every event, until all have got
//! to their goal, one cannot, or time is over.

use crate::handle::Handle;
use mainstay_core::{event::Kind, exit::Exit, name::Name};
use mainstay_wire::api::{Goal, JobStatus, Progress, Selection, StartStage, WaitError};
use std::time::Duration;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout_at},
};

/// Looking at the jobs takes so long that it is not done for every event.
const NOTICEABLE: Duration = Duration::from_micros(500);

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

impl Wait<'_> {
    pub(crate) fn begin(handle: &Handle, patience: Duration) -> Wait<'_> {
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
            let begun = Instant::now();
            let jobs = self.handle.jobs(selection.clone()).await?;
            let took = begun.elapsed();
            let (mut slow, mut look_again) = (None, self.deadline);
            for job in jobs {
                let Some(goal) = goal(&job) else { continue };
                match goal.progress(&job) {
                    Progress::Reached => {}
                    Progress::Failed => return Err(WaitError::Failed(Box::new(job))),
                    Progress::Waiting if goal.needs_a_start() && is_hopeless(&job) => {
                        return Err(WaitError::Hopeless(Box::new(job)));
                    }
                    Progress::Waiting => {
                        if let StartStage::Young(left) = job.start {
                            look_again = look_again.min(Instant::now() + left);
                        }
                        slow = slow.or(Some(job));
                    }
                }
            }
            let Some(slow) = slow else { return Ok(()) };
            let heard = timeout_at(look_again, self.changes.changed()).await.is_ok();
            if !heard && Instant::now() >= self.deadline {
                return Err(WaitError::TimeOver { job: Box::new(slow), patience: self.patience });
            }
            if took > NOTICEABLE {
                // A thousand jobs that change one after the other are not each looked at a
                // thousand times.
                sleep_until(self.deadline.min(Instant::now() + took * 8)).await;
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
