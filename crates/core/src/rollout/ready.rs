//! Until when the node is held to be starting, and whether it may end: what a service manager is
//! told of a rollout.

use super::{Rollout, RolloutPhase, RolloutStage};
use crate::{clock::Mono, plan::RolloutPlan};
use std::time::Duration;

/// Whether the node is held to be starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadyHold {
    /// Until what is rolled out is in place; it may take until then at the least.
    Until(Mono),
    /// Once and for all: it was, or it has failed, or the node was ready before.
    Over,
}

impl ReadyHold {
    /// Of an agent that takes over where everything was in place the node was ready before.
    #[must_use]
    pub fn begin(rollout: &Rollout, now: Mono, takes_over: bool) -> ReadyHold {
        match takes_over && rollout.kept.booted {
            true => ReadyHold::Over,
            false => ReadyHold::Until(now.after(rollout.plan.failure_timeout)),
        }
    }

    /// What was pending has failed for good, and the node goes on without it. One that ends of it was
    /// never ready.
    #[must_use]
    pub fn unless_failed(self, rollout: &Rollout) -> ReadyHold {
        match rollout.phase() {
            RolloutPhase::Failed if rollout.plan.exit_on_failure => self,
            RolloutPhase::Failed => ReadyHold::Over,
            RolloutPhase::Starting
            | RolloutPhase::Running
            | RolloutPhase::Updating
            | RolloutPhase::RollingBack
            | RolloutPhase::Pending
            | RolloutPhase::Paused => self,
        }
    }

    /// Until when the node may be starting; `None`: it is ready. An update may be under way when the
    /// time of a failure is over, and its way back takes as long again.
    #[must_use]
    pub fn bound(self, rollout: &Rollout) -> Option<Mono> {
        let ReadyHold::Until(least) = self else { return None };
        let pending = rollout.kept.pending.as_ref().map_or(least, |it| it.deadline);
        Some(pending.max(least).after(2 * longest_update(&rollout.plan)))
    }
}

impl Rollout {
    /// A service is told, which the node finishes before it ends if there is time.
    #[must_use]
    pub fn is_telling(&self) -> bool {
        match &self.stage {
            RolloutStage::Updating(update) => update.telling().is_some(),
            RolloutStage::New
            | RolloutStage::Idle
            | RolloutStage::Finishing { .. }
            | RolloutStage::Loading { .. }
            | RolloutStage::Storing { .. } => false,
        }
    }

    /// The node ends. What is told now is finished, if there is time; the next start goes on.
    pub(super) fn end_by(&mut self, by: Mono, now: Mono) {
        self.ending = true;
        let RolloutStage::Updating(update) = &self.stage else { return };
        let record = self.kept.update.as_ref();
        let entry = update.telling().and_then(|at| record?.services.get(at));
        let plan = entry.and_then(|it| self.service(&it.service));
        let done = plan.and_then(|plan| update.telling_until(plan, now));
        if done.is_some_and(|at| at > by) {
            self.stage = RolloutStage::Idle;
        }
    }
}

/// All services one after the other.
fn longest_update(plan: &RolloutPlan) -> Duration {
    plan.services.iter().map(|it| it.reload_timeout + it.bake_time).sum()
}
