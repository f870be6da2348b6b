//! What a job does about what a new agent has found: see `takeover` for the table.

use super::{
    Desired, Force, Job, JobCtx, JobSummary, PendingRestart, Phase, StopStage,
    end::ended_well,
    gate::is_triggered,
    run::State,
    takeover::{Keeper, Takeover},
};
use crate::{
    exit::{Asked, Exit, KillReason},
    node::{Held, Wait},
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
        self.gate.rearm(ctx, self.run.incarnation());
        self.checks.rearm(ctx, &self.run);
        self.tell_again(ctx, found);
    }

    /// What the last agent may not have got to tell.
    fn tell_again(&mut self, ctx: &mut JobCtx<'_>, found: Takeover) {
        if found.is_open() && !self.run.is_of_this_life(self.incarnation()) {
            ctx.rest(self.incarnation());
        }
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

    /// The journal is lost, or a part of it: what the keeper has and remembers counts.
    pub(super) fn recover(&mut self, ctx: &mut JobCtx<'_>, held: Option<&Held>) {
        let found = Takeover::new(self.incarnation(), held);
        let highest = held.map_or(0, |held| held.highest).max(self.incarnation());
        let summary = held.and_then(|held| held.summary.as_ref());
        let launched = held.is_some_and(|held| held.highest > 0);
        self.pending_restart = PendingRestart::None;
        match summary {
            Some(summary) => self.wish.recall(summary.desired),
            // What nobody has stopped since its launch is to run.
            None if launched => self.wish.recall(Desired::Run),
            None => {}
        }
        // Its end was dealt with, whether or not that was acknowledged.
        let ended =
            summary.filter(|it| found.live().is_none() && (found.is_silent() || it.exit.is_some()));
        match (found.is_silent(), ended) {
            (_, Some(summary)) => self.recover_end(ctx, highest, summary),
            (false, None) => self.recover_process(ctx, found),
            (true, None) if highest > 0 => self.recover_wish(ctx, highest),
            (true, None) => {}
        }
        self.gate.recover(ctx, self.run.incarnation());
        self.checks.rearm(ctx, &self.run);
        self.tell_again(ctx, found);
    }

    /// A process of it is there, or how it came out follows. One that is not to run was being
    /// stopped: its hooks have run, or never will.
    fn recover_process(&mut self, ctx: &mut JobCtx<'_>, found: Takeover) {
        let known = self.holds() && found.keeper() == Keeper::Level;
        match (known, found.keeper()) {
            (true, _) => self.go_on(ctx),
            (false, Keeper::Ahead { highest }) => {
                self.run.adopt(highest);
                self.checks.rest();
                self.checks.forget(ctx);
                self.run.enter(ctx, State::Starting { process: None });
            }
            // Its end is in the journal, and the record of it is not acknowledged yet.
            (false, Keeper::Level | Keeper::Behind) => {}
        }
        if let Some((incarnation, pid)) = found.live() {
            self.found_alive(ctx, incarnation, pid);
        }
        let unwanted = match self.desired() {
            Desired::Run => false,
            Desired::Rest | Desired::Disabled => true,
        };
        match self.run.state() {
            State::Starting { .. } | State::Running { .. } if unwanted => {
                let target = self.stop_target(ctx.mono());
                let stage = StopStage::begin_without_hooks(ctx, target);
                self.run.enter(ctx, State::Stopping { pid: self.pid(), stage });
            }
            State::Starting { .. }
            | State::Running { .. }
            | State::Stopped
            | State::Backoff { .. }
            | State::Stopping { .. }
            | State::Exited { .. }
            | State::Fatal => {}
        }
    }

    /// It has ended, and is not to run.
    fn recover_end(&mut self, ctx: &mut JobCtx<'_>, highest: u64, summary: &JobSummary) {
        let exit = summary.exit.as_ref();
        let (end, run_end) = match summary.phase {
            Phase::Exited => (State::Exited { well: ended_well(ctx.plan, exit) }, exit),
            Phase::Fatal => (State::Fatal, exit),
            Phase::Stopped
            | Phase::Starting
            | Phase::Running
            | Phase::Backoff
            | Phase::Stopping
            | Phase::Unknown => (State::Stopped, None),
        };
        self.run.recall_end(highest, exit);
        self.gate.close();
        self.checks.rest();
        if highest > 0 {
            self.note_end(ctx.plan, run_end);
        }
        if self.run.state() != end {
            self.run.enter(ctx, end);
        }
    }

    /// It is to run, and has no process: it was to come back by policy, or waits for its trigger.
    fn recover_wish(&mut self, ctx: &mut JobCtx<'_>, highest: u64) {
        match self.run.state() {
            State::Backoff { until } if self.incarnation() == highest => {
                return ctx.wake(highest, Wait::Backoff, until);
            }
            State::Starting { .. }
            | State::Running { .. }
            | State::Stopping { .. }
            | State::Backoff { .. }
            | State::Stopped
            | State::Exited { .. }
            | State::Fatal => {}
        }
        self.run.recall_end(highest, None);
        self.checks.rest();
        let end = match is_triggered(ctx.plan) {
            true => State::Exited { well: true },
            false => {
                self.gate.reopen();
                State::Stopped
            }
        };
        if self.run.phase() != end.phase() {
            self.run.enter(ctx, end);
        }
    }

    /// The keeper has an incarnation that this job does not know: its number counts, and it is
    /// what is being started, or stopped if that is what is going on.
    pub(super) fn adopt(&mut self, ctx: &mut JobCtx<'_>, incarnation: u64) {
        self.checks.crashed(ctx);
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
