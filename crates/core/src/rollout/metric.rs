//! The metric of a rollout: 1 while a failure is pending or final, 0 while all is well. It is
//! published at every change, and again and again in between: an alarm needs data while nothing has
//! failed, too.

use super::{Rollout, RolloutCommand, RolloutStep};
use crate::clock::Mono;
use std::time::Duration;

/// The period of CloudWatch's own metrics.
const PERIOD: Duration = Duration::from_secs(60);

/// What was published last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Published {
    failing: bool,
    at: Mono,
}

impl Rollout {
    pub(super) fn publish(&mut self, step: &mut RolloutStep) {
        let failing = self.kept.pending.is_some();
        // Before the first version is in place it is not known how all is.
        if self.plan.cloudwatch.is_none() || !(self.kept.booted || failing) {
            self.published = None;
            return;
        }
        let now = step.now.mono;
        let is_news = |last: Published| last.failing != failing || now >= last.at.after(PERIOD);
        if self.published.is_none_or(is_news) {
            self.published = Some(Published { failing, at: now });
            step.commands.push(RolloutCommand::Publish { failing });
        }
    }

    pub(super) fn next_publication(&self) -> Option<Mono> {
        self.published.map(|last| last.at.after(PERIOD))
    }
}
