//! In which order a node stops.
//!
//! A job is told to stop when nothing that is still there needs it: the reverse of the `when` and
//! `while` edges, also across jobs that are down already. Among those whose turn it is, apps go by
//! `stop_sequence`, inside an app its jobs by theirs (or the mirror of the start), and jobs without
//! an app go last; the rest together. Each gets its signal in time whatever it waits for (`Job`
//! sees to that), so a circle costs time and nothing else.
//!
//! A job that runs on behalf of another one's end is not told: it ends by itself, or is cut.

use super::{Node, state::NodeStage};
use crate::{
    job::{Force, Job, JobInput, Phase},
    outbox::Outbox,
    plan::{OnLoss, SourceRef},
};
use std::collections::BTreeSet;

/// Lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    App(u32),
    NoApp,
}

impl Node {
    /// Tells those to stop whose turn has come.
    pub(super) fn go_on_stopping(&mut self, out: &mut Outbox) {
        match &self.state.stage {
            NodeStage::Starting | NodeStage::Running => return,
            NodeStage::Stopping(shutdown) if shutdown.killing => return,
            NodeStage::Stopping(_) => {}
        }
        let all: Vec<usize> = (0..self.jobs.len()).collect();
        for at in self.next_to_stop(&all) {
            self.step_job(out, at, JobInput::Stop(Force::Grace));
        }
    }

    /// Jobs that a new plan restarts go down like that, too, and come back the other way round.
    pub(super) fn go_on_restarting(&mut self, out: &mut Outbox) {
        let restarting: Vec<usize> = (0..self.jobs.len())
            .filter(|at| self.jobs.get(*at).is_some_and(Job::has_pending_restart))
            .collect();
        let due = |at: &usize| self.jobs.get(*at).is_some_and(Job::is_restart_due);
        let mut next: Vec<usize> = self.next_to_stop(&restarting).into_iter().filter(due).collect();
        if next.is_empty() && restarting.iter().all(due) {
            // They need each other in a circle: there is no order to keep.
            next = restarting;
        }
        for at in next {
            self.step_job(out, at, JobInput::RestartTurn);
        }
    }

    /// Those who follow what is about to go down do so before it.
    pub(super) fn take_followers_along(&mut self, out: &mut Outbox) {
        let mut open: Vec<usize> = (0..self.jobs.len())
            .filter(|at| self.jobs.get(*at).is_some_and(Job::has_pending_restart))
            .collect();
        while let Some(at) = open.pop() {
            let Some(source) = self.plan.jobs.get(at).map(|it| it.name.clone()) else { continue };
            let source = SourceRef::Job(source);
            if !self.is_up(&source) {
                continue;
            }
            for follower in self.wiring.listeners(at).to_vec() {
                let follows = self.plan.jobs.get(follower).and_then(|it| it.follows.as_ref());
                let goes_down =
                    follows.is_some_and(|it| it.source == source && it.on_loss == OnLoss::Stop);
                let may = self.jobs.get(follower).is_some_and(Job::may_restart_along);
                if goes_down && may {
                    self.step_job(out, follower, JobInput::RestartAlong);
                    open.push(follower);
                }
            }
        }
    }

    /// Something that it needs, near or far, and that is not yet what the new plan wants.
    pub(super) fn awaited_restart(&self, at: usize) -> Option<usize> {
        if self.restarting == 0 {
            return None;
        }
        let mut seen = BTreeSet::from([at]);
        let mut open = vec![at];
        while let Some(at) = open.pop() {
            for source in self.wiring.needs(at) {
                if !seen.insert(*source) {
                    continue;
                }
                if self.jobs.get(*source).is_some_and(Job::has_pending_restart) {
                    return Some(*source);
                }
                open.push(*source);
            }
        }
        None
    }

    /// Those of them whose turn it is, if all of them are to stop.
    pub(super) fn next_to_stop(&self, among: &[usize]) -> Vec<usize> {
        let untold: Vec<usize> = among.iter().copied().filter(|at| self.is_untold(*at)).collect();
        if untold.is_empty() {
            return untold;
        }
        let needed = self.needed(among);
        let free: Vec<usize> = untold.into_iter().filter(|at| !needed.contains(at)).collect();
        let stopping = among.iter().copied().filter(|at| self.is_stopping(*at));
        let going: Vec<usize> = free.iter().copied().chain(stopping).collect();
        let Some(level) = going.iter().map(|at| self.level(*at)).min() else { return free };
        let ctx = |at: &usize| {
            let app = self.plan.jobs.get(*at).and_then(|job| job.app.as_ref());
            let mates = going.iter().filter(|it| {
                app.is_some() && self.plan.jobs.get(**it).and_then(|job| job.app.as_ref()) == app
            });
            let first = mates.map(|it| self.sequence(*it)).min();
            self.level(*at) == level && first.is_none_or(|first| self.sequence(*at) == first)
        };
        free.iter().copied().filter(ctx).collect()
    }

    /// Up, and nobody has told it to stop.
    fn is_untold(&self, at: usize) -> bool {
        self.jobs.get(at).is_some_and(|job| {
            let up = match job.phase() {
                Phase::Starting | Phase::Running => true,
                Phase::Stopped
                | Phase::Backoff
                | Phase::Stopping
                | Phase::Exited
                | Phase::Fatal
                | Phase::Unknown => false,
            };
            up && !job.is_hook_run()
        })
    }

    fn is_stopping(&self, at: usize) -> bool {
        self.jobs.get(at).is_some_and(|job| job.phase() == Phase::Stopping)
    }

    /// Whatever those of them that are there need, near or far.
    pub(super) fn needed(&self, by: &[usize]) -> BTreeSet<usize> {
        let mut needed = BTreeSet::new();
        let there = |at: &usize| self.jobs.get(*at).is_some_and(Job::holds);
        let mut open: Vec<usize> = by.iter().copied().filter(there).collect();
        while let Some(at) = open.pop() {
            open.extend(self.wiring.needs(at).iter().filter(|it| needed.insert(**it)));
        }
        needed
    }

    fn level(&self, at: usize) -> Level {
        let app = self.plan.jobs.get(at).and_then(|job| self.plan.app_of(job));
        app.map_or(Level::NoApp, |app| Level::App(app.stop_sequence))
    }

    /// Within its app, lowest first.
    fn sequence(&self, at: usize) -> u32 {
        self.plan.jobs.get(at).map_or(0, |job| {
            let app = self.plan.app_of(job);
            app.map_or(job.place.stop_sequence, |app| app.stop_sequence_of(&job.place))
        })
    }
}
