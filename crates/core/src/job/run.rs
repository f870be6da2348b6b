//! The process of a job: which incarnation it is, and how far that has come.
//!
//! `ended` is the highest number whose end is accounted for. STARTING, RUNNING and STOPPING are the
//! states in which a process may exist (`incarnation > ended`).

use super::{JobCtx, StopStage};
use crate::{
    clock::Mono,
    event::Kind,
    exit::{Exit, KillReason, Usage},
    node::Wait,
};
use serde::{Deserialize, Serialize};

/// Supervisor's states, as observers see them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Phase {
    Stopped,
    Starting,
    Running,
    Backoff,
    Stopping,
    Exited,
    Fatal,
    Unknown,
}

impl Phase {
    /// A process of it is there, or about to be, and shall stay.
    #[must_use]
    pub fn is_up(self) -> bool {
        matches!(self, Phase::Starting | Phase::Running)
    }

    /// A process of it may exist.
    #[must_use]
    pub fn may_have_process(self) -> bool {
        matches!(self, Phase::Starting | Phase::Running | Phase::Stopping)
    }

    /// It has no process, and no restart ahead.
    #[must_use]
    pub fn is_at_rest(self) -> bool {
        matches!(self, Phase::Stopped | Phase::Exited | Phase::Fatal)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Run {
    state: State,
    /// The highest number ever taken.
    incarnation: u64,
    /// The highest number whose end is accounted for.
    ended: u64,
    /// The highest number of a life that is over.
    #[serde(default, skip_serializing_if = "is_zero")]
    rested: u64,
    /// How often policy has started it again.
    restarts: u64,
    last_exit: Option<Exit>,
    /// Of the run that `last_exit` tells of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_usage: Option<Usage>,
    /// When it entered its phase: wall clock, ns.
    since: i64,
    /// The incarnation that ran for too long and is being killed for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    overran: Option<u64>,
    /// Why the incarnation that is being stopped is killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    killed: Option<KillReason>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// Never launched, or stopped because somebody wanted it.
    Stopped,
    /// Without a process: its spawn was commanded and has not been confirmed yet.
    Starting {
        process: Option<Process>,
    },
    Running {
        process: Process,
    },
    Backoff {
        until: Mono,
    },
    Stopping {
        pid: Option<u32>,
        stage: StopStage,
    },
    /// Ended, and policy wants no restart.
    Exited {
        well: bool,
    },
    /// Given up.
    Fatal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// When exec was confirmed.
    pub(super) since: Mono,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl State {
    pub(super) fn phase(self) -> Phase {
        match self {
            State::Stopped => Phase::Stopped,
            State::Starting { .. } => Phase::Starting,
            State::Running { .. } => Phase::Running,
            State::Backoff { .. } => Phase::Backoff,
            State::Stopping { .. } => Phase::Stopping,
            State::Exited { .. } => Phase::Exited,
            State::Fatal => Phase::Fatal,
        }
    }
}

impl Run {
    pub(super) fn new() -> Run {
        Run {
            state: State::Stopped,
            incarnation: 0,
            ended: 0,
            rested: 0,
            restarts: 0,
            last_exit: None,
            last_usage: None,
            since: 0,
            overran: None,
            killed: None,
        }
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    pub(super) fn phase(&self) -> Phase {
        self.state.phase()
    }

    pub(super) fn incarnation(&self) -> u64 {
        self.incarnation
    }

    pub(super) fn restarts(&self) -> u64 {
        self.restarts
    }

    pub(super) fn last_exit(&self) -> Option<&Exit> {
        self.last_exit.as_ref()
    }

    pub(super) fn last_usage(&self) -> Option<Usage> {
        self.last_usage
    }

    pub(super) fn since(&self) -> i64 {
        self.since
    }

    /// Of the process that is alive now.
    pub(super) fn pid(&self) -> Option<u32> {
        match self.state {
            State::Starting { process } => process.map(|process| process.pid),
            State::Running { process } => Some(process.pid),
            State::Stopping { pid, .. } => pid,
            State::Stopped | State::Backoff { .. } | State::Exited { .. } | State::Fatal => None,
        }
    }

    /// The process that is up and shall stay so.
    pub(super) fn process(&self) -> Option<Process> {
        match self.state {
            State::Starting { process } => process,
            State::Running { process } => Some(process),
            State::Stopped
            | State::Backoff { .. }
            | State::Stopping { .. }
            | State::Exited { .. }
            | State::Fatal => None,
        }
    }

    /// The end of the back-off.
    pub(super) fn backoff_until(&self) -> Option<Mono> {
        match self.state {
            State::Backoff { until } => Some(until),
            State::Stopped
            | State::Starting { .. }
            | State::Running { .. }
            | State::Stopping { .. }
            | State::Exited { .. }
            | State::Fatal => None,
        }
    }

    pub(super) fn stop_stage(&self) -> Option<StopStage> {
        match self.state {
            State::Stopping { stage, .. } => Some(stage),
            State::Stopped
            | State::Starting { .. }
            | State::Running { .. }
            | State::Backoff { .. }
            | State::Exited { .. }
            | State::Fatal => None,
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.phase() == Phase::Running
    }

    /// A process of it may exist.
    pub(super) fn holds(&self) -> bool {
        self.phase().may_have_process()
    }

    /// Its end is accounted for, or a later one is known.
    pub(super) fn is_past(&self, incarnation: u64) -> bool {
        incarnation <= self.ended || incarnation < self.incarnation
    }

    pub(super) fn has_ended(&self, incarnation: u64) -> bool {
        incarnation <= self.ended
    }

    /// It was started in the life that goes on, or in no life yet.
    pub(super) fn is_of_this_life(&self, incarnation: u64) -> bool {
        incarnation > self.rested
    }

    /// The life that began with its last launch on purpose is over.
    pub(super) fn end_life(&mut self, ctx: &mut JobCtx<'_>) {
        if self.is_of_this_life(self.incarnation) {
            self.rested = self.incarnation;
            ctx.rest(self.incarnation);
        }
    }

    /// It has run for longer than it may and is being killed.
    pub(super) fn overran(&self) -> bool {
        self.overran == Some(self.incarnation)
    }

    /// The one way into another phase.
    pub(super) fn enter(&mut self, ctx: &mut JobCtx<'_>, state: State) {
        let from = self.phase();
        self.state = state;
        self.stamp(ctx);
        let (to, pid, incarnation) = (self.phase(), self.pid(), self.incarnation);
        ctx.emit(Kind::State { from, to, pid, incarnation });
    }

    /// What it waits for is waited for from now.
    pub(super) fn stamp(&mut self, ctx: &JobCtx<'_>) {
        self.since = ctx.wall();
    }

    /// Takes the next number. Only from a state without a process.
    pub(super) fn begin(&mut self) {
        self.incarnation = self.incarnation.saturating_add(1);
        (self.overran, self.killed) = (None, None);
    }

    /// A restart by policy.
    pub(super) fn count_restart(&mut self) {
        self.restarts += 1;
    }

    /// The keeper has a higher number.
    pub(super) fn catch_up(&mut self, incarnation: u64) {
        self.incarnation = incarnation;
    }

    /// The keeper has an incarnation that was not known: nothing is known of it yet.
    pub(super) fn adopt(&mut self, incarnation: u64) {
        self.incarnation = incarnation;
        (self.overran, self.killed) = (None, None);
    }

    /// Its last run has ended, as the keeper remembers it.
    pub(super) fn recall_end(&mut self, incarnation: u64, exit: Option<&Exit>) {
        (self.incarnation, self.ended, self.rested) = (incarnation, incarnation, incarnation);
        self.overran = None;
        if let Some(exit) = exit
            && self.last_exit.as_ref() != Some(exit)
        {
            (self.last_exit, self.last_usage) = (Some(exit.clone()), None);
        }
    }

    /// exec has succeeded, and it is not RUNNING yet.
    pub(super) fn confirm(&mut self, process: Process) {
        self.state = State::Starting { process: Some(process) };
    }

    /// What is being stopped is killed: only the first reason counts.
    pub(super) fn note_kill(&mut self, why: KillReason) {
        self.killed.get_or_insert(why);
    }

    /// The end of a life, for whoever hears of it.
    pub(super) fn stopped(&self) -> Kind {
        let over = self.has_ended(self.incarnation);
        Kind::Stopped {
            incarnation: self.incarnation,
            exit: self.last_exit.clone().filter(|_| over),
            usage: self.last_usage.filter(|_| over),
            killed: self.killed,
        }
    }

    /// The highest number whose end is accounted for.
    pub(super) fn ended(&self) -> u64 {
        self.ended
    }

    /// A stop goes on, with the pid as it is known now.
    pub(super) fn go_on_stopping(&mut self, pid: Option<u32>, stage: StopStage) {
        self.state = State::Stopping { pid, stage };
    }

    /// The end of an incarnation; `false`: a later one is known to have been started, and what
    /// follows was decided already.
    pub(super) fn end(&mut self, incarnation: u64, exit: &Exit, usage: Option<Usage>) -> bool {
        self.ended = incarnation;
        (self.last_exit, self.last_usage) = (Some(exit.clone()), usage);
        if incarnation < self.incarnation {
            return false;
        }
        self.incarnation = incarnation;
        true
    }

    /// The number was taken, and nothing was ever spawned under it.
    pub(super) fn end_unspawned(&mut self) {
        self.ended = self.incarnation;
        (self.last_exit, self.last_usage) = (None, None);
    }

    /// Kills a run that is longer than it may be.
    pub(super) fn overrun(&mut self, ctx: &mut JobCtx<'_>) {
        self.overran = Some(self.incarnation);
        ctx.kill(self.incarnation);
    }

    /// exec has succeeded, or the limit is new.
    pub(super) fn limit(&self, ctx: &mut JobCtx<'_>) {
        if let (Some(process), Some(timeout)) = (self.process(), ctx.plan.timeout) {
            ctx.wake(self.incarnation, Wait::Longest, process.since.after(timeout));
        }
    }

    /// A new agent: the wait, or the kill, may be lost.
    pub(super) fn resume_limit(&self, ctx: &mut JobCtx<'_>) {
        if self.overran() {
            ctx.kill(self.incarnation);
        } else {
            self.limit(ctx);
        }
    }

    /// What runs while the node stops has its signal in time.
    pub(super) fn be_quick(&self, ctx: &mut JobCtx<'_>) {
        if let Some(shutting) = ctx.shutting {
            let latest = shutting.latest_signal(ctx.plan.stop.timeout);
            ctx.wake(self.incarnation, Wait::StopTimeout, latest);
        }
    }
}
