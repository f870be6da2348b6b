//! A new plan comes into force: it touches only what it changes.
//!
//! | the job | then |
//! |---|---|
//! | is the same | keeps its process, its state, everything |
//! | is new | starts as at boot, its timeouts from now; disabled if it was when it left |
//! | is gone | stops, its hooks run, and it is forgotten once its process is gone |
//! | is the same, and follows one that goes down | goes down before it, and comes back after it |
//! | differs, and runs | has it applied live, or is restarted where only a new process can have it |
//! | differs, and waits, failed or was given up | starts again |
//! | differs, and was a one-shot that ended well | is not run again |
//! | differs, and a user wants it at rest | has it when it is started next |
//!
//! Restarts and removals go in order: what needs another one stops before it and starts after it.
//!
//! `preview` says what it will come to: what differs and what each job is told is decided there,
//! and that is what is applied. What a job has said so far stays: latches stay set. A job that is gone stays beside the plan
//! (`is_leaving`) until its process is, so that the next agent knows it.

use super::{
    Command, Effect, JobId, JobPreview, Node, Refusal, ReloadPreview, preview::NewPlan,
    wiring::Wiring,
};
use crate::{
    event::{Kind, Outbox, Source},
    job::{Desired, Job, JobInput, Phase, is_triggered},
    name::Name,
    plan::{
        AppPlan, Change, JobChange, JobPlan, OnLoss, Plan, PlanDiff, diff, diff_job, wants_new_run,
    },
    record::Encoded,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

impl Node {
    /// What differs, seen from what is there: what is on its way out of the plan and is in it
    /// again needs a new process.
    pub(super) fn diff(&self, new: &Plan) -> PlanDiff {
        let PlanDiff { node, mut jobs } = diff(self.plan(), new);
        for change in jobs.iter_mut().filter(|it| self.is_leaving(it.job.as_str())) {
            let (before, after) =
                (self.job_plan(change.job.as_str()), new.job(change.job.as_str()));
            if let (Some(before), Some(after)) = (before, after) {
                *change = JobChange { change: Change::Restart, ..diff_job(before, after) };
            }
        }
        PlanDiff { node, jobs }
    }

    /// What a job is told when the new plan comes into force, as it is now.
    pub(super) fn first_effect(&self, change: &JobChange, new: &NewPlan<'_>) -> Effect {
        let name = change.job.as_str();
        let newly_triggered = || {
            let was_triggered = self.job_plan(name).is_some_and(is_triggered);
            new.job(name).is_some_and(is_triggered) && !was_triggered
        };
        match (change.change, self.job(name)) {
            (Change::Unchanged, _) => Effect::Keep,
            (Change::Removed, _) => Effect::Stop,
            (Change::Live | Change::Restart, Some(job)) => {
                effect_on(job, change.change, newly_triggered(), self.is_leaving(name))
            }
            (Change::Added, _) | (Change::Live | Change::Restart, None) => {
                self.start_or_later(change, new)
            }
        }
    }

    /// A new job starts, unless an app that is not up has to say when.
    fn start_or_later(&self, change: &JobChange, new: &NewPlan<'_>) -> Effect {
        let Some(plan) = new.job(change.job.as_str()) else { return Effect::Later };
        let starts = |app: &AppPlan| {
            let known = self.jobs.plan().app(app.name.as_str()).is_some();
            let by_itself = app.start_sequence > 0 && plan.place.start_sequence > 0;
            if known { self.is_ordered_at_once(plan) } else { by_itself }
        };
        match (&plan.app, new.plan.app_of(plan)) {
            (None, _) if plan.autostart => Effect::Start,
            // In a fleet its master says when, but for those that wait for the ends of others.
            (Some(_), Some(_)) if new.plan.fleet.is_some() => match new.plan.is_placed(plan) {
                true => Effect::Later,
                false => Effect::Start,
            },
            (Some(_), Some(app)) if starts(app) => Effect::Start,
            (None | Some(_), _) => Effect::Later,
        }
    }

    pub(super) fn apply(
        &mut self,
        out: &mut Outbox,
        new: Encoded<Plan>,
        preview: Option<ReloadPreview>,
    ) -> Result<(), Refusal> {
        if self.state.shutting().is_some() {
            return Err(Refusal::NodeStopping);
        }
        self.may_have(&new)?;
        let changes = match preview {
            Some(preview) if self.is_current(&preview, &new) => preview.jobs,
            // What it was compared with is no longer there.
            Some(_) | None => self.untried(&new).jobs,
        };
        out.emit(Source::NODE, reloaded(&changes));
        let unchanged = |it: &JobPreview| it.change.change == Change::Unchanged;
        if changes.iter().all(unchanged) && *new == *self.plan() {
            // It is in force already.
            out.command(Command::Applied);
            self.look_again(out);
            return Ok(());
        }
        let apps = self.jobs.plan().apps.clone();
        let old = self.bring_into_force(new);
        let removed = changes.iter().map(|it| &it.change).filter(|it| it.change == Change::Removed);
        let removed: BTreeSet<JobId> =
            removed.filter_map(|it| self.jobs.id(it.job.as_str())).collect();
        let launched = changes.iter().filter(|it| it.first_effect.launches());
        let launched = launched.map(|it| it.change.job.clone()).collect();
        self.announce_launches(out, &launched);
        for JobPreview { change, first_effect: effect, .. } in &changes {
            let Some(id) = self.jobs.id(change.job.as_str()) else { continue };
            self.touch_if_added(id, change.change);
            let before = old.get(&change.job).map(Arc::as_ref);
            if *effect == Effect::Stop {
                self.take_out(out, id, |source| removed.contains(&source));
            } else {
                self.bring_about(out, id, *effect, before);
            }
            self.follow_anew(out, id, before);
        }
        self.take_followers_along(out);
        self.change_apps(out, &apps);
        out.command(Command::Applied);
        self.look_again(out);
        Ok(())
    }

    /// What a node has begun with in its fleet it keeps until it ends.
    pub(super) fn may_have(&self, new: &Plan) -> Result<(), Refusal> {
        let keys = wants_new_run(self.plan(), new);
        if keys.is_empty() { Ok(()) } else { Err(Refusal::NewRun(keys.join(", "))) }
    }

    /// It has nothing to do but to run for the end of one of these, which is still to come.
    fn waits_for_an_end(&self, id: JobId, of: impl Fn(JobId) -> bool) -> bool {
        let holds = |id: JobId| self.jobs[id].holds();
        let to_come = |source: &JobId| *source != id && holds(*source) && of(*source);
        self.jobs[id].waits() && self.wiring.hook_of(id).iter().any(to_come)
    }

    /// It is gone from the plan. What is to run for the end of one that goes with it waits for that.
    fn take_out(&mut self, out: &mut Outbox, id: JobId, leaving: impl Fn(JobId) -> bool) {
        let lingers = self.waits_for_an_end(id, leaving);
        let input = if lingers { JobInput::PlanLingers } else { JobInput::PlanRemoves };
        self.step_job(out, id, input);
    }

    fn bring_about(
        &mut self,
        out: &mut Outbox,
        id: JobId,
        effect: Effect,
        before: Option<&JobPlan>,
    ) {
        let input = match (effect, before) {
            (Effect::Start | Effect::Wait, None) => {
                // Else its app says when.
                if self.is_ordered_at_once(self.jobs.plan_of(id)) {
                    self.step_job(out, id, JobInput::Ordered);
                }
                JobInput::Arm
            }
            (Effect::Start | Effect::Wait, Some(before)) => JobInput::PlanRevives { before },
            (Effect::Restart | Effect::StopAndWait, before) => JobInput::PlanRestarts { before },
            (Effect::Live | Effect::Later | Effect::NotAgain, Some(before)) => {
                JobInput::PlanChanged { before }
            }
            (Effect::Live | Effect::Later | Effect::NotAgain, None) => return,
            (Effect::Keep | Effect::Stop, _) => return,
        };
        self.step_job(out, id, input);
    }

    /// What it follows now, and did not before, may not be there.
    fn follow_anew(&mut self, out: &mut Outbox, id: JobId, before: Option<&JobPlan>) {
        let follows = self.jobs.plan_of(id).follows.as_ref();
        let newly = before.is_some_and(|before| before.follows.as_ref() != follows);
        let lost = follows.is_some_and(|it| it.on_loss == OnLoss::Stop && !self.is_up(&it.source));
        if newly && lost {
            self.step_job(out, id, JobInput::PlanLosesSource);
        }
    }

    /// The jobs in the order of the new plan; what is leaving follows. Gives back what the plan
    /// said before.
    fn bring_into_force(&mut self, new: Encoded<Plan>) -> BTreeMap<Name, Arc<JobPlan>> {
        let (new, json) = new.into_parts();
        let differs = new != *self.plan();
        let mut added = Vec::new();
        let absent = &mut self.state.edit().disabled_absent;
        let before = self.jobs.set_plan(new, |plan| {
            if absent.remove(&plan.name) {
                return Job::disabled();
            }
            added.push(plan.name.clone());
            Job::new(plan)
        });
        self.wiring = Arc::new(Wiring::new(&self.jobs));
        self.revision += 1;
        if differs {
            let plan = Box::new(self.plan().clone());
            self.step.replanned = Some(Encoded::new(plan, json));
        }
        self.forget_what_is_not_planned();
        self.admit(added);
        before
    }

    fn touch_if_added(&mut self, id: JobId, change: Change) {
        match change {
            Change::Added => {
                self.step.touched.insert(id, None);
            }
            Change::Removed | Change::Unchanged | Change::Live | Change::Restart => {}
        }
    }

    /// The last thing in a step: what has left is forgotten.
    pub(super) fn forget_those_gone(&mut self, out: &mut Outbox) {
        let leaving = |id: JobId| self.jobs.is_leaving(id);
        let gone = |id: &JobId| !self.jobs[*id].holds() && !self.waits_for_an_end(*id, leaving);
        let gone: Vec<JobId> = self.jobs.leaving_ids().filter(gone).collect();
        if gone.is_empty() {
            return;
        }
        for id in &gone {
            let name = self.jobs.name(*id);
            if self.jobs[*id].desired() == Desired::Disabled {
                self.state.edit().disabled_absent.insert(name.clone());
            }
            out.command(Command::Forget { job: name.clone() });
        }
        let gone: Vec<Name> = gone.into_iter().map(|id| self.jobs.name(id).clone()).collect();
        self.jobs.forget(&gone);
        self.placements.retain_known(|job| !gone.contains(job));
        self.remotes.retain_known(|job| !gone.contains(job));
        self.wiring = Arc::new(Wiring::new(&self.jobs));
        self.revision += 1;
        self.step.gone = gone;
        out.command(Command::Applied);
    }
}

fn effect_on(job: &Job, change: Change, newly_triggered: bool, leaving: bool) -> Effect {
    let running = match change {
        Change::Restart => Effect::Restart,
        Change::Added | Change::Removed | Change::Unchanged | Change::Live => Effect::Live,
    };
    match (job.phase(), job.desired()) {
        (Phase::Starting | Phase::Running | Phase::Backoff, _) => running,
        (Phase::Stopping, Desired::Run) => running,
        (Phase::Stopping, Desired::Rest) if leaving => Effect::Restart,
        (Phase::Stopped | Phase::Exited | Phase::Fatal, Desired::Run) => Effect::Start,
        (Phase::Exited, Desired::Rest) if newly_triggered => Effect::Start,
        (Phase::Exited, Desired::Rest) if job.ended_for_good() == Some(true) => Effect::NotAgain,
        (Phase::Exited | Phase::Fatal, Desired::Rest) => Effect::Start,
        (Phase::Stopped | Phase::Stopping | Phase::Unknown, Desired::Rest)
        | (_, Desired::Disabled)
        | (Phase::Unknown, Desired::Run) => Effect::Later,
    }
}

fn reloaded(jobs: &[JobPreview]) -> Kind {
    let of = |wanted: &[Change]| {
        let changes = jobs.iter().map(|it| &it.change);
        let those = changes.filter(|it| wanted.contains(&it.change));
        those.map(|it| it.job.clone()).collect()
    };
    Kind::Reloaded {
        added: of(&[Change::Added]),
        changed: of(&[Change::Live, Change::Restart]),
        removed: of(&[Change::Removed]),
    }
}
