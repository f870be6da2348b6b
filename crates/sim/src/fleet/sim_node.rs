//! One node of a fleet: its machine, its jobs, and what is on its disk.

use super::mesh::Mesh;
use mainstay_core::{
    clock::Mono,
    fleet::{CopyState, Fleet, JobCopy, Kept, Number},
    name::Name,
};
use std::{collections::BTreeMap, time::Duration};

/// What runs of a node while it is on.
#[derive(Debug, Clone)]
pub(super) struct Running {
    /// Counts the runs of all nodes.
    pub(super) run: u64,
    /// Its clock began then.
    pub(super) since: Mono,
    pub(super) fleet: Fleet,
    pub(super) mesh: Mesh,
    pub(super) jobs: BTreeMap<Name, JobCopy>,
    pub(super) wake: Option<Mono>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct SimNode {
    pub(super) running: Option<Box<Running>>,
    pub(super) disk: Kept,
}

impl Running {
    /// Its own clock, which began with its run.
    pub(super) fn clock(&self, now: Mono) -> Mono {
        Mono(1_000_000_000).after(now.since(self.since))
    }

    pub(super) fn start(
        &mut self,
        now: Mono,
        order: Option<Number>,
        job: &Name,
        args: Vec<String>,
    ) -> Option<(u64, Duration)> {
        let since = self.clock(now);
        let copy = self.jobs.entry(job.clone()).or_insert_with(JobCopy::none);
        copy.order = order.or(copy.order.take());
        if copy.state.is_up() {
            return None;
        }
        copy.incarnation += 1;
        (copy.state, copy.since, copy.args) = (CopyState::Starting, since, args);
        copy.by_hand = false;
        Some((copy.incarnation, Duration::from_millis(20)))
    }

    pub(super) fn stop(&mut self, order: Number, job: &Name) -> Option<(u64, Duration)> {
        let copy = self.jobs.entry(job.clone()).or_insert_with(JobCopy::none);
        copy.order = Some(order);
        match copy.state {
            CopyState::Starting | CopyState::Running | CopyState::Backoff | CopyState::Waiting => {
                copy.state = CopyState::Stopping;
                Some((copy.incarnation, Duration::from_millis(30)))
            }
            CopyState::Exited { .. } | CopyState::Fatal => {
                copy.state = CopyState::Stopped;
                None
            }
            CopyState::Stopped | CopyState::Stopping => None,
        }
    }

    /// What its process was at is done. `true`: something has changed.
    pub(super) fn progress(&mut self, job: &Name, incarnation: u64) -> bool {
        let Some(copy) = self.jobs.get_mut(job).filter(|it| it.incarnation == incarnation) else {
            return false;
        };
        let next = match copy.state {
            CopyState::Starting => CopyState::Running,
            CopyState::Stopping => CopyState::Stopped,
            CopyState::Stopped
            | CopyState::Waiting
            | CopyState::Running
            | CopyState::Backoff
            | CopyState::Exited { .. }
            | CopyState::Fatal => return false,
        };
        copy.state = next;
        true
    }

    pub(super) fn disable(&mut self, job: &Name, on: bool) {
        let copy = self.jobs.entry(job.clone()).or_insert_with(JobCopy::none);
        copy.disabled = on;
        if on && copy.state.is_active() {
            copy.state = CopyState::Stopped;
        }
    }

    /// A process of it dies, and its own restart has nothing left to say.
    pub(super) fn crash(&mut self, job: &Name) -> bool {
        match self.jobs.get_mut(job) {
            Some(copy) if copy.state == CopyState::Running => {
                copy.state = CopyState::Exited { well: false };
                true
            }
            Some(_) | None => false,
        }
    }
}
