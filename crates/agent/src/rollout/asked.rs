//! What people ask of the rollout, by the agent's [`Handle`]: how it stands, what an update would
//! change, and what it is to do.

use super::{RolloutRoom, preview::earlier_version};
use crate::{
    agent::Agent,
    clock,
    handle::{Call, Handle},
};
use mainstay_core::{
    name::Name,
    rollout::{RolloutRefusal, RolloutRequest, Trouble},
};
use mainstay_wire::api::{
    EarlierVersion, Gone, PreviewSubject, RolloutError, RolloutPreview, RolloutStatus, WaitError,
};
use std::time::Duration;
use tokio::{
    sync::{oneshot, watch},
    time::{Instant, timeout_at},
};

impl Handle {
    /// How the rollout stands.
    ///
    /// # Errors
    /// [`Gone`], or inside: [`RolloutError::NotConfigured`].
    pub async fn rollout(&self) -> Result<Result<RolloutStatus, RolloutError>, Gone> {
        self.look(|agent| agent.rollout_status(clock::now()).ok_or(RolloutError::NotConfigured))
            .await
    }

    /// Changes with everything that happens to the rollout, for those who wait for a status.
    #[must_use]
    pub fn rollout_changes(&self) -> watch::Receiver<u64> {
        self.shared().rollout_changes.clone()
    }

    /// The versions of a profile that were applied before, the last one first.
    ///
    /// # Errors
    /// [`Gone`], or inside: there is no such profile.
    pub async fn rollout_history(
        &self,
        profile: &Name,
    ) -> Result<Result<Vec<EarlierVersion>, RolloutError>, Gone> {
        let profile = profile.clone();
        self.look(move |agent| {
            let status = agent.rollout_room()?.status(clock::now());
            let found = status.profiles.into_iter().find(|it| it.name == profile);
            Ok(found.ok_or(RolloutRefusal::UnknownProfile(profile))?.history)
        })
        .await
    }

    /// What an update would change: `plan` and `diff`.
    ///
    /// # Errors
    /// [`Gone`], or inside: why it cannot be worked out.
    pub async fn preview_rollout(
        &self,
        subject: PreviewSubject,
    ) -> Result<Result<RolloutPreview, RolloutError>, Gone> {
        let work = self.look(move |agent| Ok(agent.rollout_room()?.preview(subject))).await?;
        match work {
            Ok(work) => Ok(work.run().await),
            Err(error) => Ok(Err(error)),
        }
    }

    /// Asks the sources now. It is taken when this returns, and done when the status says so.
    ///
    /// # Errors
    /// [`Gone`], or inside: why it is not taken.
    pub async fn refresh_rollout(
        &self,
        profile: Option<Name>,
        force: bool,
    ) -> Result<Result<(), RolloutError>, Gone> {
        self.ask_rollout(RolloutRequest::Refresh { profile, force }).await
    }

    /// Back to an earlier version, by its label or the beginning of its digest; `None`: to the last
    /// one.
    ///
    /// # Errors
    /// [`Gone`], or inside: why it is not taken.
    pub async fn roll_back(
        &self,
        profile: Name,
        version: Option<String>,
        force: bool,
    ) -> Result<Result<(), RolloutError>, Gone> {
        let found = match version {
            None => Ok(None),
            Some(text) => {
                let profile = profile.clone();
                self.look(move |agent| {
                    let kept = agent.rollout_room()?.rollout.kept();
                    earlier_version(kept, &profile, Some(&text)).map(Some)
                })
                .await?
            }
        };
        match found {
            Ok(to) => self.ask_rollout(RolloutRequest::Rollback { profile, to, force }).await,
            Err(error) => Ok(Err(error)),
        }
    }

    /// No update begins until [`Handle::resume_rollout`]; kept over boots.
    ///
    /// # Errors
    /// [`Gone`], or inside: why it is not taken.
    pub async fn pause_rollout(&self) -> Result<Result<(), RolloutError>, Gone> {
        self.ask_rollout(RolloutRequest::Pause).await
    }

    /// # Errors
    /// [`Gone`], or inside: why it is not taken.
    pub async fn resume_rollout(&self) -> Result<Result<(), RolloutError>, Gone> {
        self.ask_rollout(RolloutRequest::Resume).await
    }
}

impl Handle {
    /// Returns when the update that a plan has led to is over.
    ///
    /// # Errors
    /// It has failed, or takes too long.
    pub(crate) async fn rollout_settles(
        &self,
        patience: Duration,
        deadline: Instant,
    ) -> Result<(), WaitError> {
        let mut changes = self.rollout_changes();
        loop {
            changes.mark_unchanged();
            match self.look(Agent::rollout_outcome).await? {
                Some(Ok(())) => return Ok(()),
                Some(Err(Trouble(why))) => return Err(WaitError::RolloutFailed(why)),
                None => {}
            }
            match timeout_at(deadline, changes.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(Gone.into()),
                Err(_) => return Err(WaitError::RolloutTimeOver { patience }),
            }
        }
    }

    async fn ask_rollout(&self, request: RolloutRequest) -> Result<Result<(), RolloutError>, Gone> {
        let (caller, answer) = oneshot::channel();
        self.calls().send(Call::AskRollout(request, caller)).await.map_err(|_| Gone)?;
        // Without a room nobody answers.
        match answer.await {
            Ok(answer) => Ok(answer.map_err(RolloutError::from)),
            Err(_) => Ok(Err(RolloutError::NotConfigured)),
        }
    }
}

impl Agent {
    /// What the plan in force has led to; `None`: that is not known yet.
    fn rollout_outcome(&self) -> Option<Result<(), Trouble>> {
        match (self.rollout.room(), &self.node.plan().rollout) {
            (None, None) => Some(Ok(())),
            (Some(room), Some(plan)) if room.plan == *plan => room.rollout.plan_outcome().cloned(),
            // It is told, opened or closed.
            (Some(_), Some(_)) | (None, Some(_)) | (Some(_), None) => None,
        }
    }

    fn rollout_room(&self) -> Result<&RolloutRoom, RolloutError> {
        self.rollout.room().ok_or(RolloutError::NotConfigured)
    }
}
