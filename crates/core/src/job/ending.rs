//! An incarnation has ended: what is said about it, and whether another one follows.
//!
//! | it was | and | then |
//! |---|---|---|
//! | STOPPING | | STOPPED; it waits for its launch if it is desired by now |
//! | up | somebody asked for the end behind our back | STOPPED, at rest |
//! | up | policy wants a restart | BACKOFF, or STARTING when there is nothing to wait for |
//! | up | policy wants one, its limit is used up | FATAL |
//! | up | policy wants none, or the node stops | EXITED; FATAL if it never ran |
//! | at rest | a run that the journal did not know | only told |

use super::{
    Desired, Health, Job, JobCtx, PendingRestart, Resting, State, budget::STABLE, is_triggered,
};
use crate::{
    event::Kind,
    exit::{Asked, Exit},
    node::Wait,
    plan::{JobPlan, RestartOn},
};
use std::time::Duration;

impl Job {
    /// The process and its whole tree are gone, or it never ran.
    pub(crate) fn exited(
        &mut self,
        ctx: &mut JobCtx<'_>,
        incarnation: u64,
        exit: &Exit,
        asked: Asked,
    ) {
        if incarnation <= self.ended {
            return;
        }
        self.ended = incarnation;
        let expected = is_expected(ctx.plan, exit);
        ctx.emit(if expected {
            Kind::ExitSuccess { incarnation, exit: exit.clone() }
        } else {
            Kind::ExitFailed { incarnation, exit: exit.clone() }
        });
        self.last_exit = Some(exit.clone());
        if incarnation < self.incarnation {
            // A later one is known to have been started: what follows was decided already.
            return;
        }
        self.incarnation = incarnation;
        self.lose_health(ctx);
        // The kill of a run that was too long is not what anybody wanted of the job.
        let asked = if self.overran == Some(incarnation) { Asked::None } else { asked };
        match self.state {
            State::Stopping { .. } => {}
            State::Stopped
            | State::Starting { .. }
            | State::Running { .. }
            | State::Backoff { .. }
            | State::Exited { .. }
            | State::Fatal => self.pending_restart = PendingRestart::None,
        }
        match self.state {
            State::Stopping { .. } => self.finish_stop(ctx),
            State::Starting { .. } | State::Running { .. } | State::Backoff { .. } => match asked {
                Asked::Stop | Asked::Kill => self.end_desire(ctx, State::Stopped),
                // Before its turn to be stopped has come.
                Asked::None if self.leaving => self.end_desire(ctx, State::Stopped),
                Asked::None => self.follow_policy(ctx, exit, expected),
            },
            State::Stopped | State::Exited { .. } | State::Fatal => {}
        }
    }

    fn follow_policy(&mut self, ctx: &mut JobCtx<'_>, exit: &Exit, expected: bool) {
        if ctx.shutting.is_some() || !wants_restart(ctx.plan, expected) {
            let ran = match exit {
                Exit::Code { .. } | Exit::Signal { .. } => true,
                Exit::Error { .. } => false,
            };
            let end = if ran { State::Exited { well: expected } } else { State::Fatal };
            return self.end_run(ctx, end);
        }
        let stable = self.was_stable(ctx);
        match self.budget.spend(&ctx.plan.restart, ctx.mono(), stable) {
            // Nothing has failed: it has run as often as it was to.
            None if expected && self.has_started(ctx) => {
                self.end_run(ctx, State::Exited { well: true });
            }
            None => self.end_run(ctx, State::Fatal),
            Some(Duration::ZERO) => {
                self.restarts += 1;
                self.launch(ctx);
            }
            Some(delay) => {
                let until = ctx.mono().after(delay);
                self.enter(ctx, State::Backoff { until });
                ctx.wake(self.incarnation, Wait::Backoff, until);
            }
        }
    }

    /// It got past `start_seconds`.
    fn has_started(&self, ctx: &JobCtx<'_>) -> bool {
        match self.state {
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
    fn was_stable(&self, ctx: &JobCtx<'_>) -> bool {
        match self.state {
            State::Running { process } => ctx.mono().since(process.since) >= STABLE,
            State::Stopped
            | State::Starting { .. }
            | State::Backoff { .. }
            | State::Stopping { .. }
            | State::Exited { .. }
            | State::Fatal => false,
        }
    }

    /// No restart follows. A job with a trigger stays desired: the next one starts it.
    fn end_run(&mut self, ctx: &mut JobCtx<'_>, end: State) {
        match self.desired {
            Desired::Run if is_triggered(ctx.plan) && ctx.shutting.is_none() => {
                ctx.emit(Kind::Stopping);
                self.come_to_rest(ctx, end);
            }
            Desired::Run | Desired::Rest | Desired::Disabled => self.end_desire(ctx, end),
        }
    }

    /// Nothing follows, and nothing is left to be stopped.
    pub(super) fn end_desire(&mut self, ctx: &mut JobCtx<'_>, end: State) {
        self.rest();
        ctx.emit(Kind::Stopping);
        self.come_to_rest(ctx, end);
    }

    /// From now on nothing but a user makes it run.
    pub(super) fn rest(&mut self) {
        self.desired = match self.desired {
            Desired::Run | Desired::Rest => Desired::Rest,
            Desired::Disabled => Desired::Disabled,
        };
        self.resting = Resting::User;
        (self.gate.pending, self.gate.now, self.gate.idle) = (false, false, false);
        self.args.clear();
        self.pending_restart = PendingRestart::None;
    }

    /// What was being stopped is gone. One that is desired by now waits for its launch.
    pub(super) fn finish_stop(&mut self, ctx: &mut JobCtx<'_>) {
        if self.leaving {
            self.pending_restart = PendingRestart::None;
        }
        self.come_to_rest(ctx, State::Stopped);
    }

    pub(super) fn come_to_rest(&mut self, ctx: &mut JobCtx<'_>, end: State) {
        (self.gate.hook_run, self.gate.hook_run_until) = (false, None);
        self.health = Health::Unknown;
        ctx.emit(Kind::Stopped);
        self.enter(ctx, end);
    }
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
