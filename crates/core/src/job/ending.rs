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

use super::{Desired, Health, Job, Renewal, Resting, State, Turn, budget::STABLE, is_triggered};
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
        turn: &mut Turn<'_>,
        incarnation: u64,
        exit: &Exit,
        asked: Asked,
    ) {
        if incarnation <= self.ended {
            return;
        }
        self.ended = incarnation;
        let expected = is_expected(turn.plan, exit);
        turn.emit(if expected {
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
        self.lose_health(turn);
        // The kill of a run that was too long is not what anybody wanted of the job.
        let asked = if self.overran == Some(incarnation) { Asked::None } else { asked };
        match self.state {
            State::Stopping { .. } => {}
            State::Stopped
            | State::Starting { .. }
            | State::Running { .. }
            | State::Backoff { .. }
            | State::Exited { .. }
            | State::Fatal => self.renewal = Renewal::None,
        }
        match self.state {
            State::Stopping { .. } => self.finish_stop(turn),
            State::Starting { .. } | State::Running { .. } | State::Backoff { .. } => match asked {
                Asked::Stop | Asked::Kill => self.end_desire(turn, State::Stopped),
                // Before its turn to be stopped has come.
                Asked::None if self.leaving => self.end_desire(turn, State::Stopped),
                Asked::None => self.follow_policy(turn, exit, expected),
            },
            State::Stopped | State::Exited { .. } | State::Fatal => {}
        }
    }

    fn follow_policy(&mut self, turn: &mut Turn<'_>, exit: &Exit, expected: bool) {
        if turn.shutting.is_some() || !wants_restart(turn.plan, expected) {
            let ran = match exit {
                Exit::Code { .. } | Exit::Signal { .. } => true,
                Exit::Error { .. } => false,
            };
            let end = if ran { State::Exited { well: expected } } else { State::Fatal };
            return self.end_run(turn, end);
        }
        let stable = self.was_stable(turn);
        match self.budget.spend(&turn.plan.restart, turn.mono(), stable) {
            // Nothing has failed: it has run as often as it was to.
            None if expected && self.has_started(turn) => {
                self.end_run(turn, State::Exited { well: true });
            }
            None => self.end_run(turn, State::Fatal),
            Some(Duration::ZERO) => {
                self.restarts += 1;
                self.launch(turn);
            }
            Some(delay) => {
                let until = turn.mono().after(delay);
                self.enter(turn, State::Backoff { until });
                turn.wake(self.incarnation, Wait::Backoff, until);
            }
        }
    }

    /// It got past `start_seconds`.
    fn has_started(&self, turn: &Turn<'_>) -> bool {
        match self.state {
            State::Running { .. } => true,
            State::Starting { .. } => turn.plan.start_seconds.is_zero(),
            State::Stopped
            | State::Backoff { .. }
            | State::Stopping { .. }
            | State::Exited { .. }
            | State::Fatal => false,
        }
    }

    /// One that never got past `start_seconds` was not stable, however long they are.
    fn was_stable(&self, turn: &Turn<'_>) -> bool {
        match self.state {
            State::Running { process } => turn.mono().since(process.since) >= STABLE,
            State::Stopped
            | State::Starting { .. }
            | State::Backoff { .. }
            | State::Stopping { .. }
            | State::Exited { .. }
            | State::Fatal => false,
        }
    }

    /// No restart follows. A job with a trigger stays desired: the next one starts it.
    fn end_run(&mut self, turn: &mut Turn<'_>, end: State) {
        match self.desired {
            Desired::Run if is_triggered(turn.plan) && turn.shutting.is_none() => {
                turn.emit(Kind::Stopping);
                self.come_to_rest(turn, end);
            }
            Desired::Run | Desired::Rest | Desired::Disabled => self.end_desire(turn, end),
        }
    }

    /// Nothing follows, and nothing is left to be stopped.
    pub(super) fn end_desire(&mut self, turn: &mut Turn<'_>, end: State) {
        self.rest();
        turn.emit(Kind::Stopping);
        self.come_to_rest(turn, end);
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
        self.renewal = Renewal::None;
    }

    /// What was being stopped is gone. One that is desired by now waits for its launch.
    pub(super) fn finish_stop(&mut self, turn: &mut Turn<'_>) {
        if self.leaving {
            self.renewal = Renewal::None;
        }
        self.come_to_rest(turn, State::Stopped);
    }

    pub(super) fn come_to_rest(&mut self, turn: &mut Turn<'_>, end: State) {
        (self.gate.errand, self.gate.errand_until) = (false, None);
        self.health = Health::Unknown;
        turn.emit(Kind::Stopped);
        self.enter(turn, end);
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
