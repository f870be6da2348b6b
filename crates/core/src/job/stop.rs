//! The end of a process that is still there, in stages: hooks (jobs that run because it is
//! stopping), the withdrawal from service discovery (which begins with the first stage),
//! `stop.exec`, the stop signal, the kill.
//!
//! Each other stage has the stop timeout, less when the node's own time is running out: then the
//! hooks end early enough for the signal to have its time, the task has half of what is left, and
//! the kill comes early enough to be over before the end. The node says when the hooks are done.
//! After the kill there is nothing left to try: the keeper kills the tree until it is gone, and the
//! job waits for its end.

use super::{Desired, Job, JobCtx, State};
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

/// How far a stop has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StopStage {
    /// Jobs run on behalf of this end; `first`: those that wait for the first one, too.
    Hooks { until: Mono, first: bool },
    /// The entry in service discovery is being removed.
    Withdrawing { until: Mono },
    /// `stop.exec` runs.
    Task { until: Mono },
    /// The stop signal was sent.
    Signalled { until: Mono },
    /// SIGKILL was sent to the tree.
    Killed,
}

impl StopStage {
    /// When the next stage begins by itself.
    #[must_use]
    pub fn until(self) -> Option<Mono> {
        match self {
            StopStage::Hooks { until, .. }
            | StopStage::Withdrawing { until }
            | StopStage::Task { until }
            | StopStage::Signalled { until } => Some(until),
            StopStage::Killed => None,
        }
    }

    fn is_hooks(self) -> bool {
        matches!(self, StopStage::Hooks { .. })
    }

    pub(super) fn is_withdrawing(self) -> bool {
        matches!(self, StopStage::Withdrawing { .. })
    }

    fn is_task(self) -> bool {
        matches!(self, StopStage::Task { .. })
    }
}

impl Job {
    /// How far a stop has come.
    #[must_use]
    pub fn stopping(&self) -> Option<StopStage> {
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

    /// It shall rest.
    pub(crate) fn stop(&mut self, ctx: &mut JobCtx<'_>, force: Force) {
        let wanted = self.desired;
        self.rest();
        match self.state {
            State::Stopped => {}
            State::Exited { .. } | State::Fatal => match wanted {
                // It was between two runs, which it is no longer.
                Desired::Run => self.enter(ctx, State::Stopped),
                Desired::Rest | Desired::Disabled => {}
            },
            State::Backoff { .. } => self.end_desire(ctx, State::Stopped),
            State::Starting { .. } | State::Running { .. } => self.begin_stop(ctx, force),
            State::Stopping { pid, stage } => {
                let stage = match force {
                    Force::Grace => self.hurry(ctx, stage),
                    Force::Kill => self.kill(ctx, stage),
                };
                self.state = State::Stopping { pid, stage };
            }
        }
    }

    /// What it follows is down: it goes down as well, and comes back with it.
    pub(crate) fn follow_down(&mut self, ctx: &mut JobCtx<'_>) {
        match self.state {
            State::Starting { .. } | State::Running { .. } => {
                (self.gate.pending, self.gate.now) = (true, true);
                self.begin_stop(ctx, Force::Grace);
            }
            State::Backoff { .. } => {
                (self.gate.pending, self.gate.now) = (true, true);
                ctx.emit(Kind::Stopping);
                self.come_to_rest(ctx, State::Stopped);
            }
            State::Stopped | State::Stopping { .. } | State::Exited { .. } | State::Fatal => {}
        }
    }

    /// What it follows is back, and it shall begin anew with it.
    pub(crate) fn follow_up(&mut self, ctx: &mut JobCtx<'_>) {
        match (&self.state, self.desired) {
            (State::Starting { .. } | State::Running { .. }, Desired::Run) => {
                (self.gate.pending, self.gate.now) = (true, true);
                self.begin_stop(ctx, Force::Grace);
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
    pub(super) fn begin_stop(&mut self, ctx: &mut JobCtx<'_>, force: Force) {
        let first = !self.has_said(Awaited::Stopping);
        ctx.emit(Kind::Stopping);
        self.withdraw(ctx);
        let pid = self.pid();
        let stage = match force {
            Force::Grace if ctx.hooks => self.wait_for_hooks(ctx, first),
            Force::Grace => self.after_hooks(ctx, pid),
            Force::Kill => self.send_kill(ctx),
        };
        self.enter(ctx, State::Stopping { pid, stage });
    }

    /// Waits for jobs that run on behalf of its end; `Some(true)`: the first end.
    pub(crate) fn waits_for_hooks(&self) -> Option<bool> {
        match self.state {
            State::Stopping { stage: StopStage::Hooks { first, .. }, .. } => Some(first),
            State::Stopping {
                stage:
                    StopStage::Withdrawing { .. }
                    | StopStage::Task { .. }
                    | StopStage::Signalled { .. }
                    | StopStage::Killed,
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

    pub(crate) fn hooks_done(&mut self, ctx: &mut JobCtx<'_>) {
        self.leave_stage(ctx, StopStage::is_hooks, Job::after_hooks);
    }

    /// What a stage waited for has come. A stop that is at another one is not concerned.
    pub(super) fn leave_stage(
        &mut self,
        ctx: &mut JobCtx<'_>,
        is_current: fn(StopStage) -> bool,
        next: impl FnOnce(&Job, &mut JobCtx<'_>, Option<u32>) -> StopStage,
    ) {
        if let State::Stopping { pid, stage } = self.state
            && is_current(stage)
        {
            self.state = State::Stopping { pid, stage: next(self, ctx, pid) };
        }
    }

    fn wait_for_hooks(&self, ctx: &mut JobCtx<'_>, first: bool) -> StopStage {
        let until = hooks_until(ctx);
        ctx.wake(self.incarnation, Wait::StopTimeout, until);
        StopStage::Hooks { until, first }
    }

    /// What follows the hooks.
    pub(super) fn after_hooks(&self, ctx: &mut JobCtx<'_>, pid: Option<u32>) -> StopStage {
        if let Some(until) = self.withdrawing_until(ctx.mono()) {
            let until = until.min(hooks_until(ctx));
            ctx.wake(self.incarnation, Wait::StopTimeout, until);
            return StopStage::Withdrawing { until };
        }
        self.ask_to_end(ctx, pid)
    }

    fn ask_to_end(&self, ctx: &mut JobCtx<'_>, pid: Option<u32>) -> StopStage {
        if pid.is_some() && ctx.plan.stop.exec.is_some() {
            self.run_task(ctx)
        } else {
            self.send_signal(ctx)
        }
    }

    pub(crate) fn task_done(&mut self, ctx: &mut JobCtx<'_>, incarnation: u64, what: TaskKind) {
        match what {
            TaskKind::StopExec => {}
            TaskKind::Reload | TaskKind::Check(_) => return,
        }
        if incarnation != self.incarnation {
            return;
        }
        self.leave_stage(ctx, StopStage::is_task, |job, ctx, _| job.send_signal(ctx));
    }

    pub(super) fn stop_timeout_over(&mut self, ctx: &mut JobCtx<'_>) {
        match self.state {
            State::Stopping { pid, stage } => {
                let stage = match stage {
                    StopStage::Hooks { until, .. }
                    | StopStage::Withdrawing { until }
                    | StopStage::Task { until }
                    | StopStage::Signalled { until }
                        if ctx.mono() < until =>
                    {
                        ctx.wake(self.incarnation, Wait::StopTimeout, until);
                        stage
                    }
                    StopStage::Hooks { .. } => self.after_hooks(ctx, pid),
                    StopStage::Withdrawing { .. } => self.ask_to_end(ctx, pid),
                    StopStage::Task { .. } => self.send_signal(ctx),
                    StopStage::Signalled { .. } => self.send_kill(ctx),
                    StopStage::Killed => stage,
                };
                self.state = State::Stopping { pid, stage };
            }
            State::Starting { .. } | State::Running { .. } => self.wait_no_longer(ctx),
            State::Stopped | State::Backoff { .. } | State::Exited { .. } | State::Fatal => {}
        }
    }

    /// The node stops, and whatever this job was left running for has had its time.
    fn wait_no_longer(&mut self, ctx: &mut JobCtx<'_>) {
        let Some(shutting) = ctx.shutting else { return self.hook_run_over(ctx) };
        if ctx.mono() < shutting.latest_signal(ctx.plan.stop.timeout) {
            self.be_quick(ctx);
        } else {
            self.stop(ctx, Force::Grace);
        }
    }

    /// A stop that an earlier agent began, or that has to begin again for a newer incarnation:
    /// what may have been lost is said once more.
    pub(super) fn resume_stop(&mut self, ctx: &mut JobCtx<'_>, stage: StopStage) -> StopStage {
        match stage {
            StopStage::Hooks { until, .. } | StopStage::Withdrawing { until }
                if ctx.mono() < until =>
            {
                ctx.wake(self.incarnation, Wait::StopTimeout, until);
                stage
            }
            StopStage::Hooks { .. } | StopStage::Withdrawing { .. } => self.send_signal(ctx),
            StopStage::Task { until } if ctx.mono() < until => {
                ctx.run_task(self.incarnation, TaskKind::StopExec, until);
                ctx.wake(self.incarnation, Wait::StopTimeout, until);
                stage
            }
            StopStage::Task { .. } => self.send_signal(ctx),
            StopStage::Signalled { until } => {
                ctx.stop(self.incarnation);
                ctx.wake(self.incarnation, Wait::StopTimeout, until);
                stage
            }
            StopStage::Killed => self.send_kill(ctx),
        }
    }

    fn run_task(&self, ctx: &mut JobCtx<'_>) -> StopStage {
        let until = task_until(ctx);
        ctx.run_task(self.incarnation, TaskKind::StopExec, until);
        ctx.wake(self.incarnation, Wait::StopTimeout, until);
        StopStage::Task { until }
    }

    pub(super) fn send_signal(&self, ctx: &mut JobCtx<'_>) -> StopStage {
        let until = signal_until(ctx);
        ctx.stop(self.incarnation);
        ctx.wake(self.incarnation, Wait::StopTimeout, until);
        StopStage::Signalled { until }
    }

    pub(super) fn send_kill(&self, ctx: &mut JobCtx<'_>) -> StopStage {
        ctx.kill(self.incarnation);
        StopStage::Killed
    }

    fn kill(&self, ctx: &mut JobCtx<'_>, stage: StopStage) -> StopStage {
        match stage {
            StopStage::Hooks { .. }
            | StopStage::Withdrawing { .. }
            | StopStage::Task { .. }
            | StopStage::Signalled { .. } => self.send_kill(ctx),
            StopStage::Killed => stage,
        }
    }

    /// A stop under way has no more time than one that would begin now.
    fn hurry(&self, ctx: &mut JobCtx<'_>, stage: StopStage) -> StopStage {
        let (sooner, until) = match stage {
            StopStage::Hooks { until, first } => {
                let until = until.min(hooks_until(ctx));
                (StopStage::Hooks { until, first }, until)
            }
            StopStage::Withdrawing { until } => {
                let until = until.min(hooks_until(ctx));
                (StopStage::Withdrawing { until }, until)
            }
            StopStage::Task { until } => {
                let until = until.min(task_until(ctx));
                (StopStage::Task { until }, until)
            }
            StopStage::Signalled { until } => {
                let until = until.min(signal_until(ctx));
                (StopStage::Signalled { until }, until)
            }
            StopStage::Killed => return stage,
        };
        if sooner != stage {
            ctx.wake(self.incarnation, Wait::StopTimeout, until);
        }
        sooner
    }
}

fn signal_until(ctx: &JobCtx<'_>) -> Mono {
    let own = ctx.mono().after(ctx.plan.stop.timeout);
    ctx.shutting.map_or(own, |shutting| own.min(shutting.kill_by))
}

fn hooks_until(ctx: &JobCtx<'_>) -> Mono {
    let own = ctx.mono().after(ctx.plan.stop.timeout);
    let latest = |it: crate::job::Shutting| it.latest_signal(ctx.plan.stop.timeout);
    ctx.shutting.map_or(own, |shutting| own.min(latest(shutting)))
}

fn task_until(ctx: &JobCtx<'_>) -> Mono {
    let now = ctx.mono();
    let own = now.after(ctx.plan.stop.timeout);
    ctx.shutting.map_or(own, |shutting| {
        let half: Duration = shutting.kill_by.since(now) / 2;
        own.min(now.after(half))
    })
}
