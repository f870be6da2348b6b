//! How many jobs are where. It follows every change of a job, so that nobody has to look at all of
//! them to find out that there is nothing to do.

use super::jobs::JobId;
use crate::job::Job;
use std::collections::BTreeSet;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Census {
    /// A process of it may exist.
    holding: usize,
    backing_off: usize,
    /// Up, and nobody has told it to stop.
    untold: usize,
    /// Having its process renewed.
    restarting: usize,
    /// Those of them whose turn has not come.
    restarts_due: usize,
    /// Desired, without a process.
    waiting: BTreeSet<JobId>,
}

impl Census {
    pub(super) fn of<'a>(jobs: impl Iterator<Item = (JobId, &'a Job)>) -> Census {
        let mut census = Census::default();
        jobs.for_each(|(id, job)| census.add(id, job));
        census
    }

    pub(super) fn changed(&mut self, id: JobId, before: &Job, now: &Job) {
        self.remove(id, before);
        self.add(id, now);
    }

    fn add(&mut self, id: JobId, job: &Job) {
        for (count, is_one) in self.counts(job) {
            *count += usize::from(is_one);
        }
        if job.waits() {
            self.waiting.insert(id);
        }
    }

    fn remove(&mut self, id: JobId, job: &Job) {
        for (count, is_one) in self.counts(job) {
            *count -= usize::from(is_one);
        }
        if job.waits() {
            self.waiting.remove(&id);
        }
    }

    fn counts(&mut self, job: &Job) -> [(&mut usize, bool); 5] {
        [
            (&mut self.holding, job.holds()),
            (&mut self.backing_off, job.backs_off()),
            (&mut self.untold, job.is_untold()),
            (&mut self.restarting, job.has_pending_restart()),
            (&mut self.restarts_due, job.is_restart_due()),
        ]
    }

    /// How many processes may exist.
    pub(super) fn processes(&self) -> usize {
        self.holding
    }

    /// A process of some job may exist.
    pub(super) fn any_holds(&self) -> bool {
        self.holding > 0
    }

    /// Some job has a process or will restart by itself.
    pub(super) fn any_lives(&self) -> bool {
        self.any_holds() || self.backing_off > 0
    }

    /// Some job is up, and nobody has told it to stop.
    pub(super) fn any_untold(&self) -> bool {
        self.untold > 0
    }

    /// Some job is having its process renewed.
    pub(super) fn any_restarts(&self) -> bool {
        self.restarting > 0
    }

    /// Some job is to have its process renewed, and waits for its turn.
    pub(super) fn any_restart_due(&self) -> bool {
        self.restarts_due > 0
    }

    /// The jobs that are desired and have no process.
    pub(super) fn waiting(&self) -> impl Iterator<Item = JobId> {
        self.waiting.iter().copied()
    }
}
