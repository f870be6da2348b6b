//! What a job does about what a new agent has found: see `takeover` for the table.

use super::{
    Desired, Force, Job, JobCtx, PendingRestart, StopStage,
    run::State,
    takeover::{Keeper, Takeover},
};
use crate::{
    exit::{Asked, Exit, KillReason},
    node::Wait,
};

impl Job {
    pub(super) fn attached(&mut self, ctx: &mut JobCtx<'_>, found: Takeover) {
        match found.keeper() {
            Keeper::Ahead { highest } => self.catch_up(ctx, highest),
            Keeper::Behind => self.never_spawned(ctx),
            Keeper::Level if found.is_over() && self.holds() => {}
            Keeper::Level => self.go_on(ctx),
        }
        if found.is_over() && self.holds() {
            self.end_was_lost(ctx, "its end was lost");
        }
        if let Some((incarnation, pid)) = found.live() {
            self.found_alive(ctx, incarnation, pid);
        }
        let rests = self.phase().is_at_rest() && self.desired() != Desired::Run;
        if found.is_open() && rests {
            ctx.rest(self.incarnation());
        }
        self.gate.rearm(ctx, self.run.incarnation());
        let presence = self.presence(ctx.plan);
        self.announcement.resume(ctx, &presence);
    }

    /// It may have a process as far as the journal knows; the keeper has none, and nothing to say.
    fn end_was_lost(&mut self, ctx: &mut JobCtx<'_>, error: &str) {
        let exit = Exit::Error { error: error.to_owned(), errno: 0 };
        self.exited(ctx, self.incarnation(), &exit, None, Asked::None);
    }

    /// The keeper is at the same incarnation: what is waited for is waited for again.
    fn go_on(&mut self, ctx: &mut JobCtx<'_>) {
        match self.run.state() {
            State::Starting { process: Some(process) } => {
                let at = process.since.after(ctx.plan.start_seconds);
                ctx.wake(self.incarnation(), Wait::Started, at);
                self.go_on_running(ctx);
            }
            State::Running { .. } => self.go_on_running(ctx),
            State::Backoff { until } => ctx.wake(self.incarnation(), Wait::Backoff, until),
            State::Stopping { .. } => {
                self.advance_stop(ctx, KillReason::StopTimeout, StopStage::resume);
            }
            State::Starting { process: None } => self.limit_stay(ctx),
            State::Stopped | State::Exited { .. } | State::Fatal => {}
        }
    }

    fn go_on_running(&mut self, ctx: &mut JobCtx<'_>) {
        self.run.resume_limit(ctx);
        self.checks.resume(ctx, &self.run);
        self.limit_stay(ctx);
    }

    /// The keeper has never seen this incarnation.
    fn never_spawned(&mut self, ctx: &mut JobCtx<'_>) {
        match self.run.state() {
            State::Starting { process: None } => self.spawn(ctx),
            State::Starting { process: Some(_) } | State::Running { .. } => {
                self.end_was_lost(ctx, "the keeper does not know this process");
            }
            State::Stopping { .. } => {
                self.run.end_unspawned();
                self.checks.lose_health(ctx);
                self.finish_stop(ctx);
            }
            // The number was taken by a spawn that was lost and no longer wanted.
            State::Backoff { .. } | State::Stopped | State::Exited { .. } | State::Fatal => {
                self.go_on(ctx);
            }
        }
    }

    /// The keeper is ahead. What was to run is taken to be the newest incarnation, of which the
    /// keeper will say that it lives or how it ended; what rests stays at rest until it does.
    fn catch_up(&mut self, ctx: &mut JobCtx<'_>, highest: u64) {
        match self.run.state() {
            State::Starting { .. }
            | State::Running { .. }
            | State::Backoff { .. }
            | State::Stopping { .. } => self.adopt(ctx, highest),
            State::Stopped | State::Exited { .. } | State::Fatal => self.run.catch_up(highest),
        }
    }

    fn found_alive(&mut self, ctx: &mut JobCtx<'_>, incarnation: u64, pid: u32) {
        if self.run.is_past(incarnation) {
            // Its end was told, yet it lives: whatever it is, it must not live beside the next.
            ctx.kill(incarnation);
            return;
        }
        self.spawned(ctx, incarnation, pid);
    }

    /// The keeper has an incarnation that this job does not know: its number counts, and it is
    /// what is being started, or stopped if that is what is going on.
    pub(super) fn adopt(&mut self, ctx: &mut JobCtx<'_>, incarnation: u64) {
        self.checks.lose_health(ctx);
        match (self.run.state(), self.desired()) {
            (State::Stopping { stage, .. }, Desired::Rest | Desired::Disabled) => {
                self.run.catch_up(incarnation);
                let target = self.stop_target(ctx.mono());
                let stage = stage.resume(ctx, target);
                return self.run.go_on_stopping(None, stage);
            }
            (State::Stopping { .. }, Desired::Run) => ctx.emit(self.run.stopped()),
            (
                State::Stopped
                | State::Starting { .. }
                | State::Running { .. }
                | State::Backoff { .. }
                | State::Exited { .. }
                | State::Fatal,
                Desired::Run | Desired::Rest | Desired::Disabled,
            ) => {}
        }
        let unwanted = self.desired() == Desired::Disabled;
        if !unwanted {
            self.wish.run();
        }
        self.run.adopt(incarnation);
        self.pending_restart = PendingRestart::None;
        self.checks.forget(ctx);
        self.run.enter(ctx, State::Starting { process: None });
        if unwanted {
            self.begin_stop(ctx, Force::Grace);
        } else if let Some(shutting) = ctx.shutting {
            self.stop(ctx, if shutting.killing { Force::Kill } else { Force::Grace });
        }
    }
}
