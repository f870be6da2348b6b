//! A job whose plan is another one now, or that is gone from it.

use super::{Desired, Force, Job, JobCtx, PendingRestart, gate::Due, run::State};
use crate::{
    node::Wait,
    plan::{JobPlan, When},
};

impl Job {
    /// What can be applied to what is there.
    pub(super) fn change_plan(&mut self, ctx: &mut JobCtx<'_>, before: &JobPlan) {
        let plan = ctx.plan;
        if plan.checks != before.checks {
            self.checks.change(ctx, &self.run, &before.checks);
        }
        if plan.timeout != before.timeout {
            self.run.limit(ctx);
        }
        if plan.start_seconds != before.start_seconds
            && let State::Starting { process: Some(process) } = self.run.state()
        {
            ctx.wake(self.incarnation(), Wait::Started, process.since.after(plan.start_seconds));
        }
        self.change_when(ctx, &before.when);
        if plan.advertise != before.advertise {
            let presence = self.presence(plan);
            self.announcement.change(ctx, &presence);
        }
    }

    /// If its conditions are others, the time it may wait for them begins anew.
    fn change_when(&mut self, ctx: &mut JobCtx<'_>, before: &When) {
        if ctx.plan.when == *before {
            return;
        }
        if ctx.plan.when.trigger != before.trigger {
            let (waits, under_way) = (self.waits(), self.holds() || self.backs_off());
            let due = self.gate.change_trigger(ctx, before.trigger.as_ref(), waits, under_way);
            if due == Due::Now {
                self.trigger();
            }
        }
        self.await_launch(ctx);
    }

    /// Only a new process can have what has changed.
    pub(super) fn restart_for_plan(&mut self, ctx: &mut JobCtx<'_>, before: Option<&JobPlan>) {
        if let Some(before) = before {
            self.change_when(ctx, &before.when);
        }
        if self.phase().is_up() {
            // It may have been on its way out of the plan.
            self.wish.run();
            self.pending_restart = PendingRestart::Due;
        } else {
            self.restart(ctx, None);
        }
    }

    /// What it follows goes down: it does so before, in its order, and comes back after it.
    pub(super) fn restart_along(&mut self) {
        if self.may_restart_along() {
            self.pending_restart = PendingRestart::Due;
        }
    }

    pub(crate) fn may_restart_along(&self) -> bool {
        self.phase().is_up() && self.desired() == Desired::Run && self.pending_restart.is_none()
    }

    /// From now on it follows something that is not there.
    pub(super) fn lose_source(&mut self, ctx: &mut JobCtx<'_>) {
        if self.may_restart_along() {
            self.restart_along();
        } else if self.backs_off() {
            self.follow_down(ctx);
        }
    }

    /// It is gone from the plan. What has a process is stopped when it comes next: after what
    /// needs it.
    pub(super) fn leave(&mut self, ctx: &mut JobCtx<'_>) {
        if self.phase().is_up() {
            self.rest();
            self.pending_restart = PendingRestart::Due;
        } else {
            self.stop(ctx, Force::Grace);
        }
    }

    /// Its pending restart comes next.
    pub(super) fn begin_pending_restart(&mut self, ctx: &mut JobCtx<'_>) {
        if ctx.leaving {
            self.stop(ctx, Force::Grace);
        } else {
            self.restart(ctx, None);
        }
        self.pending_restart = PendingRestart::UnderWay;
    }
}
