//! What is done to a job that runs: a user's signal, its reload, and the limit of its time.
//!
//! A run that is longer than `timeout` is killed. Nobody wanted that end: it is a failure, and
//! policy decides what follows.

use super::{Job, State, Turn};
use crate::{
    node::{Refusal, TaskKind, Wait},
    plan::{Reach, Reload},
    signal::Signal,
};
use std::time::Duration;

/// How long `reload.exec` may take.
const RELOAD_TIME: Duration = Duration::from_secs(60);

impl Job {
    /// A user's signal.
    pub(crate) fn signal(
        &self,
        turn: &mut Turn<'_>,
        signal: Signal,
        to: Reach,
    ) -> Result<(), Refusal> {
        if self.pid().is_none() {
            return Err(Refusal::NotRunning(turn.plan.name.clone()));
        }
        turn.signal(self.incarnation, signal, to);
        Ok(())
    }

    /// The job's own way to take up its configuration.
    pub(crate) fn reload(&self, turn: &mut Turn<'_>) -> Result<(), Refusal> {
        let Some(reload) = &turn.plan.reload else {
            return Err(Refusal::NoReload(turn.plan.name.clone()));
        };
        if self.process().is_none() {
            return Err(Refusal::NotRunning(turn.plan.name.clone()));
        }
        match reload {
            Reload::Signal(signal) => turn.signal(self.incarnation, *signal, Reach::Leader),
            Reload::Exec(_) => {
                let deadline = turn.mono().after(RELOAD_TIME);
                turn.run_task(self.incarnation, TaskKind::Reload, deadline);
            }
        }
        Ok(())
    }

    /// exec has succeeded, or the limit is new.
    pub(super) fn limit_run(&self, turn: &mut Turn<'_>) {
        if let (Some(process), Some(timeout)) = (self.process(), turn.plan.timeout) {
            turn.wake(self.incarnation, Wait::Longest, process.since.after(timeout));
        }
    }

    /// A new agent: the wait, or the kill, may be lost.
    pub(super) fn resume_limit(&self, turn: &mut Turn<'_>) {
        if self.overran == Some(self.incarnation) {
            turn.kill(self.incarnation);
        } else {
            self.limit_run(turn);
        }
    }

    pub(super) fn longest_run_over(&mut self, turn: &mut Turn<'_>) {
        match self.state {
            State::Starting { process: Some(process) } | State::Running { process } => {
                let Some(timeout) = turn.plan.timeout else { return };
                let at = process.since.after(timeout);
                if turn.mono() < at {
                    return turn.wake(self.incarnation, Wait::Longest, at);
                }
                self.overran = Some(self.incarnation);
                turn.kill(self.incarnation);
            }
            State::Starting { process: None }
            | State::Stopped
            | State::Backoff { .. }
            | State::Stopping { .. }
            | State::Exited { .. }
            | State::Fatal => {}
        }
    }
}
