//! What lies between the wish to run and the launch.
//!
//! A job that is desired and has no process *waits* (`Job::waits`). The node knows whether what it
//! waits for has come (latches, the source it follows, its place in an app) and gives a [`Permit`];
//! what concerns the job alone is kept here:
//!
//! - its trigger: one that comes too early or during a run is kept, once; the run that follows
//!   answers it. An interval triggers at once, then so long after each run it started; cron is
//!   worked out by the agent. A job with a trigger stays desired when a run has ended;
//! - `when.timeout`: how long it may wait for its launch. Past it the job is given up;
//! - a user's `start --now`, which does not ask the latches;
//! - whether the run that begins is a *hook run*, on behalf of another job's end;
//! - who runs for its own end, and is given time before its next launch.

use super::JobCtx;
use crate::{
    clock::Mono,
    name::Name,
    node::Wait,
    plan::{JobPlan, SourceRef, Trigger},
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Gate {
    /// A trigger has come that no run has answered yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pending: bool,
    /// Latches are not asked: a user said so, or it ran already.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    skips_latches: bool,
    /// The sources that the request which launches it launches as well: those are asked even so.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    asks: BTreeSet<Name>,
    /// It runs, and waits for the next end of its source after that.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    again: bool,
    /// Until when its next launch waits for who runs after its last end.
    #[serde(skip_serializing_if = "Option::is_none")]
    hooks_until: Option<Mono>,
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

    /// Whether what this source has to say is waited for.
    pub(super) fn asks(&self, source: &SourceRef) -> bool {
        !self.skips_latches || matches!(source, SourceRef::Job(name) if self.asks.contains(name))
    }

    /// The request that launches it launches these as well.
    pub(super) fn ask(&mut self, ctx: &JobCtx<'_>, along: &BTreeSet<Name>) {
        let sources = ctx.plan.when.once.iter().filter_map(|it| match &it.source {
            SourceRef::Job(name) => Some(name),
            SourceRef::Node | SourceRef::Watch(_) | SourceRef::Rollout(_) => None,
        });
        self.asks = sources.filter(|name| along.contains(*name)).cloned().collect();
    }

    /// After the run that is under way it waits again.
    pub(super) fn run_again(&mut self) {
        self.again = true;
    }

    pub(super) fn runs_again(&self) -> bool {
        self.again
    }

    /// It has ended, and others run for that: its next launch gives them so long.
    pub(super) fn await_stopped_hooks(&mut self, ctx: &mut JobCtx<'_>, incarnation: u64) {
        if ctx.stopped_hooks && ctx.shutting.is_none() {
            let until = ctx.mono().after(ctx.plan.stop.timeout);
            self.hooks_until = Some(until);
            ctx.wake(incarnation, Wait::StopTimeout, until);
        }
    }

    pub(super) fn hooks_until(&self) -> Option<Mono> {
        self.hooks_until
    }

    /// Those who run for its end have had their time.
    pub(super) fn stopped_hooks_over(&mut self, ctx: &mut JobCtx<'_>, incarnation: u64) {
        match self.hooks_until {
            Some(until) if ctx.mono() < until => ctx.wake(incarnation, Wait::StopTimeout, until),
            Some(_) | None => self.hooks_until = None,
        }
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
        self.again = false;
        self.asks.clear();
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
        (self.give_up_at, self.hooks_until) = (None, None);
        if let Some(Trigger::Interval(every)) = &ctx.plan.when.trigger {
            let next = ctx.mono().after(*every);
            self.next = Some(next);
            ctx.wake(0, Wait::Interval, next);
        }
    }

    /// Its run is a hook run from now on.
    pub(super) fn stay_for_end(&mut self) {
        self.hook_run.get_or_insert(HookRun { until: None });
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

    /// A job that waits has so long from now; a hook waits for as long as it takes.
    pub(super) fn limit_wait(&mut self, ctx: &mut JobCtx<'_>, waits: bool) {
        let waits = waits && !ctx.is_hook;
        self.give_up_at = match ctx.plan.when.timeout {
            Some(timeout) if waits => {
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
        if let Some(at) = self.hooks_until {
            ctx.wake(incarnation, Wait::StopTimeout, at);
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
