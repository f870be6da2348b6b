//! From the end of an incarnation to rest, or to the next one.
//!
//! | it was | and | then |
//! |---|---|---|
//! | STOPPING | | STOPPED; it waits for its launch if it is desired by now |
//! | up | somebody asked for the end behind our back | STOPPED, at rest |
//! | up | policy wants a restart | BACKOFF, or STARTING when there is nothing to wait for |
//! | up | policy wants one, its limit or its failed starts are used up | FATAL |
//! | up | policy wants none, or the node stops | EXITED; FATAL if it never ran |
//! | at rest | a run that the journal did not know | only told |

use super::{
    Desired, Force, Job, JobCtx, PendingRestart, Phase, STABLE, StopStage, gate::is_triggered,
    run::State, stop::StopTarget,
};
use crate::{
    clock::Mono,
    event::{EventName, Kind},
    exit::{Asked, Exit, KillReason, Usage},
    node::Wait,
    plan::{Awaited, DelayFrom, JobPlan, RestartOn},
};
use std::time::Duration;

impl Job {
    /// The process and its whole tree are gone, or it never ran.
    pub(super) fn exited(
        &mut self,
        ctx: &mut JobCtx<'_>,
        incarnation: u64,
        exit: &Exit,
        usage: Option<Usage>,
        asked: Asked,
    ) {
        if self.run.has_ended(incarnation) {
            return;
        }
        let expected = is_expected(ctx.plan, exit);
        // The kill of a run that was too long is not what anybody wanted of the job.
        let asked = if self.run.overran() { Asked::None } else { asked };
        if !self.is_wanted_end(incarnation, asked) {
            ctx.emit(if expected {
                Kind::ExitSuccess { incarnation, exit: exit.clone(), usage }
            } else {
                Kind::ExitFailed { incarnation, exit: exit.clone(), usage }
            });
        }
        if !self.run.end(incarnation, exit, usage) {
            return;
        }
        if asked == Asked::Kill {
            self.run.note_kill(KillReason::Asked);
        }
        match self.run.state() {
            State::Stopping { .. } => self.finish_stop(ctx),
            State::Starting { .. } | State::Running { .. } | State::Backoff { .. } => {
                self.pending_restart = PendingRestart::None;
                match asked {
                    Asked::Stop | Asked::Kill => self.end_desire(ctx, State::Stopped),
                    // Before it was told to stop.
                    Asked::None if ctx.leaving => self.end_desire(ctx, State::Stopped),
                    Asked::None => self.follow_policy(ctx, exit, expected),
                }
            }
            State::Stopped | State::Exited { .. } | State::Fatal => {
                self.pending_restart = PendingRestart::None;
                match self.desired() {
                    Desired::Run => {}
                    Desired::Rest | Desired::Disabled => self.run.end_life(ctx),
                }
            }
        }
    }

    /// Somebody has asked for this end: `stopped` is all that there is to say.
    fn is_wanted_end(&self, incarnation: u64, asked: Asked) -> bool {
        let phase = self.phase();
        let told = phase == Phase::Stopping || (asked != Asked::None && !phase.is_at_rest());
        told && incarnation >= self.incarnation()
    }

    fn follow_policy(&mut self, ctx: &mut JobCtx<'_>, exit: &Exit, expected: bool) {
        let ran = match exit {
            Exit::Code { .. } | Exit::Signal { .. } => true,
            Exit::Error { .. } => false,
        };
        let started = ran && self.has_started(ctx);
        let again = self.budget.note_start(ctx.plan.start_retries, started);
        let retried = ctx.plan.start_retries.is_some() && !started && !expected;
        if ctx.shutting.is_some() || !(wants_restart(ctx.plan, expected) || retried) {
            let end = if ran { State::Exited { well: expected } } else { State::Fatal };
            return self.end_run(ctx, end);
        }
        if !again {
            return self.end_run(ctx, State::Fatal);
        }
        let stable = self.was_stable(ctx.mono());
        let delay = self.budget.spend(&ctx.plan.restart, ctx.mono(), stable);
        match delay.map(|delay| delay.saturating_sub(self.counted_already(ctx))) {
            // Nothing has failed: it has run as often as it was to.
            None if expected && self.has_started(ctx) => {
                self.end_run(ctx, State::Exited { well: true });
            }
            None => self.end_run(ctx, State::Fatal),
            Some(Duration::ZERO) => {
                self.checks.crashed(ctx);
                self.run.count_restart();
                self.launch(ctx);
            }
            Some(delay) => {
                self.checks.crashed(ctx);
                self.back_off(ctx, delay);
            }
        }
    }

    /// How much of a delay was over when the run ended.
    fn counted_already(&self, ctx: &JobCtx<'_>) -> Duration {
        match ctx.plan.restart.from {
            DelayFrom::End => Duration::ZERO,
            DelayFrom::Start => {
                let process = self.run.process();
                process.map(|process| ctx.mono().since(process.since)).unwrap_or_default()
            }
        }
    }

    fn back_off(&mut self, ctx: &mut JobCtx<'_>, delay: Duration) {
        let until = ctx.mono().after(delay);
        self.run.enter(ctx, State::Backoff { until });
        ctx.wake(self.incarnation(), Wait::Backoff, until);
    }

    /// It got past `start_seconds`.
    fn has_started(&self, ctx: &JobCtx<'_>) -> bool {
        match self.run.state() {
            State::Running { .. } => true,
            State::Starting { .. } => ctx.plan.start_seconds.is_zero(),
            State::Stopped
            | State::Backoff { .. }
            | State::Stopping { .. }
            | State::Exited { .. }
            | State::Fatal => false,
        }
    }

    /// One that never got past `start_seconds` was not stable, however long they are.
    fn was_stable(&self, now: Mono) -> bool {
        match self.run.state() {
            State::Running { process } => now.since(process.since) >= STABLE,
            State::Stopped
            | State::Starting { .. }
            | State::Backoff { .. }
            | State::Stopping { .. }
            | State::Exited { .. }
            | State::Fatal => false,
        }
    }

    /// No restart follows. A job with a trigger is still wanted: the next one starts it, in the same
    /// life; while the node stops, only another's end that has come already does. So is one that
    /// runs for another's end, if there is another end to come.
    fn end_run(&mut self, ctx: &mut JobCtx<'_>, end: State) {
        if end != (State::Exited { well: true }) {
            self.checks.give_up(ctx);
        }
        match self.desired() {
            Desired::Run if is_triggered(ctx.plan) && self.awaits_trigger(ctx) => {
                self.checks.rest();
                self.pause(ctx, end);
            }
            Desired::Run if self.gate.runs_again() => {
                self.gate.close();
                self.checks.rest();
                ctx.emit(Kind::Stopping);
                self.come_to_rest(ctx, end);
            }
            Desired::Run | Desired::Rest | Desired::Disabled => self.end_desire(ctx, end),
        }
    }

    fn awaits_trigger(&self, ctx: &JobCtx<'_>) -> bool {
        ctx.shutting.is_none() || (ctx.is_hook && self.gate.has_trigger())
    }

    /// Nothing follows, and nothing is left to be stopped.
    pub(super) fn end_desire(&mut self, ctx: &mut JobCtx<'_>, end: State) {
        self.rest();
        self.checks.rest();
        ctx.emit(Kind::Stopping);
        self.come_to_rest(ctx, end);
    }

    /// From now on nothing but a user makes it run.
    pub(super) fn rest(&mut self) {
        self.wish.rest();
        self.gate.close();
        self.checks.expect_nothing();
        self.pending_restart = PendingRestart::None;
    }

    /// What was being stopped is gone. One that is desired by now waits for its launch.
    pub(super) fn finish_stop(&mut self, ctx: &mut JobCtx<'_>) {
        if ctx.leaving {
            self.pending_restart = PendingRestart::None;
        }
        match self.desired() {
            Desired::Run => self.checks.restarted(ctx),
            Desired::Rest | Desired::Disabled => self.checks.rest(),
        }
        self.come_to_rest(ctx, State::Stopped);
    }

    /// The end of a life.
    fn come_to_rest(&mut self, ctx: &mut JobCtx<'_>, end: State) {
        ctx.emit(self.run.stopped());
        self.gate.await_stopped_hooks(ctx, self.run.incarnation());
        self.pause(ctx, end);
        self.run.end_life(ctx);
    }

    /// The end of a run, which may not be that of its life.
    fn pause(&mut self, ctx: &mut JobCtx<'_>, end: State) {
        self.gate.end_hook_run();
        self.run.enter(ctx, end);
    }

    /// It shall rest.
    pub(super) fn stop(&mut self, ctx: &mut JobCtx<'_>, force: Force) {
        let wanted = self.desired();
        self.rest();
        match self.run.state() {
            State::Stopped => {}
            State::Exited { .. } | State::Fatal => match wanted {
                // It was between two runs, which it is no longer.
                Desired::Run if self.is_between_lives() => self.run.enter(ctx, State::Stopped),
                Desired::Run => self.end_desire(ctx, State::Stopped),
                Desired::Rest | Desired::Disabled => {}
            },
            State::Backoff { .. } => {
                self.history.forget_health();
                self.end_desire(ctx, State::Stopped);
            }
            State::Starting { .. } | State::Running { .. } => self.begin_stop(ctx, force),
            State::Stopping { .. } => {
                let why = kill_reason(ctx, force);
                self.advance_stop(ctx, why, |stage, ctx, target| {
                    stage.ask_again(ctx, target, force)
                });
            }
        }
    }

    /// A user does not want to see it run until further notice.
    pub(super) fn disable(&mut self, ctx: &mut JobCtx<'_>) {
        if self.desired() == Desired::Disabled {
            return;
        }
        ctx.emit(Kind::Disabled);
        self.stop(ctx, Force::Grace);
        self.wish.disable();
    }

    /// What it follows is down: it goes down as well, and comes back with it.
    pub(super) fn follow_down(&mut self, ctx: &mut JobCtx<'_>) {
        match self.run.state() {
            State::Starting { .. } | State::Running { .. } => {
                self.gate.reopen();
                self.checks.goes_down();
                self.begin_stop(ctx, Force::Grace);
            }
            State::Backoff { .. } => {
                self.gate.reopen();
                self.checks.goes_down();
                self.history.forget_health();
                ctx.emit(Kind::Stopping);
                self.come_to_rest(ctx, State::Stopped);
            }
            State::Stopped | State::Stopping { .. } | State::Exited { .. } | State::Fatal => {}
        }
    }

    /// What it follows is back, and it shall begin anew with it.
    pub(super) fn follow_up(&mut self, ctx: &mut JobCtx<'_>) {
        match (self.run.state(), self.desired()) {
            (State::Starting { .. } | State::Running { .. }, Desired::Run) => {
                self.gate.reopen();
                self.begin_stop(ctx, Force::Grace);
            }
            (State::Starting { .. } | State::Running { .. }, Desired::Rest | Desired::Disabled)
            | (
                State::Stopped
                | State::Backoff { .. }
                | State::Stopping { .. }
                | State::Exited { .. }
                | State::Fatal,
                Desired::Run | Desired::Rest | Desired::Disabled,
            ) => {}
        }
    }

    /// Only with a process that may exist.
    pub(super) fn begin_stop(&mut self, ctx: &mut JobCtx<'_>, force: Force) {
        self.history.forget_health();
        ctx.emit(Kind::Stopping);
        self.announcement.withdraw(ctx);
        let target = self.stop_target(ctx.mono());
        let stage = StopStage::begin(ctx, target, force);
        if stage == StopStage::Killed {
            self.run.note_kill(kill_reason(ctx, force));
        }
        self.run.enter(ctx, State::Stopping { pid: self.pid(), stage });
    }

    pub(super) fn stop_target(&self, now: Mono) -> StopTarget {
        let withdrawing_until = self.announcement.withdrawing_until(now);
        StopTarget::new(self.incarnation(), self.pid(), withdrawing_until)
    }

    /// Something has happened to a stop that is under way; `why`: the reason if it comes to a kill.
    pub(super) fn advance_stop(
        &mut self,
        ctx: &mut JobCtx<'_>,
        why: KillReason,
        next: impl FnOnce(StopStage, &mut JobCtx<'_>, StopTarget) -> StopStage,
    ) {
        if let State::Stopping { pid, stage } = self.run.state() {
            let target = self.stop_target(ctx.mono());
            let next = next(stage, ctx, target);
            if next == StopStage::Killed {
                self.run.note_kill(why);
            }
            self.run.go_on_stopping(pid, next);
        }
    }

    /// The stop timeout, of a stop or of what is left running for one.
    pub(super) fn stop_timeout_over(&mut self, ctx: &mut JobCtx<'_>) {
        match self.run.state() {
            State::Stopping { .. } => {
                let why = kill_reason(ctx, Force::Grace);
                self.advance_stop(ctx, why, StopStage::timeout_over);
            }
            State::Starting { .. } | State::Running { .. } => self.wait_no_longer(ctx),
            State::Stopped | State::Exited { .. } | State::Fatal => {
                self.gate.stopped_hooks_over(ctx, self.run.incarnation());
            }
            State::Backoff { .. } => {}
        }
    }

    /// The node stops, and whatever this job was left running for has had its time.
    fn wait_no_longer(&mut self, ctx: &mut JobCtx<'_>) {
        let Some(shutting) = ctx.shutting else {
            self.gate.hook_run_over(ctx, self.run.incarnation());
            // Nobody waits for it any more, and it is not in the plan.
            if ctx.leaving && !self.gate.is_hook_run() {
                self.stop(ctx, Force::Grace);
            }
            return;
        };
        if ctx.mono() < shutting.latest_signal(ctx.plan.stop.timeout) {
            self.run.be_quick(ctx);
        } else {
            self.stop(ctx, Force::Grace);
        }
    }

    /// A run that is longer than `timeout` is killed. Nobody wanted that end: it is a failure, and
    /// policy decides what follows.
    pub(super) fn longest_run_over(&mut self, ctx: &mut JobCtx<'_>) {
        let (Some(process), Some(timeout)) = (self.run.process(), ctx.plan.timeout) else { return };
        let at = process.since.after(timeout);
        if ctx.mono() < at {
            return ctx.wake(self.incarnation(), Wait::Longest, at);
        }
        self.run.overrun(ctx);
    }
}

/// Why a stop that is asked for like that comes to a kill now.
fn kill_reason(ctx: &JobCtx<'_>, force: Force) -> KillReason {
    match (force, ctx.shutting) {
        (_, Some(shutting)) if shutting.killing || ctx.mono() >= shutting.kill_by => {
            KillReason::Shutdown
        }
        (Force::Kill, _) => KillReason::Asked,
        (Force::Grace, _) => KillReason::StopTimeout,
    }
}

/// A job says it when its process is gone and does not come back by itself. What waits for a hook
/// waits for that.
pub(crate) const LAST_EVENT: EventName = EventName::Stopped;

impl Job {
    /// What its end has said, as far as that can be told from how it ended.
    pub(super) fn note_end(&mut self, plan: &JobPlan, exit: Option<&Exit>) {
        let run_end = exit.map(|exit| match is_expected(plan, exit) {
            true => EventName::ExitSuccess,
            false => EventName::ExitFailed,
        });
        for event in run_end.into_iter().chain([EventName::Stopping, LAST_EVENT]) {
            self.history.note(Awaited::Event(event));
        }
    }
}

/// Whether a run that ended like this ended as expected.
pub(super) fn ended_well(plan: &JobPlan, exit: Option<&Exit>) -> bool {
    exit.is_some_and(|exit| is_expected(plan, exit))
}

fn is_expected(plan: &JobPlan, exit: &Exit) -> bool {
    match exit {
        Exit::Code { code } => plan.exit_codes.contains(code),
        Exit::Signal { .. } | Exit::Error { .. } => false,
    }
}

fn wants_restart(plan: &JobPlan, expected: bool) -> bool {
    match plan.restart.on {
        RestartOn::Never => false,
        RestartOn::Failure => !expected,
        RestartOn::Any => true,
    }
}
