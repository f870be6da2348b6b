//! The end of a process that is still there: a ladder of hooks (jobs that run because it is
//! stopping), the withdrawal from service discovery (which begins with the first rung), `stop.exec`,
//! the stop signal, the kill.
//!
//! Each other rung has the stop timeout, less when the node's own time is running out: then the hooks end
//! early enough for the signal to have its time, the task has half of what is left, and the kill
//! comes early enough to be over before the end. The node says when the hooks are done. After the kill there is nothing left to try: the keeper kills the tree until it is
//! gone, and the job waits for its end.

use super::{Desired, Job, State, Turn};
use crate::{
    clock::Mono,
    event::Kind,
    node::{TaskKind, Wait},
    plan::Awaited,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How a stop is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Force {
    Grace,
    Kill,
}

/// Where a stop is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Ladder {
    /// Other jobs run on behalf of this end; `first`: those that wait for the first one, too.
    Hooks { until: Mono, first: bool },
    /// Others are still being told that it is gone.
    Withdrawing { until: Mono },
    /// `stop.exec` runs.
    Task { until: Mono },
    /// The stop signal was sent.
    Signalled { until: Mono },
    /// SIGKILL was sent to the tree.
    Killed,
}

/// What a stop that is under way has come to, for those who ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rung {
    /// It waits for jobs that run on behalf of it.
    Hooks,
    /// Others are still being told that it is gone.
    Withdrawing,
    /// `stop.exec` runs.
    Task,
    /// The stop signal was sent.
    Signalled,
    /// SIGKILL was sent to the tree.
    Killed,
}

impl Ladder {
    fn rung(self) -> Rung {
        match self {
            Ladder::Hooks { .. } => Rung::Hooks,
            Ladder::Withdrawing { .. } => Rung::Withdrawing,
            Ladder::Task { .. } => Rung::Task,
            Ladder::Signalled { .. } => Rung::Signalled,
            Ladder::Killed => Rung::Killed,
        }
    }

    fn until(self) -> Option<Mono> {
        match self {
            Ladder::Hooks { until, .. }
            | Ladder::Withdrawing { until }
            | Ladder::Task { until }
            | Ladder::Signalled { until } => Some(until),
            Ladder::Killed => None,
        }
    }
}

impl Job {
    /// How far a stop is, and until when that may take.
    #[must_use]
    pub fn stopping(&self) -> Option<(Rung, Option<Mono>)> {
        match self.state {
            State::Stopping { ladder, .. } => Some((ladder.rung(), ladder.until())),
            State::Stopped
            | State::Starting { .. }
            | State::Running { .. }
            | State::Backoff { .. }
            | State::Exited { .. }
            | State::Fatal => None,
        }
    }

    /// It shall rest.
    pub(crate) fn stop(&mut self, turn: &mut Turn<'_>, force: Force) {
        let wanted = self.desired;
        self.rest();
        match self.state {
            State::Stopped => {}
            State::Exited { .. } | State::Fatal => match wanted {
                // It was between two runs, which it is no longer.
                Desired::Run => self.enter(turn, State::Stopped),
                Desired::Rest | Desired::Disabled => {}
            },
            State::Backoff { .. } => self.end_desire(turn, State::Stopped),
            State::Starting { .. } | State::Running { .. } => self.begin_stop(turn, force),
            State::Stopping { pid, ladder } => {
                let ladder = match force {
                    Force::Grace => self.hurry(turn, ladder),
                    Force::Kill => self.kill(turn, ladder),
                };
                self.state = State::Stopping { pid, ladder };
            }
        }
    }

    /// What it follows is down: it goes down as well, and comes back with it.
    pub(crate) fn follow_down(&mut self, turn: &mut Turn<'_>) {
        match self.state {
            State::Starting { .. } | State::Running { .. } => {
                (self.gate.pending, self.gate.now) = (true, true);
                self.begin_stop(turn, Force::Grace);
            }
            State::Backoff { .. } => {
                (self.gate.pending, self.gate.now) = (true, true);
                turn.emit(Kind::Stopping);
                self.come_to_rest(turn, State::Stopped);
            }
            State::Stopped | State::Stopping { .. } | State::Exited { .. } | State::Fatal => {}
        }
    }

    /// What it follows is back, and it shall begin anew with it.
    pub(crate) fn follow_up(&mut self, turn: &mut Turn<'_>) {
        match (&self.state, self.desired) {
            (State::Starting { .. } | State::Running { .. }, Desired::Run) => {
                (self.gate.pending, self.gate.now) = (true, true);
                self.begin_stop(turn, Force::Grace);
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
    pub(super) fn begin_stop(&mut self, turn: &mut Turn<'_>, force: Force) {
        let first = !self.has_said(Awaited::Stopping);
        turn.emit(Kind::Stopping);
        self.withdraw(turn);
        let pid = self.pid();
        let ladder = match force {
            Force::Grace if turn.hooks => self.wait_for_hooks(turn, first),
            Force::Grace => self.first_rung(turn, pid),
            Force::Kill => self.send_kill(turn),
        };
        self.enter(turn, State::Stopping { pid, ladder });
    }

    /// Waits for jobs that run on behalf of its end; `Some(true)`: the first end.
    pub(crate) fn waits_for_hooks(&self) -> Option<bool> {
        match self.state {
            State::Stopping { ladder: Ladder::Hooks { first, .. }, .. } => Some(first),
            State::Stopping {
                ladder:
                    Ladder::Withdrawing { .. }
                    | Ladder::Task { .. }
                    | Ladder::Signalled { .. }
                    | Ladder::Killed,
                ..
            }
            | State::Stopped
            | State::Starting { .. }
            | State::Running { .. }
            | State::Backoff { .. }
            | State::Exited { .. }
            | State::Fatal => None,
        }
    }

    pub(crate) fn hooks_done(&mut self, turn: &mut Turn<'_>) {
        self.leave_rung(turn, Rung::Hooks, Job::first_rung);
    }

    /// What a rung waited for has come. A stop that is on another one is not concerned.
    pub(super) fn leave_rung(
        &mut self,
        turn: &mut Turn<'_>,
        rung: Rung,
        next: impl FnOnce(&Job, &mut Turn<'_>, Option<u32>) -> Ladder,
    ) {
        if let State::Stopping { pid, ladder } = self.state
            && ladder.rung() == rung
        {
            self.state = State::Stopping { pid, ladder: next(self, turn, pid) };
        }
    }

    fn wait_for_hooks(&self, turn: &mut Turn<'_>, first: bool) -> Ladder {
        let until = hooks_until(turn);
        turn.wake(self.incarnation, Wait::StopTimeout, until);
        Ladder::Hooks { until, first }
    }

    /// What follows the hooks.
    pub(super) fn first_rung(&self, turn: &mut Turn<'_>, pid: Option<u32>) -> Ladder {
        if let Some(until) = self.withdrawing_until(turn.mono()) {
            let until = until.min(hooks_until(turn));
            turn.wake(self.incarnation, Wait::StopTimeout, until);
            return Ladder::Withdrawing { until };
        }
        self.ask_to_end(turn, pid)
    }

    fn ask_to_end(&self, turn: &mut Turn<'_>, pid: Option<u32>) -> Ladder {
        if pid.is_some() && turn.plan.stop.exec.is_some() {
            self.run_task(turn)
        } else {
            self.send_signal(turn)
        }
    }

    pub(crate) fn task_done(&mut self, turn: &mut Turn<'_>, incarnation: u64, what: TaskKind) {
        match what {
            TaskKind::StopExec => {}
            TaskKind::Reload | TaskKind::Check(_) => return,
        }
        if incarnation != self.incarnation {
            return;
        }
        self.leave_rung(turn, Rung::Task, |job, turn, _| job.send_signal(turn));
    }

    pub(super) fn stop_timeout_over(&mut self, turn: &mut Turn<'_>) {
        match self.state {
            State::Stopping { pid, ladder } => {
                let ladder = match ladder {
                    Ladder::Hooks { until, .. }
                    | Ladder::Withdrawing { until }
                    | Ladder::Task { until }
                    | Ladder::Signalled { until }
                        if turn.mono() < until =>
                    {
                        turn.wake(self.incarnation, Wait::StopTimeout, until);
                        ladder
                    }
                    Ladder::Hooks { .. } => self.first_rung(turn, pid),
                    Ladder::Withdrawing { .. } => self.ask_to_end(turn, pid),
                    Ladder::Task { .. } => self.send_signal(turn),
                    Ladder::Signalled { .. } => self.send_kill(turn),
                    Ladder::Killed => ladder,
                };
                self.state = State::Stopping { pid, ladder };
            }
            State::Starting { .. } | State::Running { .. } => self.wait_no_longer(turn),
            State::Stopped | State::Backoff { .. } | State::Exited { .. } | State::Fatal => {}
        }
    }

    /// The node stops, and whatever this job was left running for has had its time.
    fn wait_no_longer(&mut self, turn: &mut Turn<'_>) {
        let Some(shutting) = turn.shutting else { return self.errand_over(turn) };
        if turn.mono() < shutting.latest_signal(turn.plan.stop.timeout) {
            self.be_quick(turn);
        } else {
            self.stop(turn, Force::Grace);
        }
    }

    /// A stop that an earlier agent began, or that has to begin again for a newer incarnation:
    /// what may have been lost is said once more.
    pub(super) fn resume_stop(&mut self, turn: &mut Turn<'_>, ladder: Ladder) -> Ladder {
        match ladder {
            Ladder::Hooks { until, .. } | Ladder::Withdrawing { until } if turn.mono() < until => {
                turn.wake(self.incarnation, Wait::StopTimeout, until);
                ladder
            }
            Ladder::Hooks { .. } | Ladder::Withdrawing { .. } => self.send_signal(turn),
            Ladder::Task { until } if turn.mono() < until => {
                turn.run_task(self.incarnation, TaskKind::StopExec, until);
                turn.wake(self.incarnation, Wait::StopTimeout, until);
                ladder
            }
            Ladder::Task { .. } => self.send_signal(turn),
            Ladder::Signalled { until } => {
                turn.stop(self.incarnation);
                turn.wake(self.incarnation, Wait::StopTimeout, until);
                ladder
            }
            Ladder::Killed => self.send_kill(turn),
        }
    }

    fn run_task(&self, turn: &mut Turn<'_>) -> Ladder {
        let until = task_until(turn);
        turn.run_task(self.incarnation, TaskKind::StopExec, until);
        turn.wake(self.incarnation, Wait::StopTimeout, until);
        Ladder::Task { until }
    }

    pub(super) fn send_signal(&self, turn: &mut Turn<'_>) -> Ladder {
        let until = signal_until(turn);
        turn.stop(self.incarnation);
        turn.wake(self.incarnation, Wait::StopTimeout, until);
        Ladder::Signalled { until }
    }

    pub(super) fn send_kill(&self, turn: &mut Turn<'_>) -> Ladder {
        turn.kill(self.incarnation);
        Ladder::Killed
    }

    fn kill(&self, turn: &mut Turn<'_>, ladder: Ladder) -> Ladder {
        match ladder {
            Ladder::Hooks { .. }
            | Ladder::Withdrawing { .. }
            | Ladder::Task { .. }
            | Ladder::Signalled { .. } => self.send_kill(turn),
            Ladder::Killed => ladder,
        }
    }

    /// A stop under way has no more time than one that would begin now.
    fn hurry(&self, turn: &mut Turn<'_>, ladder: Ladder) -> Ladder {
        let (sooner, until) = match ladder {
            Ladder::Hooks { until, first } => {
                let until = until.min(hooks_until(turn));
                (Ladder::Hooks { until, first }, until)
            }
            Ladder::Withdrawing { until } => {
                let until = until.min(hooks_until(turn));
                (Ladder::Withdrawing { until }, until)
            }
            Ladder::Task { until } => {
                let until = until.min(task_until(turn));
                (Ladder::Task { until }, until)
            }
            Ladder::Signalled { until } => {
                let until = until.min(signal_until(turn));
                (Ladder::Signalled { until }, until)
            }
            Ladder::Killed => return ladder,
        };
        if sooner != ladder {
            turn.wake(self.incarnation, Wait::StopTimeout, until);
        }
        sooner
    }
}

fn signal_until(turn: &Turn<'_>) -> Mono {
    let own = turn.mono().after(turn.plan.stop.timeout);
    turn.shutting.map_or(own, |shutting| own.min(shutting.kill_by))
}

fn hooks_until(turn: &Turn<'_>) -> Mono {
    let own = turn.mono().after(turn.plan.stop.timeout);
    let latest = |it: crate::job::Shutting| it.latest_signal(turn.plan.stop.timeout);
    turn.shutting.map_or(own, |shutting| own.min(latest(shutting)))
}

fn task_until(turn: &Turn<'_>) -> Mono {
    let now = turn.mono();
    let own = now.after(turn.plan.stop.timeout);
    turn.shutting.map_or(own, |shutting| {
        let half: Duration = shutting.kill_by.since(now) / 2;
        own.min(now.after(half))
    })
}
