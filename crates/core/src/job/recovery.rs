//! What is expected of a job that has been healthy: that its next process becomes so, too.
//!
//! | the job | then |
//! |---|---|
//! | crashes and comes back by policy | it has its time from the crash, whatever becomes of it meanwhile |
//! | is restarted by a user, its app or a reload | from the end of its process |
//! | goes down with what it follows | from its next launch |
//! | passes its checks | nothing is owed until its process is gone |
//! | is stopped, or has ended as expected | it owes nothing |
//!
//! If the time is over, or it is clear before that nothing follows, it is unhealthy. A job without
//! checks cannot be found to be that, and owes nothing.

use super::JobCtx;
use crate::{clock::Mono, node::Wait};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Recovery {
    /// It has not been healthy since it was last at rest.
    #[default]
    None,
    /// It has been: its next process has to become so.
    Owed,
    /// Its time begins with its next launch.
    AtLaunch,
    /// It is unhealthy if it has not passed its checks by then.
    Until(Mono),
}

impl Recovery {
    pub(super) fn is_none(&self) -> bool {
        *self == Recovery::None
    }

    /// It is neither healthy nor found to be unhealthy.
    pub(super) fn is_under_way(self) -> bool {
        match self {
            Recovery::AtLaunch | Recovery::Until(_) => true,
            Recovery::None | Recovery::Owed => false,
        }
    }

    /// It is healthy.
    pub(super) fn owe(&mut self, ctx: &JobCtx<'_>) {
        *self = if ctx.plan.checks.is_empty() { Recovery::None } else { Recovery::Owed };
    }

    /// Its process is gone, or about to be replaced: its time begins.
    pub(super) fn begin(&mut self, ctx: &mut JobCtx<'_>) {
        match self {
            Recovery::Owed | Recovery::Until(_) => {
                *self = Recovery::Until(ctx.mono().after(ctx.plan.recovers_within()));
                self.rearm(ctx);
            }
            Recovery::None | Recovery::AtLaunch => {}
        }
    }

    /// It goes down because of another one.
    pub(super) fn await_launch(&mut self) {
        match self {
            Recovery::Owed | Recovery::Until(_) => *self = Recovery::AtLaunch,
            Recovery::None | Recovery::AtLaunch => {}
        }
    }

    pub(super) fn launched(&mut self, ctx: &mut JobCtx<'_>) {
        match self {
            Recovery::AtLaunch => {
                *self = Recovery::Owed;
                self.begin(ctx);
            }
            Recovery::None | Recovery::Owed | Recovery::Until(_) => {}
        }
    }

    /// Its time is over; one that comes too early is set again.
    pub(super) fn is_over(self, ctx: &mut JobCtx<'_>) -> bool {
        match self {
            Recovery::Until(at) if ctx.mono() < at => {
                self.rearm(ctx);
                false
            }
            Recovery::Until(_) => true,
            Recovery::None | Recovery::Owed | Recovery::AtLaunch => false,
        }
    }

    /// The wait may be lost with an agent. It outlives incarnations.
    pub(super) fn rearm(self, ctx: &mut JobCtx<'_>) {
        match self {
            Recovery::Until(at) => ctx.wake(0, Wait::Recovery, at),
            Recovery::None | Recovery::Owed | Recovery::AtLaunch => {}
        }
    }
}
