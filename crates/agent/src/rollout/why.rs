//! Why something of the rollout is as it is: the words are core's, the clocks are ours.

use super::RolloutRoom;
use crate::{agent::Agent, clock, handle::Handle, view::why::calendar};
use mainstay_core::{
    clock::Now,
    explain::{self, RolledOut},
    node::{Blocker, Node},
    plan::SourceRef,
};
use mainstay_wire::api::{Gone, RolloutError};

impl Handle {
    /// Five lines at most. `None` inside: there is no such thing.
    ///
    /// # Errors
    /// [`Gone`], or inside: [`RolloutError::NotConfigured`].
    pub async fn why_rolled_out(
        &self,
        subject: RolledOut,
    ) -> Result<Result<Option<Vec<String>>, RolloutError>, Gone> {
        self.look(move |agent| {
            let room = agent.rollout.room().ok_or(RolloutError::NotConfigured)?;
            let mut why = room.why(&agent.node, clock::now(), &subject);
            if let (Some(lines), RolledOut::Profile(profile), Some(fleet)) =
                (&mut why, &subject, &agent.fleet)
                && let Some(waves) = fleet.wave_profile(profile)
            {
                // Behind how it stands here.
                let waves = explain::in_waves(&waves, fleet.me());
                lines.splice(1..1, waves);
                lines.truncate(explain::LINES);
            }
            Ok(why)
        })
        .await
    }
}

impl RolloutRoom {
    fn why(&self, node: &Node, now: Now, subject: &RolledOut) -> Option<Vec<String>> {
        explain::why_rolled_out(&self.rollout, node, calendar(now), subject)
    }
}

impl Agent {
    /// Why what is rolled out does not let a job start, if it waits for that.
    pub(crate) fn why_not_rolled_out(&self, job: &str) -> Vec<String> {
        let Some(room) = self.rollout.room() else { return Vec::new() };
        let awaited = self.node.blockers().of(job).into_iter().find_map(|blocker| match blocker {
            Blocker::Condition { condition, .. } => match condition.source {
                SourceRef::Rollout(source) => Some(source),
                SourceRef::Job(_) | SourceRef::Watch(_) | SourceRef::Node => None,
            },
            _ => None,
        });
        let why = awaited.and_then(|it| room.why(&self.node, clock::now(), &it.into()));
        why.unwrap_or_default().into_iter().take(2).collect()
    }
}
