//! From the wish to RUNNING.

use super::{Budget, Desired, Health, Job, Process, State, Turn, stop::Force};
use crate::{event::Kind, node::Wait};

impl Job {
    /// What the plan wants and has not run yet.
    pub(crate) fn boot(&mut self, turn: &mut Turn<'_>) {
        match (&self.state, self.desired) {
            (State::Stopped, Desired::Run) => self.launch(turn),
            (State::Stopped, Desired::Rest | Desired::Disabled)
            | (
                State::Starting { .. }
                | State::Running { .. }
                | State::Backoff { .. }
                | State::Stopping { .. }
                | State::Exited { .. }
                | State::Fatal,
                Desired::Run | Desired::Rest | Desired::Disabled,
            ) => {}
        }
    }

    /// A user's start: a new budget, and no more waiting.
    pub(crate) fn start(&mut self, turn: &mut Turn<'_>) {
        match self.state {
            State::Stopped | State::Backoff { .. } | State::Exited { .. } | State::Fatal => {
                self.renew();
                self.launch(turn);
            }
            State::Stopping { .. } => self.renew(),
            State::Starting { .. } | State::Running { .. } => {}
        }
    }

    /// A user's restart: what has a process is stopped first.
    pub(crate) fn restart(&mut self, turn: &mut Turn<'_>) {
        match self.state {
            State::Starting { .. } | State::Running { .. } => {
                self.renew();
                self.begin_stop(turn, Force::Grace);
            }
            State::Stopped
            | State::Backoff { .. }
            | State::Stopping { .. }
            | State::Exited { .. }
            | State::Fatal => self.start(turn),
        }
    }

    fn renew(&mut self) {
        self.desired = Desired::Run;
        self.budget = Budget::default();
    }

    /// Only from a state without a process.
    pub(super) fn launch(&mut self, turn: &mut Turn<'_>) {
        self.incarnation = self.incarnation.saturating_add(1);
        self.enter(turn, State::Starting { process: None });
        turn.spawn(self.incarnation);
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
            return self.run(turn, process);
        }
        self.state = State::Starting { process: Some(process) };
        turn.wake(self.incarnation, Wait::Started, process.since.after(start_seconds));
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
        // A job without checks is healthy when it runs.
        self.health = Health::Healthy;
        turn.emit(Kind::Healthy);
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
