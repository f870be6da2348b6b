//! A job whose plan is another one now, or that is gone from it.

use super::{
    Desired, Job, Resting, State, Turn, budget::Budget, gate::is_triggered,
    launch::is_triggered_at_once, stop::Force,
};
use crate::{
    clock::Mono,
    node::Wait,
    plan::{JobPlan, Restart, RestartOn, Trigger, When},
};
use serde::{Deserialize, Serialize};

/// A new process for a new plan, in its turn among others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Renewal {
    #[default]
    None,
    /// Its turn has not come: the process of before goes on.
    Due,
    /// That one was told to stop, and the new one is not up yet.
    UnderWay,
}

impl Renewal {
    pub(super) fn is_none(&self) -> bool {
        *self == Renewal::None
    }
}

impl Job {
    /// What needs it waits until its new process is up.
    pub(crate) fn renews(&self) -> bool {
        !self.renewal.is_none()
    }

    pub(crate) fn is_due_for_renewal(&self) -> bool {
        self.renewal == Renewal::Due
    }

    pub(crate) fn forget_renewal(&mut self) {
        self.renewal = Renewal::None;
    }

    /// Its turn has come.
    pub(crate) fn begin_renewal(&mut self, turn: &mut Turn<'_>) {
        if self.leaving {
            self.stop(turn, Force::Grace);
        } else {
            self.restart(turn, None);
        }
        self.renewal = Renewal::UnderWay;
    }

    /// What it follows goes down: it does so before, in its turn, and comes back after it.
    pub(crate) fn renew_along(&mut self) -> bool {
        match (&self.state, self.desired) {
            (State::Starting { .. } | State::Running { .. }, Desired::Run) if !self.renews() => {
                self.renewal = Renewal::Due;
                true
            }
            (State::Starting { .. } | State::Running { .. }, _)
            | (
                State::Stopped
                | State::Backoff { .. }
                | State::Stopping { .. }
                | State::Exited { .. }
                | State::Fatal,
                _,
            ) => false,
        }
    }

    /// From now on it follows something that is not there.
    pub(crate) fn lose_source(&mut self, turn: &mut Turn<'_>) {
        if !self.renew_along() && self.backs_off() {
            self.follow_down(turn);
        }
    }

    /// It is gone from the plan, and stays here only until its process is gone.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.leaving
    }

    /// What has a process is stopped when its turn has come: after what needs it.
    pub(crate) fn leave(&mut self, turn: &mut Turn<'_>) {
        self.leaving = true;
        match self.state {
            State::Starting { .. } | State::Running { .. } => {
                self.rest();
                self.renewal = Renewal::Due;
            }
            State::Stopped
            | State::Backoff { .. }
            | State::Stopping { .. }
            | State::Exited { .. }
            | State::Fatal => self.stop(turn, Force::Grace),
        }
    }

    /// It goes together with a job whose end it is to run for: it goes after it.
    pub(crate) fn linger(&mut self) {
        self.leaving = true;
    }

    /// It is in the plan, maybe again.
    pub(crate) fn stay(&mut self) {
        self.leaving = false;
    }

    /// What can be applied to what is there.
    pub(crate) fn take_over(&mut self, turn: &mut Turn<'_>, before: &JobPlan) {
        let plan = turn.plan;
        if plan.checks != before.checks {
            self.change_checks(turn, &before.checks);
        }
        if plan.timeout != before.timeout {
            self.limit_run(turn);
        }
        if plan.start_seconds != before.start_seconds
            && let State::Starting { process: Some(process) } = self.state
        {
            turn.wake(self.incarnation, Wait::Started, process.since.after(plan.start_seconds));
        }
        if plan.when != before.when {
            self.change_when(turn, &before.when);
        }
        if plan.advertise != before.advertise {
            self.announce_anew(turn);
        }
    }

    /// Its conditions are others: the time it may wait for them begins anew.
    fn change_when(&mut self, turn: &mut Turn<'_>, before: &When) {
        if turn.plan.when.trigger != before.trigger {
            self.change_trigger(turn, before.trigger.as_ref());
        }
        self.await_launch(turn);
    }

    /// A trigger of before is forgotten, but an interval goes on from its last start.
    fn change_trigger(&mut self, turn: &mut Turn<'_>, before: Option<&Trigger>) {
        match (&turn.plan.when.trigger, before) {
            (Some(Trigger::Interval(every)), Some(Trigger::Interval(before))) => {
                if let Some(next) = self.gate.next {
                    self.await_interval(turn, next.before(*before).after(*every));
                }
            }
            (Some(Trigger::Interval(every)), Some(Trigger::Each(_) | Trigger::Cron(_)) | None) => {
                self.gate.pending = self.waits();
                if self.holds() || self.backs_off() {
                    self.await_interval(turn, turn.mono().after(*every));
                }
            }
            (Some(Trigger::Cron(_)), _) => {
                (self.gate.pending, self.gate.next) = (false, None);
                turn.arm_cron();
            }
            (Some(Trigger::Each(_)) | None, _) => {
                (self.gate.pending, self.gate.next) = (false, None);
            }
        }
    }

    fn await_interval(&mut self, turn: &mut Turn<'_>, next: Mono) {
        if next <= turn.mono() {
            self.gate.next = None;
            self.trigger();
        } else {
            self.gate.next = Some(next);
            turn.wake(0, Wait::Interval, next);
        }
    }

    /// Only a new process can have what has changed.
    pub(crate) fn renew_process(&mut self, turn: &mut Turn<'_>, before: Option<&JobPlan>) {
        if let Some(before) = before
            && turn.plan.when != before.when
        {
            self.change_when(turn, &before.when);
        }
        match self.state {
            State::Starting { .. } | State::Running { .. } => {
                // It may have been on its way out of the plan.
                self.desired = Desired::Run;
                self.renewal = Renewal::Due;
            }
            State::Stopped
            | State::Backoff { .. }
            | State::Stopping { .. }
            | State::Exited { .. }
            | State::Fatal => self.restart(turn, None),
        }
    }

    /// Its turn in its app has come.
    pub(crate) fn order(&mut self, turn: &mut Turn<'_>) {
        match (&self.state, self.desired) {
            (State::Stopped | State::Exited { .. } | State::Fatal, Desired::Rest) => {
                self.revive(turn);
                self.arm(turn);
            }
            (State::Stopping { .. }, Desired::Rest) => self.renew(None),
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

    /// Its app goes down, maybe because it has failed.
    pub(crate) fn stop_with_app(&mut self, turn: &mut Turn<'_>, failed: bool) {
        let before = self.resting();
        self.stop(turn, Force::Grace);
        self.resting = match before {
            Some(Resting::User) => Resting::User,
            Some(Resting::Turn | Resting::Aborted | Resting::AppFailed) | None if failed => {
                Resting::AppFailed
            }
            Some(Resting::Turn | Resting::Aborted | Resting::AppFailed) | None => Resting::User,
        };
    }

    /// The start of its app ends before its turn.
    pub(crate) fn turn_never_comes(&mut self) {
        if self.resting() == Some(Resting::Turn) {
            self.resting = Resting::Aborted;
        }
    }

    /// Its app does not want to be without it: it comes back after a while, ever more slowly.
    pub(crate) fn try_again(&mut self, turn: &mut Turn<'_>) {
        let policy = Restart::on(RestartOn::Any);
        let delay = self.budget.spend(&policy, turn.mono(), false);
        let until = turn.mono().after(delay.unwrap_or(Restart::MAX_DELAY));
        self.desired = Desired::Run;
        self.enter(turn, State::Backoff { until });
        turn.wake(self.incarnation, Wait::Backoff, until);
    }

    /// It waited, failed or was given up under the plan of before.
    pub(crate) fn revive(&mut self, turn: &mut Turn<'_>) {
        match self.desired {
            Desired::Run => {}
            Desired::Rest => {
                self.desired = Desired::Run;
                self.budget = Budget::default();
                self.gate.pending = !is_triggered(turn.plan) || is_triggered_at_once(turn.plan);
            }
            Desired::Disabled => {}
        }
    }
}
