//! What lies between the wish to run and the launch.
//!
//! A job that is desired and has no process *waits* (`Job::waits`). The node knows whether what it
//! waits for has come (latches, the source it follows, its place in an app) and gives a [`Permit`];
//! what concerns the job alone is kept here:
//!
//! - its trigger: one that comes too early or during a run is kept, once; the run that follows
//!   answers it. An interval triggers at once, then so long after each run it started; cron is
//!   worked out by the agent. A job with a trigger stays desired when a run has ended;
//! - `when.timeout`: how long its first launch may take to come. Past it the job is given up;
//! - a user's `start --now`, which does not ask the latches;
//! - whether the run that begins is a *hook run*, on behalf of another job's end.

use super::JobCtx;
use crate::{
    clock::Mono,
    node::Wait,
    plan::{JobPlan, Trigger},
};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Gate {
    /// A trigger has come that no run has answered yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pending: bool,
    /// Latches are not asked: a user said so, or it ran already.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    skips_latches: bool,
    /// All is there but the trigger.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    idle: bool,
    /// Its run belongs to another job's end, and a shutdown lets it finish.
    #[serde(skip_serializing_if = "Option::is_none")]
    hook_run: Option<HookRun>,
    /// The end of `when.timeout`, until the first launch.
    #[serde(skip_serializing_if = "Option::is_none")]
    give_up_at: Option<Mono>,
    /// The next interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Mono>,
}

/// A run on behalf of another job's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct HookRun {
    /// Nobody waits for it longer than that, outside of a shutdown.
    pub(crate) until: Option<Mono>,
}

/// What the node lets a job do that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Permit {
    Launch {
        hook_run: Option<HookRun>,
    },
    /// Everything has come but its trigger.
    Idle,
    /// Something is missing; `in_line`: nothing but its place in a reload.
    Wait {
        in_line: bool,
    },
}

/// A moment that was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Now,
    /// Not yet, or never.
    No,
}

impl Gate {
    pub(super) fn is_default(&self) -> bool {
        *self == Gate::default()
    }

    pub(super) fn has_trigger(&self) -> bool {
        self.pending
    }

    pub(super) fn skips_latches(&self) -> bool {
        self.skips_latches
    }

    pub(super) fn is_idle(&self) -> bool {
        self.idle
    }

    pub(super) fn is_hook_run(&self) -> bool {
        self.hook_run.is_some()
    }

    pub(super) fn give_up_at(&self) -> Option<Mono> {
        self.give_up_at
    }

    pub(super) fn next_interval(&self) -> Option<Mono> {
        self.next
    }

    /// A trigger has come, or somebody asks for a run.
    pub(super) fn trigger(&mut self) {
        self.pending = true;
    }

    pub(super) fn set_trigger(&mut self, pending: bool) {
        self.pending = pending;
    }

    pub(super) fn skip_latches(&mut self, skip: bool) {
        self.skips_latches = skip;
    }

    /// It ran already, and comes back without asking.
    pub(super) fn reopen(&mut self) {
        (self.pending, self.skips_latches) = (true, true);
    }

    /// It shall rest: whatever has come is forgotten.
    pub(super) fn close(&mut self) {
        (self.pending, self.skips_latches, self.idle) = (false, false, false);
    }

    pub(super) fn wait(&mut self, idle: bool) {
        self.idle = idle;
    }

    /// What was waited for has come. The next interval counts from here.
    pub(super) fn pass(&mut self, ctx: &mut JobCtx<'_>, hook_run: Option<HookRun>) {
        if hook_run.is_some() {
            self.hook_run = hook_run;
        }
        self.close();
        self.give_up_at = None;
        if let Some(Trigger::Interval(every)) = &ctx.plan.when.trigger {
            let next = ctx.mono().after(*every);
            self.next = Some(next);
            ctx.wake(0, Wait::Interval, next);
        }
    }

    pub(super) fn end_hook_run(&mut self) {
        self.hook_run = None;
    }

    /// From its end on a hook run is like any other: what wants it down does not wait for it.
    pub(super) fn hook_run_over(&mut self, ctx: &mut JobCtx<'_>, incarnation: u64) {
        match self.hook_run.and_then(|run| run.until) {
            Some(until) if ctx.mono() < until => ctx.wake(incarnation, Wait::StopTimeout, until),
            Some(_) => self.hook_run = None,
            None => {}
        }
    }

    pub(super) fn limit_hook_run(&self, ctx: &mut JobCtx<'_>, incarnation: u64) {
        let until = self.hook_run.and_then(|run| run.until);
        if let Some(until) = until.filter(|_| ctx.shutting.is_none()) {
            ctx.wake(incarnation, Wait::StopTimeout, until);
        }
    }

    /// The plan has just come to want it: its trigger is set going. `desired`: a run is wanted.
    pub(super) fn arm(&mut self, ctx: &mut JobCtx<'_>, desired: bool) {
        match &ctx.plan.when.trigger {
            Some(Trigger::Interval(_)) => self.pending |= desired,
            Some(Trigger::Cron(_)) => ctx.arm_cron(),
            Some(Trigger::Each(_)) | None => {}
        }
    }

    /// A job that waits for its first launch has so long from now.
    pub(super) fn limit_wait(&mut self, ctx: &mut JobCtx<'_>, waits_for_first: bool) {
        self.give_up_at = match ctx.plan.when.timeout {
            Some(timeout) if waits_for_first => {
                let at = ctx.mono().after(timeout);
                ctx.wake(0, Wait::When, at);
                Some(at)
            }
            Some(_) | None => None,
        };
    }

    /// A new agent: clocks that were running run again.
    pub(super) fn rearm(&self, ctx: &mut JobCtx<'_>, incarnation: u64) {
        match &ctx.plan.when.trigger {
            Some(Trigger::Interval(_)) => {
                if let Some(next) = self.next {
                    ctx.wake(0, Wait::Interval, next);
                }
            }
            Some(Trigger::Cron(_)) => ctx.arm_cron(),
            Some(Trigger::Each(_)) | None => {}
        }
        if let Some(at) = self.give_up_at {
            ctx.wake(incarnation, Wait::When, at);
        }
    }

    /// As [`Gate::rearm`], by an agent that may not know when it last ran: its next interval is a
    /// whole one.
    pub(super) fn recover(&mut self, ctx: &mut JobCtx<'_>, incarnation: u64) {
        if let Some(Trigger::Interval(every)) = &ctx.plan.when.trigger
            && incarnation > 0
        {
            self.next.get_or_insert(ctx.mono().after(*every));
        }
        self.rearm(ctx, incarnation);
    }

    pub(super) fn interval_over(&mut self, ctx: &mut JobCtx<'_>) -> Due {
        match self.next {
            Some(next) if ctx.mono() < next => {
                ctx.wake(0, Wait::Interval, next);
                Due::No
            }
            Some(_) => {
                self.next = None;
                Due::Now
            }
            None => Due::No,
        }
    }

    pub(super) fn when_timeout_over(&mut self, ctx: &mut JobCtx<'_>, incarnation: u64) -> Due {
        match self.give_up_at {
            Some(at) if ctx.mono() < at => {
                ctx.wake(incarnation, Wait::When, at);
                Due::No
            }
            Some(_) => {
                self.give_up_at = None;
                Due::Now
            }
            None => Due::No,
        }
    }

    /// The plan has another trigger. One of before is forgotten, but an interval goes on from its
    /// last start. `Due::Now`: it has come with that.
    pub(super) fn change_trigger(
        &mut self,
        ctx: &mut JobCtx<'_>,
        before: Option<&Trigger>,
        waits: bool,
        under_way: bool,
    ) -> Due {
        match (&ctx.plan.when.trigger, before) {
            (Some(Trigger::Interval(every)), Some(Trigger::Interval(before))) => match self.next {
                Some(next) => self.await_interval(ctx, next.before(*before).after(*every)),
                None => Due::No,
            },
            (Some(Trigger::Interval(every)), Some(Trigger::Each(_) | Trigger::Cron(_)) | None) => {
                self.pending = waits;
                if under_way {
                    return self.await_interval(ctx, ctx.mono().after(*every));
                }
                Due::No
            }
            (Some(Trigger::Cron(_)), _) => {
                (self.pending, self.next) = (false, None);
                ctx.arm_cron();
                Due::No
            }
            (Some(Trigger::Each(_)) | None, _) => {
                (self.pending, self.next) = (false, None);
                Due::No
            }
        }
    }

    fn await_interval(&mut self, ctx: &mut JobCtx<'_>, next: Mono) -> Due {
        if next <= ctx.mono() {
            self.next = None;
            return Due::Now;
        }
        self.next = Some(next);
        ctx.wake(0, Wait::Interval, next);
        Due::No
    }
}

pub(crate) fn is_triggered(plan: &JobPlan) -> bool {
    plan.when.trigger.is_some()
}

/// Its first run comes without a trigger from outside.
pub(super) fn is_triggered_at_once(plan: &JobPlan) -> bool {
    match plan.when.trigger {
        Some(Trigger::Interval(_)) => true,
        Some(Trigger::Each(_) | Trigger::Cron(_)) | None => false,
    }
}
