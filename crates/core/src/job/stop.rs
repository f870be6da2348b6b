//! The end of a process that is still there: a ladder of `stop.exec`, the stop signal, the kill.
//!
//! The task and the signal have the stop timeout each, less when the node's own time is running
//! out: then the task has half of what is left, and the kill comes early enough to be over before
//! the end. After the kill there is nothing left to try: the keeper kills the tree until it is
//! gone, and the job waits for its end.

use super::{Desired, Job, State, Turn};
use crate::{
    clock::Mono,
    event::Kind,
    node::{TaskKind, Wait},
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
    /// `stop.exec` runs.
    Task { until: Mono },
    /// The stop signal was sent.
    Signalled { until: Mono },
    /// SIGKILL was sent to the tree.
    Killed,
}

impl Job {
    /// It shall rest.
    pub(crate) fn stop(&mut self, turn: &mut Turn<'_>, force: Force) {
        match self.state {
            State::Stopped | State::Exited { .. } | State::Fatal => self.desired = Desired::Rest,
            State::Backoff { .. } => self.end_desire(turn, State::Stopped),
            State::Starting { .. } | State::Running { .. } => {
                self.desired = Desired::Rest;
                self.begin_stop(turn, force);
            }
            State::Stopping { pid, ladder } => {
                self.desired = Desired::Rest;
                let ladder = match force {
                    Force::Grace => self.hurry(turn, ladder),
                    Force::Kill => self.kill(turn, ladder),
                };
                self.state = State::Stopping { pid, ladder };
            }
        }
    }

    /// Only with a process that may exist.
    pub(super) fn begin_stop(&mut self, turn: &mut Turn<'_>, force: Force) {
        turn.emit(Kind::Stopping);
        let pid = self.pid();
        let ladder = match force {
            Force::Grace if pid.is_some() && turn.plan.stop.exec.is_some() => self.run_task(turn),
            Force::Grace => self.send_signal(turn),
            Force::Kill => self.send_kill(turn),
        };
        self.enter(turn, State::Stopping { pid, ladder });
    }

    pub(crate) fn task_done(&mut self, turn: &mut Turn<'_>, incarnation: u64, what: TaskKind) {
        match what {
            TaskKind::StopExec => {}
            TaskKind::Reload | TaskKind::Check(_) => return,
        }
        if incarnation != self.incarnation {
            return;
        }
        match self.state {
            State::Stopping { pid, ladder: Ladder::Task { .. } } => {
                self.state = State::Stopping { pid, ladder: self.send_signal(turn) };
            }
            State::Stopping { ladder: Ladder::Signalled { .. } | Ladder::Killed, .. }
            | State::Stopped
            | State::Starting { .. }
            | State::Running { .. }
            | State::Backoff { .. }
            | State::Exited { .. }
            | State::Fatal => {}
        }
    }

    pub(super) fn stop_timeout_over(&mut self, turn: &mut Turn<'_>) {
        match self.state {
            State::Stopping { pid, ladder } => {
                let ladder = match ladder {
                    Ladder::Task { until } | Ladder::Signalled { until } if turn.mono() < until => {
                        turn.wake(self.incarnation, Wait::StopTimeout, until);
                        ladder
                    }
                    Ladder::Task { .. } => self.send_signal(turn),
                    Ladder::Signalled { .. } => self.send_kill(turn),
                    Ladder::Killed => ladder,
                };
                self.state = State::Stopping { pid, ladder };
            }
            State::Stopped
            | State::Starting { .. }
            | State::Running { .. }
            | State::Backoff { .. }
            | State::Exited { .. }
            | State::Fatal => {}
        }
    }

    /// A stop that an earlier agent began, or that has to begin again for a newer incarnation:
    /// what may have been lost is said once more.
    pub(super) fn resume_stop(&mut self, turn: &mut Turn<'_>, ladder: Ladder) -> Ladder {
        match ladder {
            Ladder::Task { until } if turn.mono() < until => {
                turn.run_stop_exec(self.incarnation, until);
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
        turn.run_stop_exec(self.incarnation, until);
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
            Ladder::Task { .. } | Ladder::Signalled { .. } => self.send_kill(turn),
            Ladder::Killed => ladder,
        }
    }

    /// A stop under way has no more time than one that would begin now.
    fn hurry(&self, turn: &mut Turn<'_>, ladder: Ladder) -> Ladder {
        let (sooner, until) = match ladder {
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

fn task_until(turn: &Turn<'_>) -> Mono {
    let now = turn.mono();
    let own = now.after(turn.plan.stop.timeout);
    turn.shutting.map_or(own, |shutting| {
        let half: Duration = shutting.kill_by.since(now) / 2;
        own.min(now.after(half))
    })
}
