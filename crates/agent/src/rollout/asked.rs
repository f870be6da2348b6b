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
    rollout::{RolloutRefusal, RolloutRequest},
};
use mainstay_wire::api::{
    EarlierVersion, Gone, PreviewSubject, RolloutError, RolloutPreview, RolloutStatus,
};
use tokio::sync::{oneshot, watch};

impl Handle {
    /// How the rollout stands.
    ///
    /// # Errors
    /// [`Gone`], or inside: [`RolloutError::NotConfigured`].
    pub async fn rollout(&self) -> Result<Result<RolloutStatus, RolloutError>, Gone> {
        self.look(|agent| Ok(agent.rollout_room()?.status(clock::now()))).await
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
    fn rollout_room(&self) -> Result<&RolloutRoom, RolloutError> {
        self.rollout.room().ok_or(RolloutError::NotConfigured)
    }
}
