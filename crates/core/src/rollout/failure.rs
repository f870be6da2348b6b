//! What has failed and is pending: who is blamed, until when it may stay so, and who is told.

use super::{
    FailureReport, KeptFailure, Rollout, RolloutCommand, RolloutStep, Trouble, UpdateCause,
    Version, round::MissedProfile, update::Update,
};
use crate::{clock::Mono, name::Name};

/// What an update has failed at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Blame {
    Template(Name),
    Service(Name),
    /// A disk, of which no version is guilty.
    Disk,
    Update,
}

impl Rollout {
    /// The profile that a failure is blamed on: of several that change, the last one that the failed
    /// template or service uses.
    pub(super) fn blamed(&self, update: &Update, blame: &Blame) -> Option<Name> {
        match &update.cause {
            UpdateCause::Profile(name) | UpdateCause::Rollback(name) => return Some(name.clone()),
            UpdateCause::Boot | UpdateCause::Plan => {}
        }
        let uses = |profile: &Name| match blame {
            Blame::Template(name) => self.uses(name, profile),
            Blame::Service(name) => {
                let service = self.service(name);
                service.is_some_and(|it| it.templates.iter().any(|it| self.uses(it, profile)))
            }
            Blame::Disk | Blame::Update => true,
        };
        let changes = |profile: &Name| {
            let version = update.versions.get(profile);
            version.is_some_and(|new| {
                self.applied(profile).is_none_or(|applied| !applied.is_same_content(new))
            })
        };
        let names = self.plan.profiles.iter().map(|profile| &profile.name);
        names.rev().find(|name| changes(name) && uses(name)).cloned()
    }

    fn uses(&self, template: &Name, profile: &Name) -> bool {
        self.template(template).is_some_and(|it| it.profiles.contains(profile))
    }

    /// An update has failed, and what was there before is in place.
    pub(super) fn came_back(
        &mut self,
        step: &mut RolloutStep,
        profile: Option<Name>,
        version: Option<Version>,
        Trouble(failure): Trouble,
        adrift: bool,
    ) {
        if let Some(profile) = &profile {
            self.kept_profile(profile).refused.clone_from(&version);
            // Nothing of it that was loaded before is used again.
            if let Some(boot) = &mut self.boot {
                boot.got.remove(profile);
            }
        }
        self.keep_failure(step, profile.clone(), version.clone(), failure.clone(), adrift, true);
        self.report(profile, version, failure);
        // Its source is asked in its time.
        self.kept.booted |= self.plan.profiles.iter().all(|it| self.applied(&it.name).is_some());
    }

    /// A profile cannot be had: nothing was changed.
    pub(super) fn pend(&mut self, step: &mut RolloutStep, missed: MissedProfile, adrift: bool) {
        let MissedProfile { profile, version, trouble: Trouble(failure) } = missed;
        self.keep_failure(step, Some(profile), version, failure, adrift, false);
    }

    fn keep_failure(
        &mut self,
        step: &mut RolloutStep,
        profile: Option<Name>,
        version: Option<Version>,
        failure: String,
        adrift: bool,
        came_back: bool,
    ) {
        // What could not be had before and still cannot be goes on being pending.
        if let Some(pending) = &mut self.kept.pending
            && !came_back
            && (&pending.profile, &pending.version) == (&profile, &version)
        {
            pending.failure = failure;
            return;
        }
        self.kept.failures += 1;
        self.kept.pending = Some(KeptFailure {
            number: self.kept.failures,
            profile,
            version,
            failure,
            since: step.now.wall,
            adrift,
            came_back,
            deadline: step.now.mono.after(self.plan.failure_timeout),
            failed: false,
        });
    }

    fn report(&mut self, profile: Option<Name>, version: Option<Version>, failure: String) {
        if self.plan.on_failure.is_some() {
            let number = self.kept.failures;
            self.kept.hook = Some(FailureReport { number, profile, version, failure });
            // What was told of an earlier one comes too late.
            self.hook = None;
        }
    }

    pub(super) fn run_hook(&mut self, step: &mut RolloutStep) {
        if let Some(failure) = self.kept.hook.clone().filter(|_| self.hook.is_none()) {
            let op = self.ask(step, |op| RolloutCommand::RunHook { op, failure });
            self.hook = Some(op);
        }
    }

    /// What was pending of a profile no longer is; whether its way back had failed.
    pub(super) fn end_pending_of(&mut self, profile: &Name) -> bool {
        let ended = self.kept.pending.take_if(|pending| pending.profile.as_ref() == Some(profile));
        ended.is_some_and(|pending| pending.adrift)
    }

    /// When what is pending becomes FAILED.
    pub(super) fn deadline(&self) -> Option<Mono> {
        let pending = self.kept.pending.as_ref().filter(|it| !it.failed)?;
        let counts = pending.profile.is_some() || !self.kept.booted;
        counts.then_some(pending.deadline)
    }

    /// The time in which no update may begin does not count, nor that between two runs.
    pub(super) fn grant_time(&mut self, now: Mono) {
        let deadline = now.after(self.plan.failure_timeout);
        if let Some(pending) = self.kept.pending.as_mut().filter(|it| !it.failed) {
            pending.deadline = deadline;
        }
    }

    /// FAILED, if its time is over.
    pub(super) fn give_up_in_time(&mut self, step: &mut RolloutStep) -> bool {
        if self.deadline().is_none_or(|at| at > step.now.mono) {
            return false;
        }
        self.kept.failures += 1;
        let Some(pending) = &mut self.kept.pending else { return false };
        pending.failed = true;
        pending.number = self.kept.failures;
        let (profile, version) = (pending.profile.clone(), pending.version.clone());
        let failure = pending.failure.clone();
        self.report(profile, version, failure);
        if self.plan.exit_on_failure {
            step.commands.push(RolloutCommand::Exit);
        }
        true
    }
}
