//! One node of a fleet: its machine, its jobs, and what is on its disk.

use super::{mesh::Mesh, net::Happening};
use crate::rollout::RolloutWorld;
use mainstay_core::{
    clock::Mono,
    fleet::{Catalogue, CopyState, Fleet, JobCopy, Kept, NodeFacts, Number},
    name::Name,
    rollout::{WaveFeed, WaveReport},
};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// A clock of its own, which began somewhere and does not go quite right.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    /// It began then, showing this.
    pub(super) since: Mono,
    pub(super) first: Mono,
    /// Of a thousand units so many pass on it.
    pub(super) rate: u32,
}

impl Clock {
    pub(super) fn shows(&self, now: Mono) -> Mono {
        self.first.after(now.since(self.since) * self.rate / 1000)
    }

    /// When it will show this.
    pub(super) fn at(&self, shown: Mono) -> Mono {
        self.since.after(shown.since(self.first) * 1000 / self.rate)
    }
}

/// What runs of a node while it is on.
#[derive(Debug, Clone)]
pub(super) struct Running {
    /// Counts the runs of all nodes.
    pub(super) run: u64,
    pub(super) clock: Clock,
    pub(super) fleet: Fleet,
    pub(super) mesh: Mesh,
    pub(super) jobs: BTreeMap<Name, JobCopy>,
    pub(super) wake: Option<Mono>,
    /// A user has ended it.
    pub(super) ends: bool,
    /// What happens to it while it stands still.
    pub(super) frozen: Option<Vec<Happening>>,
    /// It takes everything so late, and nothing before what came earlier.
    pub(super) late: Duration,
    pub(super) takes_next: Mono,
    /// Jobs that start again as soon as they have stopped.
    pub(super) again: BTreeMap<Name, Vec<String>>,
}

/// What others hear of the facts of a node whose agent is of another version.
pub type Dialect = fn(&NodeFacts) -> NodeFacts;

#[derive(Debug, Clone, Default)]
pub(super) struct SimNode {
    /// It began with a copy of the disk of this node, and with its name.
    pub(super) copy_of: Option<Name>,
    pub(super) running: Option<Box<Running>>,
    pub(super) disk: Kept,
    /// `None`: its agent is of the version that all were of at first.
    pub(super) dialect: Option<Dialect>,
    /// What is written in its file.
    pub(super) file: Arc<Catalogue>,
    /// What is rolled out there: the machine while the node is on, and what is on its disk.
    pub(super) rollout: Option<Box<RolledOutNode>>,
}

/// The rollout of a node, and what it and its fleet machine have told each other last.
#[derive(Debug, Clone)]
pub(super) struct RolledOutNode {
    pub(super) world: RolloutWorld,
    pub(super) fed: BTreeMap<Name, WaveFeed>,
    pub(super) reported: Option<WaveReport>,
    pub(super) wake: Option<u64>,
}

/// What processes of a job do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Habit {
    Runs,
    /// They end well after a while.
    Exits,
    /// They cannot be started.
    Breaks,
}

/// What a process of a job does next, and after how long.
pub(super) type NextStep = (u64, Duration);

impl Running {
    pub(super) fn start(
        &mut self,
        now: Mono,
        order: Option<Number>,
        job: &Name,
        args: Vec<String>,
    ) -> Option<NextStep> {
        let since = self.clock.shows(now);
        let copy = self.jobs.entry(job.clone()).or_insert_with(JobCopy::none);
        let by_order = order.is_some();
        copy.order = order.or(copy.order.take());
        copy.by_hand = !by_order;
        if copy.state == CopyState::Stopping {
            self.again.insert(job.clone(), args);
            return None;
        }
        if copy.state.is_active() {
            return None;
        }
        copy.incarnation += 1;
        (copy.state, copy.since, copy.args) = (CopyState::Starting, since, args);
        copy.args_lost = false;
        Some((copy.incarnation, Duration::from_millis(20)))
    }

    pub(super) fn stop(&mut self, order: Option<Number>, job: &Name) -> Option<NextStep> {
        let copy = self.jobs.entry(job.clone()).or_insert_with(JobCopy::none);
        copy.order = order.or(copy.order.take());
        copy.by_hand = false;
        self.again.remove(job);
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

    /// A user does, on this node alone.
    pub(super) fn stop_by_hand(&mut self, job: &Name) -> Option<NextStep> {
        let next = self.stop(None, job);
        if let Some(copy) = self.jobs.get_mut(job) {
            copy.by_hand = true;
        }
        next
    }

    /// What its process was at is done. `None`: it was at nothing.
    pub(super) fn progress(
        &mut self,
        now: Mono,
        job: &Name,
        incarnation: u64,
        habit: Habit,
    ) -> Option<Option<NextStep>> {
        let since = self.clock.shows(now);
        let copy = self.jobs.get_mut(job).filter(|it| it.incarnation == incarnation)?;
        let again = self.again.remove(job).filter(|_| copy.state == CopyState::Stopping);
        let (next, after) = match (copy.state, habit) {
            (CopyState::Starting, Habit::Breaks) => (CopyState::Fatal, None),
            (CopyState::Starting, Habit::Exits) => (CopyState::Running, Some(300)),
            (CopyState::Starting, Habit::Runs) => (CopyState::Running, None),
            // One that is about to end does, whether another could be started or not.
            (CopyState::Running, Habit::Exits | Habit::Breaks) => {
                (CopyState::Exited { well: true }, None)
            }
            (CopyState::Stopping, _) => (CopyState::Stopped, None),
            (
                CopyState::Stopped
                | CopyState::Waiting
                | CopyState::Running
                | CopyState::Backoff
                | CopyState::Exited { .. }
                | CopyState::Fatal,
                Habit::Runs | Habit::Breaks | Habit::Exits,
            ) => return None,
        };
        copy.state = next;
        if let Some(args) = again {
            copy.incarnation += 1;
            (copy.state, copy.since, copy.args) = (CopyState::Starting, since, args);
            copy.args_lost = false;
            return Some(Some((copy.incarnation, Duration::from_millis(20))));
        }
        Some(after.map(|after| (incarnation, Duration::from_millis(after))))
    }

    pub(super) fn disable(&mut self, job: &Name, on: bool) {
        let copy = self.jobs.entry(job.clone()).or_insert_with(JobCopy::none);
        copy.disabled = on;
        if on && copy.state.is_active() {
            copy.state = CopyState::Stopped;
        }
    }

    /// The keeper has its processes, and knows no more of them.
    pub(super) fn lose_journal(&mut self) {
        self.again.clear();
        for copy in self.jobs.values_mut() {
            (copy.order, copy.by_hand) = (None, false);
            copy.args_lost = copy.state.is_active();
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
