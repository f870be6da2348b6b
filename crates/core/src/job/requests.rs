//! What a user asks of a job that runs: a signal, its reload.

use super::{Job, JobCtx};
use crate::{
    node::Refusal,
    plan::{Reload, SignalTarget},
    signal::Signal,
    task::TaskKind,
};
use std::time::Duration;

/// How long `reload.exec` may take.
const RELOAD_TIME: Duration = Duration::from_secs(60);

impl Job {
    pub(super) fn signal(
        &self,
        ctx: &mut JobCtx<'_>,
        signal: Signal,
        to: SignalTarget,
    ) -> Result<(), Refusal> {
        if self.pid().is_none() {
            return Err(Refusal::NotRunning(ctx.plan.name.clone()));
        }
        ctx.signal(self.incarnation(), signal, to);
        Ok(())
    }

    /// The job's own way to take up its configuration.
    pub(super) fn reload(&self, ctx: &mut JobCtx<'_>) -> Result<(), Refusal> {
        let Some(reload) = &ctx.plan.reload else {
            return Err(Refusal::NoReload(ctx.plan.name.clone()));
        };
        if self.run.process().is_none() {
            return Err(Refusal::NotRunning(ctx.plan.name.clone()));
        }
        match reload {
            Reload::Signal(signal) => ctx.signal(self.incarnation(), *signal, SignalTarget::Leader),
            Reload::Exec(_) => {
                let deadline = ctx.mono().after(RELOAD_TIME);
                ctx.run_task(self.incarnation(), TaskKind::Reload, deadline);
            }
        }
        Ok(())
    }
}
