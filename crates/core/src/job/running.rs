//! What is done to a job that runs: a user's signal, its reload, and the limit of its time.
//!
//! A run that is longer than `timeout` is killed. Nobody wanted that end: it is a failure, and
//! policy decides what follows.

use super::{Job, JobCtx, State};
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
        ctx: &mut JobCtx<'_>,
        signal: Signal,
        to: Reach,
    ) -> Result<(), Refusal> {
        if self.pid().is_none() {
            return Err(Refusal::NotRunning(ctx.plan.name.clone()));
        }
        ctx.signal(self.incarnation, signal, to);
        Ok(())
    }

    /// The job's own way to take up its configuration.
    pub(crate) fn reload(&self, ctx: &mut JobCtx<'_>) -> Result<(), Refusal> {
        let Some(reload) = &ctx.plan.reload else {
            return Err(Refusal::NoReload(ctx.plan.name.clone()));
        };
        if self.process().is_none() {
            return Err(Refusal::NotRunning(ctx.plan.name.clone()));
        }
        match reload {
            Reload::Signal(signal) => ctx.signal(self.incarnation, *signal, Reach::Leader),
            Reload::Exec(_) => {
                let deadline = ctx.mono().after(RELOAD_TIME);
                ctx.run_task(self.incarnation, TaskKind::Reload, deadline);
            }
        }
        Ok(())
    }

    /// exec has succeeded, or the limit is new.
    pub(super) fn limit_run(&self, ctx: &mut JobCtx<'_>) {
        if let (Some(process), Some(timeout)) = (self.process(), ctx.plan.timeout) {
            ctx.wake(self.incarnation, Wait::Longest, process.since.after(timeout));
        }
    }

    /// A new agent: the wait, or the kill, may be lost.
    pub(super) fn resume_limit(&self, ctx: &mut JobCtx<'_>) {
        if self.overran == Some(self.incarnation) {
            ctx.kill(self.incarnation);
        } else {
            self.limit_run(ctx);
        }
    }

    pub(super) fn longest_run_over(&mut self, ctx: &mut JobCtx<'_>) {
        match self.state {
            State::Starting { process: Some(process) } | State::Running { process } => {
                let Some(timeout) = ctx.plan.timeout else { return };
                let at = process.since.after(timeout);
                if ctx.mono() < at {
                    return ctx.wake(self.incarnation, Wait::Longest, at);
                }
                self.overran = Some(self.incarnation);
                ctx.kill(self.incarnation);
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
