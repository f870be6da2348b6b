//! A job whose plan is another one now, or that is gone from it.

use super::{
    Desired, Job, JobCtx, Resting, State, budget::Budget, gate::is_triggered,
    launch::is_triggered_at_once, stop::Force,
};
use crate::{
    clock::Mono,
    node::Wait,
    plan::{JobPlan, Restart, RestartOn, Trigger, When},
};
use serde::{Deserialize, Serialize};

/// A new process for a new plan, in its turn among others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum PendingRestart {
    #[default]
    None,
    /// Its turn has not come: the process of before goes on.
    Due,
    /// That one was told to stop, and the new one is not up yet.
    UnderWay,
}

impl PendingRestart {
    pub(super) fn is_none(&self) -> bool {
        *self == PendingRestart::None
    }
}

impl Job {
    /// What needs it waits until its new process is up.
    pub(crate) fn has_pending_restart(&self) -> bool {
        !self.pending_restart.is_none()
    }

    pub(crate) fn is_restart_due(&self) -> bool {
        self.pending_restart == PendingRestart::Due
    }

    pub(crate) fn drop_pending_restart(&mut self) {
        self.pending_restart = PendingRestart::None;
    }

    /// Its turn has come.
    pub(crate) fn begin_pending_restart(&mut self, ctx: &mut JobCtx<'_>) {
        if self.leaving {
            self.stop(ctx, Force::Grace);
        } else {
            self.restart(ctx, None);
        }
        self.pending_restart = PendingRestart::UnderWay;
    }

    /// What it follows goes down: it does so before, in its turn, and comes back after it.
    pub(crate) fn restart_along(&mut self) -> bool {
        match (&self.state, self.desired) {
            (State::Starting { .. } | State::Running { .. }, Desired::Run)
                if !self.has_pending_restart() =>
            {
                self.pending_restart = PendingRestart::Due;
                true
            }
            (State::Starting { .. } | State::Running { .. }, _)
            | (
                State::Stopped
                | State::Backoff { .. }
                | State::Stopping { .. }
                | State::Exited { .. }
                | State::Fatal,
                _,
            ) => false,
        }
    }

    /// From now on it follows something that is not there.
    pub(crate) fn lose_source(&mut self, ctx: &mut JobCtx<'_>) {
        if !self.restart_along() && self.backs_off() {
            self.follow_down(ctx);
        }
    }

    /// It is gone from the plan, and stays here only until its process is gone.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.leaving
    }

    /// What has a process is stopped when its turn has come: after what needs it.
    pub(crate) fn leave(&mut self, ctx: &mut JobCtx<'_>) {
        self.leaving = true;
        match self.state {
            State::Starting { .. } | State::Running { .. } => {
                self.rest();
                self.pending_restart = PendingRestart::Due;
            }
            State::Stopped
            | State::Backoff { .. }
            | State::Stopping { .. }
            | State::Exited { .. }
            | State::Fatal => self.stop(ctx, Force::Grace),
        }
    }

    /// It goes together with a job whose end it is to run for: it goes after it.
    pub(crate) fn linger(&mut self) {
        self.leaving = true;
    }

    /// It is in the plan, maybe again.
    pub(crate) fn stay(&mut self) {
        self.leaving = false;
    }

    /// What can be applied to what is there.
    pub(crate) fn take_over(&mut self, ctx: &mut JobCtx<'_>, before: &JobPlan) {
        let plan = ctx.plan;
        if plan.checks != before.checks {
            self.change_checks(ctx, &before.checks);
        }
        if plan.timeout != before.timeout {
            self.limit_run(ctx);
        }
        if plan.start_seconds != before.start_seconds
            && let State::Starting { process: Some(process) } = self.state
        {
            ctx.wake(self.incarnation, Wait::Started, process.since.after(plan.start_seconds));
        }
        if plan.when != before.when {
            self.change_when(ctx, &before.when);
        }
        if plan.advertise != before.advertise {
            self.announce_anew(ctx);
        }
    }

    /// Its conditions are others: the time it may wait for them begins anew.
    fn change_when(&mut self, ctx: &mut JobCtx<'_>, before: &When) {
        if ctx.plan.when.trigger != before.trigger {
            self.change_trigger(ctx, before.trigger.as_ref());
        }
        self.await_launch(ctx);
    }

    /// A trigger of before is forgotten, but an interval goes on from its last start.
    fn change_trigger(&mut self, ctx: &mut JobCtx<'_>, before: Option<&Trigger>) {
        match (&ctx.plan.when.trigger, before) {
            (Some(Trigger::Interval(every)), Some(Trigger::Interval(before))) => {
                if let Some(next) = self.gate.next {
                    self.await_interval(ctx, next.before(*before).after(*every));
                }
            }
            (Some(Trigger::Interval(every)), Some(Trigger::Each(_) | Trigger::Cron(_)) | None) => {
                self.gate.pending = self.waits();
                if self.holds() || self.backs_off() {
                    self.await_interval(ctx, ctx.mono().after(*every));
                }
            }
            (Some(Trigger::Cron(_)), _) => {
                (self.gate.pending, self.gate.next) = (false, None);
                ctx.arm_cron();
            }
            (Some(Trigger::Each(_)) | None, _) => {
                (self.gate.pending, self.gate.next) = (false, None);
            }
        }
    }

    fn await_interval(&mut self, ctx: &mut JobCtx<'_>, next: Mono) {
        if next <= ctx.mono() {
            self.gate.next = None;
            self.trigger();
        } else {
            self.gate.next = Some(next);
            ctx.wake(0, Wait::Interval, next);
        }
    }

    /// Only a new process can have what has changed.
    pub(crate) fn restart_for_plan(&mut self, ctx: &mut JobCtx<'_>, before: Option<&JobPlan>) {
        if let Some(before) = before
            && ctx.plan.when != before.when
        {
            self.change_when(ctx, &before.when);
        }
        match self.state {
            State::Starting { .. } | State::Running { .. } => {
                // It may have been on its way out of the plan.
                self.desired = Desired::Run;
                self.pending_restart = PendingRestart::Due;
            }
            State::Stopped
            | State::Backoff { .. }
            | State::Stopping { .. }
            | State::Exited { .. }
            | State::Fatal => self.restart(ctx, None),
        }
    }

    /// Its turn in its app has come.
    pub(crate) fn order(&mut self, ctx: &mut JobCtx<'_>) {
        match (&self.state, self.desired) {
            (State::Stopped | State::Exited { .. } | State::Fatal, Desired::Rest) => {
                self.revive(ctx);
                self.arm(ctx);
            }
            (State::Stopping { .. }, Desired::Rest) => self.want_anew(None),
            (
                State::Stopped | State::Exited { .. } | State::Fatal | State::Stopping { .. },
                Desired::Run | Desired::Disabled,
            )
            | (
                State::Starting { .. } | State::Running { .. } | State::Backoff { .. },
                Desired::Run | Desired::Rest | Desired::Disabled,
            ) => {}
        }
    }

    /// Its app goes down, maybe because it has failed.
    pub(crate) fn stop_with_app(&mut self, ctx: &mut JobCtx<'_>, failed: bool) {
        let before = self.resting();
        self.stop(ctx, Force::Grace);
        self.resting = match before {
            Some(Resting::User) => Resting::User,
            Some(Resting::Turn | Resting::Aborted | Resting::AppFailed) | None if failed => {
                Resting::AppFailed
            }
            Some(Resting::Turn | Resting::Aborted | Resting::AppFailed) | None => Resting::User,
        };
    }

    /// The start of its app ends before its turn.
    pub(crate) fn turn_never_comes(&mut self) {
        if self.resting() == Some(Resting::Turn) {
            self.resting = Resting::Aborted;
        }
    }

    /// Its app does not want to be without it: it comes back after a while, ever more slowly.
    pub(crate) fn try_again(&mut self, ctx: &mut JobCtx<'_>) {
        let policy = Restart::on(RestartOn::Any);
        let delay = self.budget.spend(&policy, ctx.mono(), false);
        let until = ctx.mono().after(delay.unwrap_or(Restart::MAX_DELAY));
        self.desired = Desired::Run;
        self.enter(ctx, State::Backoff { until });
        ctx.wake(self.incarnation, Wait::Backoff, until);
    }

    /// It waited, failed or was given up under the plan of before.
    pub(crate) fn revive(&mut self, ctx: &mut JobCtx<'_>) {
        match self.desired {
            Desired::Run => {}
            Desired::Rest => {
                self.desired = Desired::Run;
                self.budget = Budget::default();
                self.gate.pending = !is_triggered(ctx.plan) || is_triggered_at_once(ctx.plan);
            }
            Desired::Disabled => {}
        }
    }
}
