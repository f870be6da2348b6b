//! What lies between the wish to run and the launch.
//!
//! A job that is desired and has no process *waits* (`Job::waits`). The node knows whether what it
//! waits for has come (latches, the source it follows, its turn in an app) and lets it pass; what
//! concerns the job alone is kept here:
//!
//! - its trigger: one that comes too early or during a run is kept, once; the run that follows
//!   answers it. An interval triggers at once, then so long after each run it started; cron is
//!   worked out by the agent. A job with a trigger stays desired when a run has ended;
//! - `when.timeout`: how long its first launch may take to come. Past it the job is given up;
//! - a user's `start --now`, which does not ask the latches.

use super::{Desired, Job, JobCtx, State};
use crate::{
    clock::Mono,
    event::Kind,
    node::Wait,
    plan::{JobPlan, Trigger},
};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Gate {
    /// A trigger has come that no run has answered yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) pending: bool,
    /// Latches are not asked: a user said so, or it ran already.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) now: bool,
    /// All is there but the trigger.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) idle: bool,
    /// It is run on behalf of another job's end, and a shutdown lets it finish.
    #[serde(alias = "errand", skip_serializing_if = "std::ops::Not::not")]
    pub(super) hook_run: bool,
    /// Until when that counts, outside of a shutdown.
    #[serde(alias = "errand_until", skip_serializing_if = "Option::is_none")]
    pub(super) hook_run_until: Option<Mono>,
    /// The end of `when.timeout`, until the first launch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) give_up_at: Option<Mono>,
    /// The next interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<Mono>,
}

impl Gate {
    pub(super) fn is_default(&self) -> bool {
        *self == Gate::default()
    }
}

/// What the node has found out about a job that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    Open,
    /// Everything has come but its trigger.
    Idle,
    Shut,
}

impl Job {
    /// It is desired, and nothing of it is there or under way.
    pub(crate) fn waits(&self) -> bool {
        match (&self.state, self.desired) {
            (State::Stopped | State::Exited { .. } | State::Fatal, Desired::Run) => true,
            (
                State::Stopped | State::Exited { .. } | State::Fatal,
                Desired::Rest | Desired::Disabled,
            )
            | (
                State::Starting { .. }
                | State::Running { .. }
                | State::Backoff { .. }
                | State::Stopping { .. },
                Desired::Run | Desired::Rest | Desired::Disabled,
            ) => false,
        }
    }

    pub(crate) fn has_pending_trigger(&self) -> bool {
        self.gate.pending
    }

    pub(crate) fn skips_latches(&self) -> bool {
        self.gate.now
    }

    /// A run on behalf of another job's end.
    pub(crate) fn is_hook_run(&self) -> bool {
        self.gate.hook_run
    }

    /// `until`: nobody waits for it longer than that.
    pub(crate) fn begin_hook_run(&mut self, until: Option<Mono>) {
        (self.gate.hook_run, self.gate.hook_run_until) = (true, until);
    }

    /// From then on it is like any other run: what wants it down does not wait for it.
    pub(super) fn hook_run_over(&mut self, ctx: &mut JobCtx<'_>) {
        match self.gate.hook_run_until {
            Some(until) if ctx.mono() < until => {
                ctx.wake(self.incarnation, Wait::StopTimeout, until);
            }
            Some(_) => (self.gate.hook_run, self.gate.hook_run_until) = (false, None),
            None => {}
        }
    }

    pub(super) fn limit_hook_run(&self, ctx: &mut JobCtx<'_>) {
        if let Some(until) = self.gate.hook_run_until.filter(|_| ctx.shutting.is_none()) {
            ctx.wake(self.incarnation, Wait::StopTimeout, until);
        }
    }

    /// Time is running out for its first launch.
    pub(crate) fn will_give_up(&self) -> bool {
        self.gate.give_up_at.is_some()
    }

    /// The plan has just come to want it: its clocks start.
    pub(crate) fn arm(&mut self, ctx: &mut JobCtx<'_>) {
        match &ctx.plan.when.trigger {
            Some(Trigger::Interval(_)) => self.gate.pending |= self.desired == Desired::Run,
            Some(Trigger::Cron(_)) => ctx.arm_cron(),
            Some(Trigger::Each(_)) | None => {}
        }
        self.await_launch(ctx);
    }

    /// What it waits for has so long from now.
    pub(super) fn await_launch(&mut self, ctx: &mut JobCtx<'_>) {
        self.gate.give_up_at = match ctx.plan.when.timeout {
            Some(timeout) if self.waits() && self.incarnation == 0 => {
                let at = ctx.mono().after(timeout);
                ctx.wake(self.incarnation, Wait::When, at);
                Some(at)
            }
            Some(_) | None => None,
        };
        if self.waits() || self.since == 0 {
            self.since = ctx.out.now.wall;
        }
    }

    /// A new agent: clocks that were running run again.
    pub(super) fn rearm(&self, ctx: &mut JobCtx<'_>) {
        match &ctx.plan.when.trigger {
            Some(Trigger::Interval(_)) => {
                if let Some(next) = self.gate.next {
                    ctx.wake(0, Wait::Interval, next);
                }
            }
            Some(Trigger::Cron(_)) => ctx.arm_cron(),
            Some(Trigger::Each(_)) | None => {}
        }
        if let Some(at) = self.gate.give_up_at {
            ctx.wake(self.incarnation, Wait::When, at);
        }
    }

    /// Its trigger has come.
    pub(crate) fn trigger(&mut self) {
        match self.desired {
            Desired::Run => self.gate.pending = true,
            Desired::Rest | Desired::Disabled => {}
        }
    }

    pub(crate) fn cron_due(&mut self, ctx: &mut JobCtx<'_>) {
        match &ctx.plan.when.trigger {
            Some(Trigger::Cron(_)) => {
                ctx.arm_cron();
                self.trigger();
            }
            Some(Trigger::Each(_) | Trigger::Interval(_)) | None => {}
        }
    }

    pub(super) fn interval_over(&mut self, ctx: &mut JobCtx<'_>) {
        match self.gate.next {
            Some(next) if ctx.mono() < next => ctx.wake(0, Wait::Interval, next),
            Some(_) => {
                self.gate.next = None;
                self.trigger();
            }
            None => {}
        }
    }

    pub(super) fn when_timeout_over(&mut self, ctx: &mut JobCtx<'_>) {
        match self.gate.give_up_at {
            Some(at) if ctx.mono() < at => ctx.wake(self.incarnation, Wait::When, at),
            Some(_) => {
                self.gate.give_up_at = None;
                if self.waits() {
                    ctx.emit(Kind::TimerExpired);
                    self.end_desire(ctx, State::Fatal);
                }
            }
            None => {}
        }
    }

    /// What the node lets it do while it waits.
    pub(crate) fn pass(&mut self, ctx: &mut JobCtx<'_>, pass: Pass) {
        match pass {
            Pass::Open => self.launch_as_wanted(ctx),
            Pass::Idle => self.keep_waiting(ctx, true),
            Pass::Shut => self.keep_waiting(ctx, false),
        }
    }

    fn launch_as_wanted(&mut self, ctx: &mut JobCtx<'_>) {
        self.gate.pending = false;
        self.gate.now = false;
        self.gate.idle = false;
        self.gate.give_up_at = None;
        if let Some(Trigger::Interval(every)) = &ctx.plan.when.trigger {
            let next = ctx.mono().after(*every);
            self.gate.next = Some(next);
            ctx.wake(0, Wait::Interval, next);
        }
        self.launch(ctx);
    }

    fn keep_waiting(&mut self, ctx: &mut JobCtx<'_>, idle: bool) {
        self.gate.idle = idle;
        match self.state {
            // Between two runs of a triggered job its last end is what there is to see.
            State::Exited { .. } | State::Fatal if !is_triggered(ctx.plan) => {
                self.enter(ctx, State::Stopped);
            }
            State::Stopped
            | State::Exited { .. }
            | State::Fatal
            | State::Starting { .. }
            | State::Running { .. }
            | State::Backoff { .. }
            | State::Stopping { .. } => {}
        }
    }
}

pub(crate) fn is_triggered(plan: &JobPlan) -> bool {
    plan.when.trigger.is_some()
}
