//! What of an app is journaled: how far it is, its restarts, its waves, and each reason by itself.

use super::{App, AppPhase, AppRestarts, AppStage, RestReason, Wave};
use crate::{clock::Mono, name::Name, record::Journaled};
use serde::{Deserialize, Serialize};

impl App {
    /// An app as an earlier agent left it.
    pub(crate) fn restored(stage: AppStage, restarts: AppRestarts) -> App {
        let (stage, restarts) = (Journaled::new(stage), Journaled::new(restarts));
        App { stage, restarts, ..App::default() }
    }

    /// The waves that an earlier agent had begun.
    pub(crate) fn recall_wave(&mut self, wave: Option<Wave>) {
        self.wave = Journaled::new(wave);
    }

    /// The reason that an earlier agent, or another app, had for a job to rest.
    pub(crate) fn recall(&mut self, job: Name, reason: RestReason) {
        self.resting.insert_known(job, reason);
    }

    /// The other way round: those who are no members any more, and why they rest.
    pub(crate) fn dismiss(&mut self, is_member: impl Fn(&Name) -> bool) -> Vec<(Name, RestReason)> {
        let gone = self.reasons().filter(|(job, _)| !is_member(job));
        let gone: Vec<(Name, RestReason)> = gone.map(|(job, it)| (job.clone(), it)).collect();
        self.resting.retain_known(is_member);
        gone
    }

    /// The run begins: nothing of it is journaled yet.
    pub(crate) fn begin(&mut self) {
        self.resting.begin();
    }

    pub(crate) fn stage(&self) -> AppStage {
        *self.stage
    }

    pub(crate) fn restarts(&self) -> &AppRestarts {
        &self.restarts
    }

    pub(crate) fn wave(&self) -> Option<&Wave> {
        self.wave.as_ref()
    }

    pub(crate) fn reasons(&self) -> impl Iterator<Item = (&Name, RestReason)> {
        self.resting.iter().map(|(job, reason)| (job, *reason))
    }

    /// How far it is, if that has changed.
    pub(crate) fn take_stage(&mut self) -> Option<AppStage> {
        self.stage.take_change().copied()
    }

    /// Its restarts, if they have changed.
    pub(crate) fn take_restarts(&mut self) -> Option<AppRestarts> {
        self.restarts.take_change().cloned()
    }

    /// The waves it is restarted in, if that has changed.
    pub(crate) fn take_wave(&mut self) -> Option<Option<Wave>> {
        self.wave.take_change().cloned()
    }

    /// The reasons that have changed.
    pub(crate) fn take_reasons(&mut self) -> Vec<(Name, Option<RestReason>)> {
        self.resting.take_changes()
    }
}

/// All of an app, for whoever runs it next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppState {
    stage: AppStage,
    restarts: AppRestarts,
    resting: Vec<(Name, RestReason)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wave: Option<Wave>,
}

impl AppState {
    #[must_use]
    pub fn phase(&self) -> AppPhase {
        App::restored(self.stage, self.restarts.clone()).phase()
    }
}

impl App {
    #[must_use]
    pub fn hand_over(&self) -> AppState {
        AppState {
            stage: self.stage(),
            restarts: self.restarts().clone(),
            resting: self.reasons().map(|(job, reason)| (job.clone(), reason)).collect(),
            wave: self.wave().cloned(),
        }
    }

    /// The app as somebody else had it, when their clock showed `then` and this one shows `now`.
    #[must_use]
    pub fn taken_over(state: &AppState, then: Mono, now: Mono) -> App {
        let mut app = App::restored(state.stage, state.restarts.moved(then, now));
        app.recall_wave(state.wave.clone());
        for (job, reason) in &state.resting {
            app.recall(job.clone(), *reason);
        }
        app
    }
}
