//! From the wish to RUNNING.

use super::{Budget, Desired, Job, JobCtx, PendingRestart, Process, State, stop::Force};
use crate::{
    event::Kind,
    node::{Refusal, Wait},
    plan::{JobPlan, Trigger},
};

impl Job {
    /// Arguments that a running process does not have cannot be given to it.
    pub(crate) fn asked_to_start(
        &mut self,
        ctx: &mut JobCtx<'_>,
        args: Option<Vec<String>>,
        now: bool,
    ) -> Result<(), Refusal> {
        let others = args.as_ref().is_some_and(|args| *args != self.args);
        match self.state {
            State::Starting { .. } | State::Running { .. } if others => {
                Err(Refusal::RunsAlready(ctx.plan.name.clone()))
            }
            State::Starting { .. }
            | State::Running { .. }
            | State::Stopped
            | State::Backoff { .. }
            | State::Stopping { .. }
            | State::Exited { .. }
            | State::Fatal => {
                self.start(ctx, args, now);
                Ok(())
            }
        }
    }

    /// A user's start: a new budget, and no more waiting for time to pass. What else it waits for
    /// it goes on waiting for, `now` without its latches.
    pub(crate) fn start(&mut self, ctx: &mut JobCtx<'_>, args: Option<Vec<String>>, now: bool) {
        match self.state {
            State::Stopped | State::Exited { .. } | State::Fatal => {
                self.want_anew(args);
                self.gate.now = now;
            }
            State::Backoff { .. } => {
                self.want_anew(args);
                self.launch(ctx);
            }
            State::Stopping { .. } => {
                self.want_anew(args);
                self.gate.now = true;
            }
            State::Starting { .. } | State::Running { .. } => {}
        }
    }

    /// A user's restart: what has a process is stopped first.
    pub(crate) fn restart(&mut self, ctx: &mut JobCtx<'_>, args: Option<Vec<String>>) {
        match self.state {
            State::Starting { .. } | State::Running { .. } => {
                self.want_anew(args);
                self.gate.now = true;
                self.begin_stop(ctx, Force::Grace);
            }
            State::Stopped
            | State::Backoff { .. }
            | State::Stopping { .. }
            | State::Exited { .. }
            | State::Fatal => self.start(ctx, args, false),
        }
    }

    pub(super) fn want_anew(&mut self, args: Option<Vec<String>>) {
        self.desired = Desired::Run;
        self.budget = Budget::default();
        self.gate.pending = true;
        if let Some(args) = args {
            self.args = args;
        }
    }

    /// A user does not want to see it run until further notice.
    pub(crate) fn disable(&mut self, ctx: &mut JobCtx<'_>) {
        if self.desired == Desired::Disabled {
            return;
        }
        ctx.emit(Kind::Disabled);
        self.stop(ctx, Force::Grace);
        self.desired = Desired::Disabled;
    }

    /// As if the plan had just come to want it.
    pub(crate) fn enable(&mut self, ctx: &mut JobCtx<'_>) {
        if self.desired != Desired::Disabled {
            return;
        }
        ctx.emit(Kind::Enabled);
        self.desired = Desired::Run;
        self.budget = Budget::default();
        self.gate.pending = is_triggered_at_once(ctx.plan);
    }

    /// Only from a state without a process.
    pub(super) fn launch(&mut self, ctx: &mut JobCtx<'_>) {
        self.incarnation = self.incarnation.saturating_add(1);
        self.overran = None;
        self.forget_checks(ctx);
        self.enter(ctx, State::Starting { process: None });
        ctx.spawn(self.incarnation, &self.args);
        self.be_quick(ctx);
        self.limit_hook_run(ctx);
    }

    /// The node has begun to stop, and has not told it yet.
    pub(crate) fn be_quick_if_up(&self, ctx: &mut JobCtx<'_>) {
        match self.state {
            State::Starting { .. } | State::Running { .. } => self.be_quick(ctx),
            State::Stopped
            | State::Backoff { .. }
            | State::Stopping { .. }
            | State::Exited { .. }
            | State::Fatal => {}
        }
    }

    /// What runs while the node stops has its signal in time.
    pub(super) fn be_quick(&self, ctx: &mut JobCtx<'_>) {
        if let Some(shutting) = ctx.shutting {
            let latest = shutting.latest_signal(ctx.plan.stop.timeout);
            ctx.wake(self.incarnation, Wait::StopTimeout, latest);
        }
    }

    /// exec has succeeded.
    pub(crate) fn spawned(&mut self, ctx: &mut JobCtx<'_>, incarnation: u64, pid: u32) {
        if incarnation <= self.ended || incarnation < self.incarnation {
            return;
        }
        if incarnation > self.incarnation || !self.holds() {
            self.adopt(ctx, incarnation);
        }
        let process = Process { pid, since: ctx.mono() };
        match &mut self.state {
            State::Starting { process: None } => self.confirm(ctx, process),
            State::Stopping { pid: known @ None, .. } => *known = Some(pid),
            State::Starting { process: Some(_) }
            | State::Running { .. }
            | State::Stopping { pid: Some(_), .. }
            | State::Stopped
            | State::Backoff { .. }
            | State::Exited { .. }
            | State::Fatal => {}
        }
    }

    fn confirm(&mut self, ctx: &mut JobCtx<'_>, process: Process) {
        let start_seconds = ctx.plan.start_seconds;
        if start_seconds.is_zero() {
            self.run(ctx, process);
        } else {
            self.state = State::Starting { process: Some(process) };
            ctx.wake(self.incarnation, Wait::Started, process.since.after(start_seconds));
        }
        self.limit_run(ctx);
        self.ask_checks(ctx);
    }

    pub(super) fn start_seconds_over(&mut self, ctx: &mut JobCtx<'_>) {
        match self.state {
            State::Starting { process: Some(process) } => {
                let at = process.since.after(ctx.plan.start_seconds);
                if ctx.mono() < at {
                    ctx.wake(self.incarnation, Wait::Started, at);
                } else {
                    self.run(ctx, process);
                }
            }
            State::Starting { process: None }
            | State::Stopped
            | State::Running { .. }
            | State::Backoff { .. }
            | State::Stopping { .. }
            | State::Exited { .. }
            | State::Fatal => {}
        }
    }

    fn run(&mut self, ctx: &mut JobCtx<'_>, process: Process) {
        self.enter(ctx, State::Running { process });
        if !self.is_restart_due() {
            self.pending_restart = PendingRestart::None;
        }
        self.weigh(ctx);
    }

    pub(super) fn backoff_over(&mut self, ctx: &mut JobCtx<'_>) {
        match self.state {
            State::Backoff { until } if ctx.mono() < until => {
                ctx.wake(self.incarnation, Wait::Backoff, until);
            }
            State::Backoff { .. } => {
                self.restarts += 1;
                self.launch(ctx);
            }
            State::Stopped
            | State::Starting { .. }
            | State::Running { .. }
            | State::Stopping { .. }
            | State::Exited { .. }
            | State::Fatal => {}
        }
    }
}

pub(super) fn is_triggered_at_once(plan: &JobPlan) -> bool {
    match plan.when.trigger {
        Some(Trigger::Interval(_)) => true,
        Some(Trigger::Each(_) | Trigger::Cron(_)) | None => false,
    }
}
