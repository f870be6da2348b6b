//! A new plan comes into force: it touches only what it changes.
//!
//! | the job | then |
//! |---|---|
//! | is the same | keeps its process, its state, everything |
//! | is new | starts as at boot, its timeouts from now |
//! | is gone | stops, and is forgotten once its process is gone |
//! | differs, and runs | has it applied live, or is restarted where only a new process can have it |
//! | differs, and waits, failed or was given up | starts again |
//! | differs, and was a one-shot that ended well | is not run again |
//! | differs, and a user wants it at rest | has it when it is started next |
//!
//! Several restarts go in order: what needs another one stops before it and starts after it.
//!
//! [`Node::preview`] says which it will be, and [`Request::Apply`](super::Request::Apply) does what
//! it said. What a job has said so far stays: latches stay set. A job that is gone stays in the
//! plan (`is_leaving`) until its process is, so that the next agent knows it.

use super::{Command, Node, Refusal, wiring::Wiring};
use crate::{
    event::{Kind, Source},
    job::{Desired, Job, Phase, is_triggered},
    name::Name,
    outbox::Outbox,
    plan::{AppPlan, Change, JobChange, JobPlan, Plan, diff},
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a new plan will do to a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preview {
    #[serde(flatten)]
    pub change: JobChange,
    pub effect: Effect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// Nothing: it is the same.
    Keep,
    /// It goes on with what has changed.
    Live,
    /// It starts when its conditions let it.
    Start,
    Restart,
    Stop,
    /// It has ended well and is not run again.
    NotAgain,
    /// It rests, and has it when it is started next.
    Later,
}

impl Node {
    /// What applying the plan will do, job by job.
    #[must_use]
    pub fn preview(&self, new: &Plan) -> Vec<Preview> {
        let changes = diff(&self.plan, new).jobs.into_iter();
        changes.filter_map(|change| self.foresee(change, new)).collect()
    }

    fn foresee(&self, mut change: JobChange, new: &Plan) -> Option<Preview> {
        let job = self.job(change.job.as_str());
        let leaving = job.is_some_and(Job::is_leaving);
        if leaving {
            match change.change {
                Change::Removed => return None,
                Change::Added | Change::Unchanged | Change::Live | Change::Restart => {
                    change.change = Change::Restart;
                }
            }
        }
        let triggered = |plan: &Plan| plan.job(change.job.as_str()).is_some_and(is_triggered);
        let effect = match (change.change, job) {
            (Change::Unchanged, _) => Effect::Keep,
            (Change::Removed, _) => Effect::Stop,
            (Change::Live | Change::Restart, Some(job)) => {
                effect(job, change.change, triggered(new) && !triggered(&self.plan))
            }
            (Change::Added, _) | (Change::Live | Change::Restart, None) => {
                self.start_or_later(&change, new)
            }
        };
        Some(Preview { change, effect })
    }

    /// A new job starts, unless an app that is not up has to say when.
    fn start_or_later(&self, change: &JobChange, new: &Plan) -> Effect {
        let Some(plan) = new.job(change.job.as_str()) else { return Effect::Later };
        let starts = |app: &AppPlan| {
            let known = self.plan.app(app.name.as_str()).is_some();
            let by_itself = app.start_sequence > 0 && plan.place.start_sequence > 0;
            if known { self.is_ordered_at_once(plan) } else { by_itself }
        };
        match (&plan.app, new.app_of(plan)) {
            (None, _) => Effect::Start,
            (Some(_), Some(app)) if starts(app) => Effect::Start,
            (Some(_), _) => Effect::Later,
        }
    }

    pub(super) fn apply(&mut self, out: &mut Outbox, new: Plan) -> Result<(), Refusal> {
        if self.life.shutting().is_some() {
            return Err(Refusal::NodeStopping);
        }
        let preview = self.preview(&new);
        out.emit(Source::NODE, reloaded(&preview));
        let apps = self.plan.apps.clone();
        let old = self.bring_into_force(new);
        for Preview { change, effect } in preview {
            let Some(at) = self.wiring.place(change.job.as_str()) else { continue };
            self.touch_if_added(at, change.change);
            let before = old.get(&change.job);
            let at_once = self.plan.jobs.get(at).is_some_and(|it| self.is_ordered_at_once(it));
            if effect != Effect::Stop {
                self.act(out, at, |job, _| job.stay());
            }
            self.act(out, at, |job, turn| match (effect, before) {
                (Effect::Keep, _) => {}
                (Effect::Stop, _) => job.leave(turn),
                (Effect::Start, None) if at_once => {
                    job.order(turn);
                    job.arm(turn);
                }
                // Its app says when.
                (Effect::Start, None) => job.arm(turn),
                (Effect::Restart, before) => job.renew_process(turn, before),
                (Effect::Start, Some(before)) => {
                    job.take_over(turn, before);
                    job.revive(turn);
                }
                (Effect::Live | Effect::NotAgain | Effect::Later, Some(before)) => {
                    job.take_over(turn, before);
                }
                (Effect::Live | Effect::NotAgain | Effect::Later, None) => {}
            });
        }
        self.change_apps(out, &apps);
        out.command(Command::Applied);
        self.look_again(out);
        Ok(())
    }

    /// The jobs in the order of the new plan; what is leaving follows. Gives back what the plan
    /// said before.
    fn bring_into_force(&mut self, new: Plan) -> BTreeMap<Name, JobPlan> {
        let before = std::mem::replace(&mut self.plan, new);
        let mut states: BTreeMap<Name, Job> = before
            .jobs
            .iter()
            .map(|plan| plan.name.clone())
            .zip(std::mem::take(&mut self.jobs))
            .collect();
        let state = |plan: &JobPlan| states.remove(&plan.name).unwrap_or_else(|| Job::new(plan));
        self.jobs = self.plan.jobs.iter().map(state).collect();
        let gone = before.jobs.iter().filter(|plan| states.contains_key(&plan.name));
        self.plan.jobs.extend(gone.cloned().collect::<Vec<_>>());
        for plan in self.plan.jobs.iter().skip(self.jobs.len()).cloned().collect::<Vec<_>>() {
            self.jobs.extend(states.remove(&plan.name));
        }
        self.wiring = Wiring::new(&self.plan);
        let plan = &self.plan;
        self.life.watches.retain(|name, _| plan.watch(name.as_str()).is_some());
        before.jobs.into_iter().map(|plan| (plan.name.clone(), plan)).collect()
    }

    fn touch_if_added(&mut self, at: usize, change: Change) {
        match change {
            Change::Added => {
                self.touched.insert(at, None);
            }
            Change::Removed | Change::Unchanged | Change::Live | Change::Restart => {}
        }
    }

    /// The last thing in a step: what has left is forgotten.
    pub(super) fn forget_those_gone(&mut self, out: &mut Outbox) {
        let gone = |job: &Job| job.is_leaving() && !job.holds();
        if !self.jobs.iter().any(gone) {
            return;
        }
        let jobs = std::mem::take(&mut self.jobs);
        let plans = std::mem::take(&mut self.plan.jobs);
        for (plan, job) in plans.into_iter().zip(jobs) {
            if gone(&job) {
                out.command(Command::Forget { job: plan.name });
            } else {
                self.plan.jobs.push(plan);
                self.jobs.push(job);
            }
        }
        self.wiring = Wiring::new(&self.plan);
        out.command(Command::Applied);
    }
}

fn effect(job: &Job, change: Change, newly_triggered: bool) -> Effect {
    let running = match change {
        Change::Restart => Effect::Restart,
        Change::Added | Change::Removed | Change::Unchanged | Change::Live => Effect::Live,
    };
    match (job.phase(), job.desired()) {
        (Phase::Starting | Phase::Running | Phase::Backoff, _) => running,
        (Phase::Stopping, Desired::Run) => running,
        (Phase::Stopping, Desired::Rest) if job.is_leaving() => Effect::Restart,
        (Phase::Stopped | Phase::Exited | Phase::Fatal, Desired::Run) => Effect::Start,
        (Phase::Exited, Desired::Rest) if newly_triggered => Effect::Start,
        (Phase::Exited, Desired::Rest) if job.ended_for_good() == Some(true) => Effect::NotAgain,
        (Phase::Exited | Phase::Fatal, Desired::Rest) => Effect::Start,
        (Phase::Stopped | Phase::Stopping | Phase::Unknown, Desired::Rest)
        | (_, Desired::Disabled)
        | (Phase::Unknown, Desired::Run) => Effect::Later,
    }
}

fn reloaded(preview: &[Preview]) -> Kind {
    let of = |wanted: &[Change]| {
        let those = preview.iter().filter(|it| wanted.contains(&it.change.change));
        those.map(|it| it.change.job.clone()).collect()
    };
    Kind::Reloaded {
        added: of(&[Change::Added]),
        changed: of(&[Change::Live, Change::Restart]),
        removed: of(&[Change::Removed]),
    }
}
