//! In which order a node stops.
//!
//! A job is told to stop when nothing that is still there needs it: the reverse of the `when` and
//! `while` edges, also across jobs that are down already. Among those that come next, apps go by
//! `stop_sequence`, inside an app its jobs by theirs (or the mirror of the start), and jobs without
//! an app go last; the rest together. Apps of one sequence go in lock-step: none comes to its next
//! jobs before those that all of them have told are gone. Each gets its signal in time whatever it waits for (`Job`
//! sees to that), so a circle costs time and nothing else.
//!
//! A job that runs on behalf of another one's end is not told: it ends by itself, or is cut. One that
//! the rollout is telling something is told when that is finished, or given up.

use super::{
    JobId, Node,
    state::{JointStop, NodeStage},
};
use crate::{
    event::Outbox,
    job::{Force, JobInput, Phase},
    name::Name,
    plan::{OnLoss, SourceRef},
};
use std::collections::{BTreeMap, BTreeSet};

/// Lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    App(u32),
    NoApp,
}

impl Node {
    /// Tells those to stop that come next.
    pub(super) fn go_on_stopping(&mut self, out: &mut Outbox) {
        match &self.state.stage {
            NodeStage::Starting | NodeStage::Running => return,
            NodeStage::Stopping(shutdown) if shutdown.killing => return,
            NodeStage::Stopping(_) => {}
        }
        if !self.jobs.census().any_untold() {
            return;
        }
        let all: Vec<JobId> = self.jobs.ids().collect();
        for id in self.next_to_stop(&all) {
            if !self.rollout.is_telling(self.jobs.name(id)) {
                self.step_job(out, id, JobInput::Stop(Force::Grace));
            }
        }
    }

    /// Jobs that a user stops together go down like that as well, as far as they need each other.
    pub(super) fn go_on_with_joint_stop(&mut self, out: &mut Outbox) {
        while !self.state.joint_stop.is_over() {
            let stop = &self.state.joint_stop;
            let id = |name: &Name| self.jobs.id(name.as_str());
            let untold: Vec<JobId> = stop.untold().filter_map(id).collect();
            let told: Vec<JobId> = stop.told().filter_map(id).collect();
            // A node that stops has an order of its own.
            if untold.is_empty() || self.state.shutting().is_some() {
                self.state.edit().joint_stop = JointStop::default();
                return;
            }
            let needed = self.needed(&[&*untold, &*told].concat());
            let free = |id: &JobId| !needed.contains(id) || !self.jobs[*id].holds();
            let mut next: Vec<JobId> = untold.iter().copied().filter(free).collect();
            if next.is_empty() {
                if told.iter().any(|id| self.jobs[*id].holds()) {
                    return;
                }
                // They need each other in a circle: there is no order to keep.
                next = untold;
            }
            for id in next {
                let name = self.jobs.name(id).clone();
                self.state.edit().joint_stop.has_told(&name);
                self.step_job(out, id, JobInput::Stop(Force::Grace));
            }
        }
    }

    /// Jobs that a new plan restarts go down like that, too, and come back the other way round.
    pub(super) fn go_on_restarting(&mut self, out: &mut Outbox) {
        let restarting: Vec<JobId> =
            self.jobs.ids().filter(|id| self.jobs[*id].has_pending_restart()).collect();
        let due = |id: &JobId| self.jobs[*id].is_restart_due();
        let mut next: Vec<JobId> = self.next_to_stop(&restarting).into_iter().filter(due).collect();
        if next.is_empty() && restarting.iter().all(due) {
            // They need each other in a circle: there is no order to keep.
            next = restarting;
        }
        for id in next {
            self.step_job(out, id, JobInput::BeginRestart);
        }
    }

    /// Those who follow what is about to go down do so before it.
    pub(super) fn take_followers_along(&mut self, out: &mut Outbox) {
        let mut open: Vec<JobId> =
            self.jobs.ids().filter(|id| self.jobs[*id].has_pending_restart()).collect();
        while let Some(id) = open.pop() {
            let source = SourceRef::Job(self.jobs.name(id).clone());
            if !self.is_up(&source) {
                continue;
            }
            for follower in self.wiring.listeners(id).to_vec() {
                let follows = self.jobs.plan_of(follower).follows.as_ref();
                let goes_down =
                    follows.is_some_and(|it| it.source == source && it.on_loss == OnLoss::Stop);
                let may = self.jobs[follower].may_restart_along();
                if goes_down && may {
                    self.step_job(out, follower, JobInput::RestartAlong);
                    open.push(follower);
                }
            }
        }
    }

    /// Something that it needs, near or far, and that is not yet what the new plan wants.
    pub(super) fn awaited_restart(&self, id: JobId) -> Option<JobId> {
        if !self.jobs.census().any_restarts() {
            return None;
        }
        let mut seen = BTreeSet::from([id]);
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            for source in self.wiring.needs(id) {
                if !seen.insert(*source) {
                    continue;
                }
                if self.jobs[*source].has_pending_restart() {
                    return Some(*source);
                }
                open.push(*source);
            }
        }
        None
    }

    /// Those of them that come next, if all of them are to stop.
    pub(super) fn next_to_stop(&self, among: &[JobId]) -> Vec<JobId> {
        let untold: Vec<JobId> =
            among.iter().copied().filter(|id| self.jobs[*id].is_untold()).collect();
        if untold.is_empty() {
            return untold;
        }
        let needed = self.needed(among);
        let free: Vec<JobId> = untold.into_iter().filter(|id| !needed.contains(id)).collect();
        let stopping: Vec<JobId> =
            among.iter().copied().filter(|id| self.is_stopping(*id)).collect();
        let going: Vec<JobId> = free.iter().chain(&stopping).copied().collect();
        let Some(level) = going.iter().map(|id| self.level(*id)).min() else { return free };
        let mut first: BTreeMap<&Name, u32> = BTreeMap::new();
        for id in &going {
            if let Some(app) = &self.jobs.plan_of(*id).app {
                let sequence = self.sequence(*id);
                first.entry(app).and_modify(|it| *it = sequence.min(*it)).or_insert(sequence);
            }
        }
        let app = |id: &JobId| self.jobs.plan_of(*id).app.as_ref();
        let told: BTreeSet<&Name> =
            stopping.iter().filter(|id| self.level(**id) == level).filter_map(app).collect();
        let is_next = |id: &JobId| {
            let its_app = app(id);
            let in_step = its_app.is_none_or(|it| told.is_empty() || told.contains(it));
            let first = its_app.and_then(|it| first.get(it));
            let is_first = first.is_none_or(|first| self.sequence(*id) == *first);
            self.level(*id) == level && in_step && is_first
        };
        free.iter().copied().filter(is_next).collect()
    }

    fn is_stopping(&self, id: JobId) -> bool {
        self.jobs[id].phase() == Phase::Stopping
    }

    /// Whatever those of them that are there need, near or far.
    pub(super) fn needed(&self, by: &[JobId]) -> BTreeSet<JobId> {
        let mut needed = BTreeSet::new();
        let there = |id: &JobId| self.jobs[*id].holds();
        let mut open: Vec<JobId> = by.iter().copied().filter(there).collect();
        while let Some(id) = open.pop() {
            open.extend(self.wiring.needs(id).iter().filter(|it| needed.insert(**it)));
        }
        needed
    }

    fn level(&self, id: JobId) -> Level {
        let app = self.plan().app_of(self.jobs.plan_of(id));
        app.map_or(Level::NoApp, |app| Level::App(app.stop_sequence))
    }

    /// Within its app, lowest first.
    fn sequence(&self, id: JobId) -> u32 {
        let job = self.jobs.plan_of(id);
        let app = self.plan().app_of(job);
        app.map_or(job.place.stop_sequence, |app| app.stop_sequence_of(&job.place))
    }
}
