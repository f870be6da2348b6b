//! From the wish to RUNNING.

use super::{Budget, Desired, Job, Process, Renewal, State, Turn, stop::Force};
use crate::{
    event::Kind,
    node::{Refusal, Wait},
    plan::{JobPlan, Trigger},
};

impl Job {
    /// Arguments that a running process does not have cannot be given to it.
    pub(crate) fn asked_to_start(
        &mut self,
        turn: &mut Turn<'_>,
        args: Option<Vec<String>>,
        now: bool,
    ) -> Result<(), Refusal> {
        let others = args.as_ref().is_some_and(|args| *args != self.args);
        match self.state {
            State::Starting { .. } | State::Running { .. } if others => {
                Err(Refusal::RunsAlready(turn.plan.name.clone()))
            }
            State::Starting { .. }
            | State::Running { .. }
            | State::Stopped
            | State::Backoff { .. }
            | State::Stopping { .. }
            | State::Exited { .. }
            | State::Fatal => {
                self.start(turn, args, now);
                Ok(())
            }
        }
    }

    /// A user's start: a new budget, and no more waiting for time to pass. What else it waits for
    /// it goes on waiting for, `now` without its latches.
    pub(crate) fn start(&mut self, turn: &mut Turn<'_>, args: Option<Vec<String>>, now: bool) {
        match self.state {
            State::Stopped | State::Exited { .. } | State::Fatal => {
                self.renew(args);
                self.gate.now = now;
            }
            State::Backoff { .. } => {
                self.renew(args);
                self.launch(turn);
            }
            State::Stopping { .. } => {
                self.renew(args);
                self.gate.now = true;
            }
            State::Starting { .. } | State::Running { .. } => {}
        }
    }

    /// A user's restart: what has a process is stopped first.
    pub(crate) fn restart(&mut self, turn: &mut Turn<'_>, args: Option<Vec<String>>) {
        match self.state {
            State::Starting { .. } | State::Running { .. } => {
                self.renew(args);
                self.gate.now = true;
                self.begin_stop(turn, Force::Grace);
            }
            State::Stopped
            | State::Backoff { .. }
            | State::Stopping { .. }
            | State::Exited { .. }
            | State::Fatal => self.start(turn, args, false),
        }
    }

    pub(super) fn renew(&mut self, args: Option<Vec<String>>) {
        self.desired = Desired::Run;
        self.budget = Budget::default();
        self.gate.pending = true;
        if let Some(args) = args {
            self.args = args;
        }
    }

    /// A user does not want to see it run until further notice.
    pub(crate) fn disable(&mut self, turn: &mut Turn<'_>) {
        if self.desired == Desired::Disabled {
            return;
        }
        turn.emit(Kind::Disabled);
        self.stop(turn, Force::Grace);
        self.desired = Desired::Disabled;
    }

    /// As if the plan had just come to want it.
    pub(crate) fn enable(&mut self, turn: &mut Turn<'_>) {
        if self.desired != Desired::Disabled {
            return;
        }
        turn.emit(Kind::Enabled);
        self.desired = Desired::Run;
        self.budget = Budget::default();
        self.gate.pending = is_triggered_at_once(turn.plan);
    }

    /// Only from a state without a process.
    pub(super) fn launch(&mut self, turn: &mut Turn<'_>) {
        self.incarnation = self.incarnation.saturating_add(1);
        self.overran = None;
        self.forget_checks(turn);
        self.enter(turn, State::Starting { process: None });
        turn.spawn(self.incarnation, &self.args);
        self.be_quick(turn);
        self.limit_errand(turn);
    }

    /// The node has begun to stop, and has not told it yet.
    pub(crate) fn be_quick_if_up(&self, turn: &mut Turn<'_>) {
        match self.state {
            State::Starting { .. } | State::Running { .. } => self.be_quick(turn),
            State::Stopped
            | State::Backoff { .. }
            | State::Stopping { .. }
            | State::Exited { .. }
            | State::Fatal => {}
        }
    }

    /// What runs while the node stops has its signal in time.
    pub(super) fn be_quick(&self, turn: &mut Turn<'_>) {
        if let Some(shutting) = turn.shutting {
            let latest = shutting.latest_signal(turn.plan.stop.timeout);
            turn.wake(self.incarnation, Wait::StopTimeout, latest);
        }
    }

    /// exec has succeeded.
    pub(crate) fn spawned(&mut self, turn: &mut Turn<'_>, incarnation: u64, pid: u32) {
        if incarnation <= self.ended || incarnation < self.incarnation {
            return;
        }
        if incarnation > self.incarnation || !self.holds() {
            self.adopt(turn, incarnation);
        }
        let process = Process { pid, since: turn.mono() };
        match &mut self.state {
            State::Starting { process: None } => self.confirm(turn, process),
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

    fn confirm(&mut self, turn: &mut Turn<'_>, process: Process) {
        let start_seconds = turn.plan.start_seconds;
        if start_seconds.is_zero() {
            self.run(turn, process);
        } else {
            self.state = State::Starting { process: Some(process) };
            turn.wake(self.incarnation, Wait::Started, process.since.after(start_seconds));
        }
        self.limit_run(turn);
        self.ask_checks(turn);
    }

    pub(super) fn start_seconds_over(&mut self, turn: &mut Turn<'_>) {
        match self.state {
            State::Starting { process: Some(process) } => {
                let at = process.since.after(turn.plan.start_seconds);
                if turn.mono() < at {
                    turn.wake(self.incarnation, Wait::Started, at);
                } else {
                    self.run(turn, process);
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

    fn run(&mut self, turn: &mut Turn<'_>, process: Process) {
        self.enter(turn, State::Running { process });
        if !self.is_due_for_renewal() {
            self.renewal = Renewal::None;
        }
        self.weigh(turn);
    }

    pub(super) fn backoff_over(&mut self, turn: &mut Turn<'_>) {
        match self.state {
            State::Backoff { until } if turn.mono() < until => {
                turn.wake(self.incarnation, Wait::Backoff, until);
            }
            State::Backoff { .. } => {
                self.restarts += 1;
                self.launch(turn);
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
