//! What of an app is journaled: how far it is, its restarts, and each reason by itself.

use super::{App, AppRestarts, AppStage, RestReason};
use crate::{name::Name, record::Journaled};

impl App {
    /// An app as an earlier agent left it.
    pub(crate) fn restored(stage: AppStage, restarts: AppRestarts) -> App {
        let (stage, restarts) = (Journaled::new(stage), Journaled::new(restarts));
        App { stage, restarts, ..App::default() }
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

    /// The reasons that have changed.
    pub(crate) fn take_reasons(&mut self) -> Vec<(Name, Option<RestReason>)> {
        self.resting.take_changes()
    }
}
