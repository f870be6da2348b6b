//! What a new agent finds: the journal says what was decided, the keeper says what exists.
//!
//! A decision is journaled before its commands are carried out, and an exit record is acknowledged
//! after the decision that follows from it is journaled. So a command may be missing (and is said
//! again), an exit may be unheard (and its record follows), but nothing the keeper has done is
//! unknown, unless the journal lost its tail. Then the keeper is ahead, and what it holds is
//! adopted; what it neither holds nor has a record of ended without anybody knowing how.
//!
//! | journal | keeper | then |
//! |---|---|---|
//! | may have a process | has it | go on; waits are set again |
//! | may have a process | had it | its exit record follows |
//! | may have a process | had it, and has no record | its end was lost, as if it had failed |
//! | STARTING, unconfirmed | never had it | the spawn was lost: again |
//! | up | never had it | it is lost, as if it had failed |
//! | STOPPING | never had it | the spawn was lost, and need not be: STOPPED |
//! | any | has a newer one | adopted |
//! | any | had a newer one | the number is taken; its exit record may follow |

use super::{Desired, Job, JobCtx, PendingRestart, State, stop::Force};
use crate::{
    event::Kind,
    exit::{Asked, Exit},
    node::{Held, Wait},
};
use std::cmp::Ordering;

impl Job {
    /// `held`: what the keeper has of it, if it ever had anything.
    pub(crate) fn attached(&mut self, ctx: &mut JobCtx<'_>, held: Option<&Held>) {
        let live = held.and_then(|held| held.live);
        let highest = held.map_or(0, |held| held.highest);
        let highest = live.map_or(highest, |(incarnation, _)| highest.max(incarnation));
        let silent = live.is_none() && !held.is_some_and(|held| held.pending);
        let over = silent && highest >= self.incarnation;
        match highest.cmp(&self.incarnation) {
            Ordering::Greater => self.catch_up(ctx, highest),
            Ordering::Less => self.never_spawned(ctx),
            Ordering::Equal if over && self.holds() => {}
            Ordering::Equal => self.go_on(ctx),
        }
        if over && self.holds() {
            self.end_was_lost(ctx);
        }
        if let Some((incarnation, pid)) = live {
            self.found_alive(ctx, incarnation, pid);
        }
        self.rearm(ctx);
        self.announce_again(ctx);
    }

    /// It may have a process as far as the journal knows; the keeper has none, and nothing to say.
    fn end_was_lost(&mut self, ctx: &mut JobCtx<'_>) {
        let exit = Exit::Error { error: "its end was lost".to_owned(), errno: 0 };
        self.exited(ctx, self.incarnation, &exit, Asked::None);
    }

    /// The keeper is at the same incarnation: what is waited for is waited for again.
    fn go_on(&mut self, ctx: &mut JobCtx<'_>) {
        match self.state {
            State::Starting { process: Some(process) } => {
                let at = process.since.after(ctx.plan.start_seconds);
                ctx.wake(self.incarnation, Wait::Started, at);
                self.go_on_running(ctx);
            }
            State::Running { .. } => self.go_on_running(ctx),
            State::Backoff { until } => ctx.wake(self.incarnation, Wait::Backoff, until),
            State::Stopping { pid, stage } => {
                let stage = self.resume_stop(ctx, stage);
                self.state = State::Stopping { pid, stage };
            }
            State::Starting { process: None } => {
                self.be_quick(ctx);
                self.limit_hook_run(ctx);
            }
            State::Stopped | State::Exited { .. } | State::Fatal => {}
        }
    }

    fn go_on_running(&mut self, ctx: &mut JobCtx<'_>) {
        self.resume_limit(ctx);
        self.resume_checks(ctx);
        self.be_quick(ctx);
        self.limit_hook_run(ctx);
    }

    /// The keeper has never seen this incarnation.
    fn never_spawned(&mut self, ctx: &mut JobCtx<'_>) {
        match self.state {
            State::Starting { process: None } => {
                ctx.spawn(self.incarnation, &self.args);
                self.be_quick(ctx);
                self.limit_hook_run(ctx);
            }
            State::Starting { process: Some(_) } | State::Running { .. } => {
                let error = "the keeper does not know this process".to_owned();
                let exit = Exit::Error { error, errno: 0 };
                self.exited(ctx, self.incarnation, &exit, Asked::None);
            }
            State::Stopping { .. } => {
                self.ended = self.incarnation;
                self.lose_health(ctx);
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
        match self.state {
            State::Starting { .. }
            | State::Running { .. }
            | State::Backoff { .. }
            | State::Stopping { .. } => self.adopt(ctx, highest),
            State::Stopped | State::Exited { .. } | State::Fatal => self.incarnation = highest,
        }
    }

    fn found_alive(&mut self, ctx: &mut JobCtx<'_>, incarnation: u64, pid: u32) {
        if incarnation <= self.ended || incarnation < self.incarnation {
            // Its end was told, yet it lives: whatever it is, it must not live beside the next.
            ctx.kill(incarnation);
            return;
        }
        self.spawned(ctx, incarnation, pid);
    }

    /// The keeper has an incarnation that this job does not know: its number counts, and it is
    /// what is being started, or stopped if that is what is going on.
    pub(super) fn adopt(&mut self, ctx: &mut JobCtx<'_>, incarnation: u64) {
        self.lose_health(ctx);
        self.incarnation = incarnation;
        match (&self.state, self.desired) {
            (State::Stopping { stage, .. }, Desired::Rest | Desired::Disabled) => {
                let stage = self.resume_stop(ctx, *stage);
                self.state = State::Stopping { pid: None, stage };
                return;
            }
            (State::Stopping { .. }, Desired::Run) => ctx.emit(Kind::Stopped),
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
        let unwanted = self.desired == Desired::Disabled;
        if !unwanted {
            self.desired = Desired::Run;
        }
        self.overran = None;
        self.pending_restart = PendingRestart::None;
        self.forget_checks(ctx);
        self.enter(ctx, State::Starting { process: None });
        if unwanted {
            self.begin_stop(ctx, Force::Grace);
        } else if let Some(shutting) = ctx.shutting {
            self.stop(ctx, if shutting.killing { Force::Kill } else { Force::Grace });
        }
    }
}
