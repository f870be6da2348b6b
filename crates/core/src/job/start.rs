//! From the wish to RUNNING.

use super::{
    Budget, Desired, Force, Job, JobCtx, PendingRestart,
    gate::{Permit, is_triggered, is_triggered_at_once},
    run::{Process, State},
};
use crate::{
    event::{History, Kind},
    node::{Refusal, Wait},
};

impl Job {
    /// Arguments that a running process does not have cannot be given to it.
    pub(super) fn asked_to_start(
        &mut self,
        ctx: &mut JobCtx<'_>,
        args: Option<Vec<String>>,
        now: bool,
    ) -> Result<(), Refusal> {
        let others = args.as_ref().is_some_and(|args| *args != self.wish.args());
        if others && self.phase().is_up() {
            return Err(Refusal::RunsAlready(ctx.plan.name.clone()));
        }
        self.start(ctx, args, now);
        Ok(())
    }

    /// A user's start: a new budget, and no more waiting for time to pass. What else it waits for
    /// it goes on waiting for, `now` without its latches.
    fn start(&mut self, ctx: &mut JobCtx<'_>, args: Option<Vec<String>>, now: bool) {
        match self.run.state() {
            State::Stopped | State::Exited { .. } | State::Fatal => {
                self.want_anew(args);
                self.gate.skip_latches(now);
                self.await_launch(ctx);
            }
            State::Backoff { .. } => {
                self.want_anew(args);
                self.launch(ctx);
            }
            State::Stopping { .. } => {
                self.want_anew(args);
                self.gate.skip_latches(true);
            }
            State::Starting { .. } | State::Running { .. } => {}
        }
    }

    /// A user's restart: what has a process is stopped first.
    pub(super) fn restart(&mut self, ctx: &mut JobCtx<'_>, args: Option<Vec<String>>) {
        match self.run.state() {
            State::Starting { .. } | State::Running { .. } => {
                self.want_anew(args);
                self.gate.skip_latches(true);
                self.begin_stop(ctx, Force::Grace);
            }
            State::Stopped
            | State::Backoff { .. }
            | State::Stopping { .. }
            | State::Exited { .. }
            | State::Fatal => self.start(ctx, args, false),
        }
    }

    /// A user's restart of several: what has a process is stopped in its turn.
    pub(super) fn restart_in_order(&mut self, ctx: &mut JobCtx<'_>, args: Option<Vec<String>>) {
        if self.phase().is_up() {
            self.want_anew(args);
            self.pending_restart = PendingRestart::Due;
        } else {
            self.restart(ctx, args);
        }
    }

    /// A job whose end it runs for has begun another life: it waits for that one's end as well,
    /// unless a user does not want it, or its app has not come to it.
    pub(super) fn await_next_end(&mut self) {
        match (self.run.state(), self.desired()) {
            (State::Exited { .. } | State::Fatal, Desired::Rest) => {
                self.wish.run();
                self.budget = Budget::default();
            }
            (
                State::Starting { .. } | State::Running { .. } | State::Backoff { .. },
                Desired::Run,
            ) => {
                self.gate.run_again();
            }
            (State::Exited { .. } | State::Fatal, Desired::Run | Desired::Disabled)
            | (
                State::Starting { .. } | State::Running { .. } | State::Backoff { .. },
                Desired::Rest | Desired::Disabled,
            )
            | (
                State::Stopped | State::Stopping { .. },
                Desired::Run | Desired::Rest | Desired::Disabled,
            ) => {}
        }
    }

    /// It runs for an end of before, and the next one is to come: what runs ends by itself.
    pub(super) fn stay_for_end(&mut self) {
        if self.phase().is_up() {
            self.gate.stay_for_end();
        }
    }

    fn want_anew(&mut self, args: Option<Vec<String>>) {
        self.wish.run_with(args);
        self.budget = Budget::default();
        self.gate.trigger();
    }

    /// As if the plan had just come to want it; `rests`: to know it.
    pub(super) fn enable(&mut self, ctx: &mut JobCtx<'_>, rests: bool) {
        if self.desired() != Desired::Disabled {
            return;
        }
        ctx.emit(Kind::Enabled);
        self.budget = Budget::default();
        if rests {
            return self.wish.recall(Desired::Rest);
        }
        self.wish.run();
        self.gate.set_trigger(is_triggered_at_once(ctx.plan));
    }

    /// The plan has just come to want it: its clocks start.
    pub(super) fn arm(&mut self, ctx: &mut JobCtx<'_>) {
        self.gate.arm(ctx, self.desired() == Desired::Run);
        self.await_launch(ctx);
    }

    /// What it waits for has so long from now.
    pub(super) fn await_launch(&mut self, ctx: &mut JobCtx<'_>) {
        let waits = self.waits();
        let first = self.incarnation() == 0 || !is_triggered(ctx.plan);
        self.gate.limit_wait(ctx, waits && first);
        if waits || self.since() == 0 {
            self.run.stamp(ctx);
        }
    }

    /// Its app has come to it.
    pub(super) fn order(&mut self, ctx: &mut JobCtx<'_>) {
        match (self.run.state(), self.desired()) {
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

    /// It waited, failed or was given up before.
    pub(super) fn revive(&mut self, ctx: &JobCtx<'_>) {
        match self.desired() {
            Desired::Rest => {
                self.wish.run();
                self.budget = Budget::default();
                self.gate.set_trigger(!is_triggered(ctx.plan) || is_triggered_at_once(ctx.plan));
            }
            Desired::Run | Desired::Disabled => {}
        }
    }

    /// Its trigger has come.
    pub(super) fn trigger(&mut self) {
        match self.desired() {
            Desired::Run => self.gate.trigger(),
            Desired::Rest | Desired::Disabled => {}
        }
    }

    /// What the node lets it do while it waits. What waits for something else than its place in a
    /// reload does not hold up others.
    pub(super) fn permitted(&mut self, ctx: &mut JobCtx<'_>, permit: Permit) {
        match permit {
            Permit::Launch { hook_run } => {
                self.gate.pass(ctx, hook_run);
                self.launch(ctx);
            }
            Permit::Idle => {
                self.pending_restart = PendingRestart::None;
                self.keep_waiting(ctx, true);
            }
            Permit::Wait { in_line } => {
                if !in_line {
                    self.pending_restart = PendingRestart::None;
                }
                self.keep_waiting(ctx, false);
            }
        }
    }

    fn keep_waiting(&mut self, ctx: &mut JobCtx<'_>, idle: bool) {
        self.gate.wait(idle);
        match self.run.state() {
            // Between two runs of a triggered job its last end is what there is to see.
            State::Exited { .. } | State::Fatal if !is_triggered(ctx.plan) => {
                self.run.enter(ctx, State::Stopped);
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

    /// Only from a state without a process.
    pub(super) fn launch(&mut self, ctx: &mut JobCtx<'_>) {
        if self.is_between_lives() {
            self.history = History::default();
        }
        self.run.begin();
        self.checks.forget(ctx);
        self.run.enter(ctx, State::Starting { process: None });
        self.spawn(ctx);
    }

    pub(super) fn spawn(&mut self, ctx: &mut JobCtx<'_>) {
        ctx.spawn(self.incarnation(), self.wish.args());
        self.limit_stay(ctx);
    }

    /// What runs on behalf of an end, or while the node stops, has only so long.
    pub(super) fn limit_stay(&self, ctx: &mut JobCtx<'_>) {
        self.run.be_quick(ctx);
        self.gate.limit_hook_run(ctx, self.incarnation());
    }

    /// exec has succeeded.
    pub(super) fn spawned(&mut self, ctx: &mut JobCtx<'_>, incarnation: u64, pid: u32) {
        if self.run.is_past(incarnation) {
            return;
        }
        if incarnation > self.incarnation() || !self.holds() {
            self.adopt(ctx, incarnation);
        }
        let process = Process { pid, since: ctx.mono() };
        match self.run.state() {
            State::Starting { process: None } => self.confirm(ctx, process),
            State::Stopping { pid: None, stage } => self.run.go_on_stopping(Some(pid), stage),
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
            self.come_up(ctx, process);
        } else {
            self.run.confirm(process);
            ctx.wake(self.incarnation(), Wait::Started, process.since.after(start_seconds));
        }
        self.run.limit(ctx);
        self.checks.ask_all(ctx, &self.run);
    }

    pub(super) fn start_seconds_over(&mut self, ctx: &mut JobCtx<'_>) {
        match self.run.state() {
            State::Starting { process: Some(process) } => {
                let at = process.since.after(ctx.plan.start_seconds);
                if ctx.mono() < at {
                    ctx.wake(self.incarnation(), Wait::Started, at);
                } else {
                    self.come_up(ctx, process);
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

    fn come_up(&mut self, ctx: &mut JobCtx<'_>, process: Process) {
        self.run.enter(ctx, State::Running { process });
        if !self.pending_restart.is_due() {
            self.pending_restart = PendingRestart::None;
        }
        self.checks.weigh(ctx, &self.run);
    }

    pub(super) fn backoff_over(&mut self, ctx: &mut JobCtx<'_>) {
        match self.run.state() {
            State::Backoff { until } if ctx.mono() < until => {
                ctx.wake(self.incarnation(), Wait::Backoff, until);
            }
            State::Backoff { .. } => {
                self.run.count_restart();
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
