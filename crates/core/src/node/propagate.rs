//! What follows from what was said: events reach the jobs that wait for them, within the step that
//! told them, in the order of their numbers.
//!
//! 1. Whoever follows a job (`while`) goes down with its process, and comes up with it, whatever the
//!    verdict on the job is.
//! 2. Each event goes into the history of its source (latches ask there), pulls the triggers that
//!    name it, and moves those who follow a watch; who waits is looked at again.
//! 3. A job whose phase has changed is looked at again as well, and so is a stop that waits for it
//!    as its hook.
//! 4. When nobody has anything more to say, the node asks itself whether it has come to its end.
//!
//! That comes to rest: within one step no process can be confirmed or end, so a job can be
//! launched once and told to stop once, and each says only so much.

use super::{JobId, Node, state::NodeStage, wiring};
use crate::{
    app::App,
    discovery::Watch,
    event::{Event, EventName, Kind, Outbox, Source},
    job::{Health, HookRun, JobInput, Permit, Phase, is_triggered},
    plan::{Awaited, Condition, OnLoss, SourceRef},
};

impl Node {
    pub(super) fn propagate(&mut self, out: &mut Outbox) {
        let mut heard = 0;
        loop {
            self.end_with_job(out);
            for hook in std::mem::take(&mut self.step.hooks_set) {
                self.try_launch(out, hook);
            }
            while let Some((id, is_up)) = self.step.followed.pop_front() {
                self.take_along(out, id, is_up);
            }
            while let Some(event) = out.events.get(heard).cloned() {
                heard += 1;
                self.on_event(out, &event);
            }
            if self.jobs.census().any_restart_due() {
                self.go_on_restarting(out);
            }
            if std::mem::take(&mut self.step.restarted) {
                self.try_launch_all(out);
            }
            // A wave also waits for what checks say.
            if self.step.moved || self.apps.values().any(App::is_in_waves) {
                self.go_on_with_apps(out);
            }
            self.go_on_with_joint_stop(out);
            self.go_on_stopping(out);
            let all_heard = heard == out.events.len()
                && self.step.followed.is_empty()
                && self.step.hooks_set.is_empty();
            if all_heard && !self.end_if_stuck(out) {
                return;
            }
        }
    }

    fn on_event(&mut self, out: &mut Outbox, event: &Event) {
        let source = match &event.source {
            Source::Job(name) => self.jobs.id(name.as_str()),
            Source::Node(_) | Source::Watch(_) | Source::Rollout(_) => None,
        };
        if let (Some(id), Kind::State { .. }) = (source, &event.kind) {
            self.has_moved(out, id);
        }
        let Some(awaited) = event.kind.awaited() else { return };
        let listeners = match (&event.source, source) {
            (Source::Job(_), Some(id)) => {
                self.note_placed(id, awaited, event.seq);
                self.wiring.listeners(id).to_vec()
            }
            (Source::Job(_), None) => return,
            (Source::Node(_), _) => {
                self.state.edit().note(awaited);
                self.wiring.listeners_of_node().to_vec()
            }
            (Source::Watch(word), _) => {
                let watch = self.watches.edit(word.name());
                watch.into_iter().for_each(|watch| watch.note(awaited));
                self.wiring.listeners_of_watch(word.name()).to_vec()
            }
            (Source::Rollout(word), _) => {
                let Some(source) = word.source() else { return };
                self.rollout.edit().note(&source, awaited);
                self.wiring.listeners_of_rollout(&source).to_vec()
            }
        };
        for listener in listeners {
            self.reaches(out, listener, &event.source, awaited);
        }
    }

    fn reaches(&mut self, out: &mut Outbox, id: JobId, source: &Source, event: Awaited) {
        let plan = self.jobs.plan_of(id);
        let triggered = self.wiring.triggers(id, plan).any(|it| is(it, source, event));
        let follows = plan.follows.as_ref().filter(|it| is_source(&it.source, source));
        let of_events = follows.filter(|it| match it.source {
            SourceRef::Watch(_) | SourceRef::Rollout(_) => true,
            SourceRef::Node | SourceRef::Job(_) => false,
        });
        let on_loss = of_events.map(|follows| follows.on_loss);
        if triggered && !self.step.recovering {
            self.step_job(out, id, JobInput::Triggered);
        }
        match (on_loss, event.name()) {
            (Some(on_loss), Some(EventName::Healthy)) => self.follow(out, id, on_loss, true),
            (Some(on_loss), Some(EventName::Unhealthy)) => self.follow(out, id, on_loss, false),
            (Some(_) | None, _) => {}
        }
        self.try_launch(out, id);
    }

    /// A job has come up or gone down: those who follow it hear of it.
    fn take_along(&mut self, out: &mut Outbox, source: JobId, is_up: bool) {
        let name = SourceRef::Job(self.jobs.name(source).clone());
        // It may be up elsewhere.
        let is_up = is_up || self.is_up(&name);
        for id in self.wiring.listeners(source).to_vec() {
            let follows = self.jobs.plan_of(id).follows.as_ref().filter(|it| it.source == name);
            if let Some(on_loss) = follows.map(|it| it.on_loss) {
                self.follow(out, id, on_loss, is_up);
            }
        }
    }

    pub(super) fn follow(&mut self, out: &mut Outbox, id: JobId, on_loss: OnLoss, is_up: bool) {
        match (on_loss, is_up) {
            (OnLoss::Stop, false) if self.state.maintenance => {}
            (OnLoss::Stop, false) => self.step_job(out, id, JobInput::SourceLost),
            (OnLoss::Restart, true) => self.step_job(out, id, JobInput::SourceBack),
            (OnLoss::Stop, true) | (OnLoss::Restart, false) | (OnLoss::Keep, _) => {}
        }
    }

    /// Maintenance is over, in which nobody was taken down: those go now who follow what is not there.
    pub(super) fn follow_after_maintenance(&mut self, out: &mut Outbox) {
        for id in self.jobs.ids() {
            let follows = self.jobs.plan_of(id).follows.as_ref();
            let lost =
                follows.is_some_and(|it| it.on_loss == OnLoss::Stop && !self.is_up(&it.source));
            if lost {
                self.step_job(out, id, JobInput::SourceLost);
            }
        }
    }

    /// A job is in another phase.
    fn has_moved(&mut self, out: &mut Outbox, id: JobId) {
        self.step.moved = true;
        self.tell_app_of_failure(out, id);
        self.try_launch(out, id);
        self.attend_hooks(out, id);
        for source in self.wiring.hook_of(id).to_vec() {
            self.attend_hooks(out, source);
            self.try_launch(out, source);
        }
    }

    /// A job that waits is launched if it may be.
    pub(super) fn try_launch(&mut self, out: &mut Outbox, id: JobId) {
        if !self.jobs[id].waits() {
            return;
        }
        let permit = self.permit(out, id);
        self.step_job(out, id, JobInput::Permitted(permit));
    }

    pub(super) fn try_launch_all(&mut self, out: &mut Outbox) {
        let waiting: Vec<JobId> = self.jobs.census().waiting().collect();
        for id in waiting {
            self.try_launch(out, id);
        }
    }

    fn permit(&self, out: &Outbox, id: JobId) -> Permit {
        let (plan, job) = self.jobs.both(id);
        let in_line = self.awaited_restart(id).is_some();
        let mut asked = plan.when.once.iter().filter(|it| job.asks(&it.source));
        let latched = asked.all(|it| self.is_met(it));
        let followed = plan.follows.as_ref().is_none_or(|it| self.is_up(&it.source));
        let hooked = self.runs_for_last_end(id).is_some();
        if !latched || !followed || in_line || hooked || !self.may_launch_now(out, id) {
            Permit::Wait { in_line: in_line || hooked }
        } else if is_triggered(plan) && !job.has_pending_trigger() {
            Permit::Idle
        } else {
            Permit::Launch { hook_run: self.hook_run(out, id) }
        }
    }

    /// A node that stops starts nothing but what belongs to the end of another job.
    fn may_launch_now(&self, out: &Outbox, id: JobId) -> bool {
        let plan = self.jobs.plan_of(id);
        match self.state.shutting() {
            None => match self.state.stage {
                NodeStage::Starting => false,
                NodeStage::Running | NodeStage::Stopping(_) => true,
            },
            Some(shutting) => {
                let in_time = out.now.mono < shutting.latest_signal(plan.stop.timeout);
                let by_end = plan.when.trigger.is_none() || !wiring::triggers(plan).is_empty();
                in_time && !shutting.killing && by_end && self.wiring.is_hook(id)
            }
        }
    }

    /// It has happened at least once.
    pub(super) fn is_met(&self, condition: &Condition) -> bool {
        match &condition.source {
            SourceRef::Node => self.state.has_said(condition.event),
            SourceRef::Job(name) => self.job_has_said(name.as_str(), condition.event),
            SourceRef::Watch(name) => {
                self.watch(name.as_str()).is_some_and(|watch| watch.has_said(condition.event))
            }
            SourceRef::Rollout(source) => self.rollout.has_said(source, condition.event),
        }
    }

    /// What can be followed is there now, and not on its way down.
    pub(super) fn is_up(&self, source: &SourceRef) -> bool {
        match source {
            SourceRef::Node => true,
            SourceRef::Job(name) => {
                let here = self.job(name.as_str()).is_some_and(|job| {
                    job.health() == Health::Healthy && job.phase() != Phase::Stopping
                });
                here || self.copy_elsewhere(name.as_str()).is_some_and(|it| it.said.is_up())
            }
            SourceRef::Watch(name) => self.watch(name.as_str()).is_some_and(Watch::is_up),
            SourceRef::Rollout(source) => self.rollout.is_up(source),
        }
    }

    /// A job that is launched for the end of another one is waited for: so long as that one's stop
    /// timeout says.
    fn hook_run(&self, out: &Outbox, id: JobId) -> Option<HookRun> {
        let sources = self.wiring.hook_of(id);
        let ending = |source: &JobId| {
            let job = &self.jobs[*source];
            job.waits_for_hooks() || job.gives_time_to_hooks()
        };
        let runs_for_an_end = self.state.shutting().is_some() || sources.iter().any(ending);
        let time = sources.iter().map(|id| self.jobs.plan_of(*id).stop.timeout).max();
        let until = time.map(|time| out.now.mono.after(time));
        runs_for_an_end.then_some(HookRun { until })
    }

    /// A job that runs for the last end of this one, whose launch waits for it.
    pub(super) fn runs_for_last_end(&self, id: JobId) -> Option<JobId> {
        let mut hooks = self.wiring.stopped_hooks(id).iter();
        let hook = hooks.find(|hook| self.is_under_way(**hook)).copied();
        hook.filter(|_| self.jobs[id].gives_time_to_hooks())
    }

    fn is_under_way(&self, id: JobId) -> bool {
        self.jobs[id].holds() || self.jobs[id].backs_off()
    }

    /// A job has begun a life: those who run for its end wait for that. Those whose own end it runs
    /// for do not, or they would go on by themselves for ever.
    pub(super) fn set_hooks(&mut self, out: &mut Outbox, id: JobId) {
        for hook in self.wiring.hooks(id).to_vec() {
            if hook != id && !self.wiring.descends_from(id, hook) {
                self.step_job(out, hook, JobInput::SourceBegins);
                self.step.hooks_set.push(hook);
            }
        }
    }

    /// A stop goes on when none of its hooks has anything left to do.
    fn attend_hooks(&mut self, out: &mut Outbox, id: JobId) {
        if !self.jobs[id].waits_for_hooks() {
            return;
        }
        if !self.wiring.stopping_hooks(id).iter().any(|hook| self.is_under_way(*hook)) {
            self.step_job(out, id, JobInput::HooksDone);
        }
    }

    /// After a takeover: what the last agent may have left waiting is looked at again.
    pub(super) fn look_again(&mut self, out: &mut Outbox) {
        self.step.moved = true;
        self.try_launch_all(out);
        for id in self.jobs.ids() {
            self.attend_hooks(out, id);
        }
    }
}

fn is(condition: &Condition, source: &Source, event: Awaited) -> bool {
    condition.event == event && is_source(&condition.source, source)
}

fn is_source(wanted: &SourceRef, source: &Source) -> bool {
    match (wanted, source) {
        (SourceRef::Node, Source::Node(_)) => true,
        (SourceRef::Job(wanted), Source::Job(name)) => wanted == name,
        (SourceRef::Watch(wanted), Source::Watch(word)) => wanted.as_str() == word.name(),
        (SourceRef::Rollout(wanted), Source::Rollout(word)) => {
            word.source().as_ref() == Some(wanted)
        }
        (SourceRef::Node, Source::Job(_) | Source::Watch(_) | Source::Rollout(_))
        | (SourceRef::Job(_), Source::Node(_) | Source::Watch(_) | Source::Rollout(_))
        | (SourceRef::Watch(_), Source::Job(_) | Source::Node(_) | Source::Rollout(_))
        | (SourceRef::Rollout(_), Source::Job(_) | Source::Node(_) | Source::Watch(_)) => false,
    }
}
