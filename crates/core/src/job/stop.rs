//! The end of a process that is still there, in stages: hooks (jobs that run because it is
//! stopping), the withdrawal from service discovery (which begins with the first stage),
//! `stop.exec`, the stop signal, the kill.
//!
//! Each other stage has the stop timeout, less when the node's own time is running out: then the
//! hooks end early enough for the signal to have its time, the task has half of what is left, and
//! the kill comes early enough to be over before the end. The node says when the hooks are done.
//! After the kill there is nothing left to try: the keeper kills the tree until it is gone, and the
//! job waits for its end.

use super::{JobCtx, Shutting};
use crate::{clock::Mono, node::Wait, task::TaskKind};
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
    /// Jobs run on behalf of this end.
    Hooks {
        until: Mono,
        /// Always: binaries of before ask whether it is the first end.
        #[serde(default)]
        first: bool,
    },
    /// The entry in service discovery is being removed.
    Withdrawing { until: Mono },
    /// `stop.exec` runs.
    Task { until: Mono },
    /// The stop signal was sent.
    Signalled { until: Mono },
    /// SIGKILL was sent to the tree.
    Killed,
}

/// The process that is being stopped.
#[derive(Debug, Clone, Copy)]
pub(super) struct StopTarget {
    incarnation: u64,
    /// `None`: its exec is not confirmed yet.
    pid: Option<u32>,
    /// Until when its withdrawal is waited for, if it is being withdrawn.
    withdrawing_until: Option<Mono>,
}

impl StopTarget {
    pub(super) fn new(
        incarnation: u64,
        pid: Option<u32>,
        withdrawing_until: Option<Mono>,
    ) -> StopTarget {
        StopTarget { incarnation, pid, withdrawing_until }
    }
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

    /// Whether it waits for jobs that run on behalf of this end.
    pub(super) fn awaits_hooks(self) -> bool {
        match self {
            StopStage::Hooks { .. } => true,
            StopStage::Withdrawing { .. }
            | StopStage::Task { .. }
            | StopStage::Signalled { .. }
            | StopStage::Killed => false,
        }
    }

    pub(super) fn begin(ctx: &mut JobCtx<'_>, target: StopTarget, force: Force) -> StopStage {
        match force {
            Force::Grace if ctx.hooks => {
                let until = hooks_until(ctx);
                ctx.wake(target.incarnation, Wait::StopTimeout, until);
                StopStage::Hooks { until, first: true }
            }
            Force::Grace => after_hooks(ctx, target),
            Force::Kill => send_kill(ctx, target),
        }
    }

    /// A stop of which nobody knows how far it has come: on from the signal.
    pub(super) fn begin_without_hooks(ctx: &mut JobCtx<'_>, target: StopTarget) -> StopStage {
        send_signal(ctx, target)
    }

    pub(super) fn hooks_done(self, ctx: &mut JobCtx<'_>, target: StopTarget) -> StopStage {
        match self {
            StopStage::Hooks { .. } => after_hooks(ctx, target),
            StopStage::Withdrawing { .. }
            | StopStage::Task { .. }
            | StopStage::Signalled { .. }
            | StopStage::Killed => self,
        }
    }

    pub(super) fn withdrawn(self, ctx: &mut JobCtx<'_>, target: StopTarget) -> StopStage {
        match self {
            StopStage::Withdrawing { .. } => after_hooks(ctx, target),
            StopStage::Hooks { .. }
            | StopStage::Task { .. }
            | StopStage::Signalled { .. }
            | StopStage::Killed => self,
        }
    }

    /// `stop.exec` has ended.
    pub(super) fn task_done(self, ctx: &mut JobCtx<'_>, target: StopTarget) -> StopStage {
        match self {
            StopStage::Task { .. } => send_signal(ctx, target),
            StopStage::Hooks { .. }
            | StopStage::Withdrawing { .. }
            | StopStage::Signalled { .. }
            | StopStage::Killed => self,
        }
    }

    pub(super) fn timeout_over(self, ctx: &mut JobCtx<'_>, target: StopTarget) -> StopStage {
        match self {
            StopStage::Hooks { until, .. }
            | StopStage::Withdrawing { until }
            | StopStage::Task { until }
            | StopStage::Signalled { until }
                if ctx.mono() < until =>
            {
                ctx.wake(target.incarnation, Wait::StopTimeout, until);
                self
            }
            StopStage::Hooks { .. } => after_hooks(ctx, target),
            StopStage::Withdrawing { .. } => ask_to_end(ctx, target),
            StopStage::Task { .. } => send_signal(ctx, target),
            StopStage::Signalled { .. } => send_kill(ctx, target),
            StopStage::Killed => self,
        }
    }

    /// A stop that an earlier agent began, or that has to begin again for a newer incarnation:
    /// what may have been lost is said once more.
    pub(super) fn resume(self, ctx: &mut JobCtx<'_>, target: StopTarget) -> StopStage {
        let incarnation = target.incarnation;
        match self {
            StopStage::Hooks { until, .. } | StopStage::Withdrawing { until }
                if ctx.mono() < until =>
            {
                ctx.wake(incarnation, Wait::StopTimeout, until);
                self
            }
            StopStage::Task { until } if ctx.mono() < until => {
                ctx.run_task(incarnation, TaskKind::StopExec, until);
                ctx.wake(incarnation, Wait::StopTimeout, until);
                self
            }
            StopStage::Hooks { .. } | StopStage::Withdrawing { .. } | StopStage::Task { .. } => {
                send_signal(ctx, target)
            }
            StopStage::Signalled { until } => {
                ctx.stop(incarnation);
                ctx.wake(incarnation, Wait::StopTimeout, until);
                self
            }
            StopStage::Killed => send_kill(ctx, target),
        }
    }

    /// Asked for once more while it is under way.
    pub(super) fn ask_again(
        self,
        ctx: &mut JobCtx<'_>,
        target: StopTarget,
        force: Force,
    ) -> StopStage {
        match (force, self) {
            (Force::Grace, stage) => stage.hurry(ctx, target),
            (Force::Kill, StopStage::Killed) => self,
            (
                Force::Kill,
                StopStage::Hooks { .. }
                | StopStage::Withdrawing { .. }
                | StopStage::Task { .. }
                | StopStage::Signalled { .. },
            ) => send_kill(ctx, target),
        }
    }

    /// A stop under way has no more time than one that would begin now.
    fn hurry(self, ctx: &mut JobCtx<'_>, target: StopTarget) -> StopStage {
        let (sooner, until) = match self {
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
            StopStage::Killed => return self,
        };
        if sooner != self {
            ctx.wake(target.incarnation, Wait::StopTimeout, until);
        }
        sooner
    }
}

/// What follows the hooks.
fn after_hooks(ctx: &mut JobCtx<'_>, target: StopTarget) -> StopStage {
    if let Some(until) = target.withdrawing_until {
        let until = until.min(hooks_until(ctx));
        ctx.wake(target.incarnation, Wait::StopTimeout, until);
        return StopStage::Withdrawing { until };
    }
    ask_to_end(ctx, target)
}

fn ask_to_end(ctx: &mut JobCtx<'_>, target: StopTarget) -> StopStage {
    if target.pid.is_none() || ctx.plan.stop.exec.is_none() {
        return send_signal(ctx, target);
    }
    let until = task_until(ctx);
    ctx.run_task(target.incarnation, TaskKind::StopExec, until);
    ctx.wake(target.incarnation, Wait::StopTimeout, until);
    StopStage::Task { until }
}

fn send_signal(ctx: &mut JobCtx<'_>, target: StopTarget) -> StopStage {
    let until = signal_until(ctx);
    ctx.stop(target.incarnation);
    ctx.wake(target.incarnation, Wait::StopTimeout, until);
    StopStage::Signalled { until }
}

fn send_kill(ctx: &mut JobCtx<'_>, target: StopTarget) -> StopStage {
    ctx.kill(target.incarnation);
    StopStage::Killed
}

fn signal_until(ctx: &JobCtx<'_>) -> Mono {
    let own = ctx.mono().after(ctx.plan.stop.timeout);
    ctx.shutting.map_or(own, |shutting| own.min(shutting.kill_by))
}

fn hooks_until(ctx: &JobCtx<'_>) -> Mono {
    let own = ctx.mono().after(ctx.plan.stop.timeout);
    let latest = |it: Shutting| it.latest_signal(ctx.plan.stop.timeout);
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
