//! What has failed and is pending: who is blamed, until when it may stay so, and who is told.

use super::{
    FailedVersion, FailureReport, KeptFailure, Rollout, RolloutCommand, RolloutStep, Trouble,
    UpdateCause, Version, WaveFailure, replan::recipe, round::MissedProfile, update::Update,
};
use crate::{clock::Mono, event::cut, name::Name};

/// What an update has failed at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Blame {
    Template(Name),
    Service(Name),
    /// A disk, of which no version is guilty.
    Disk,
    /// The content of this profile is gone.
    Content(Name),
    Update,
}

/// How far what has failed had got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    /// A profile could not be had.
    Loading,
    /// A profile could not be had for the fleet, or that has come back from it.
    Conducting,
    /// Nothing that can be seen has changed.
    Staging,
    /// Files were switched, and are back unless that has failed as well.
    Switched { adrift: bool },
}

impl Rollout {
    /// The profile that a failure is blamed on: of several that change, the last one that the failed
    /// template or service uses.
    pub(super) fn blamed(&self, update: &Update, blame: &Blame) -> Option<Name> {
        if let Blame::Content(name) = blame {
            return Some(name.clone());
        }
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
            Blame::Disk | Blame::Content(_) | Blame::Update => true,
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
        Trouble(mut failure): Trouble,
        reached: Reached,
    ) {
        // It becomes a variable of a command, which has no room for all that a check may print.
        cut(&mut failure);
        if let Some(profile) = &profile {
            // Nothing of it that was loaded before is used again.
            if let Some(boot) = &mut self.boot {
                boot.got.remove(profile);
            }
        }
        self.keep_failure(step, profile.clone(), version.clone(), failure.clone(), reached);
        self.report(profile, version, failure);
        self.boot_with_applied();
    }

    /// It has failed. Whatever somebody wanted back by hand, and could not have, is none that a source
    /// serves: what that has served and failed with stays refused.
    pub(super) fn refuse(
        &mut self,
        cause: &UpdateCause,
        profile: Option<&Name>,
        version: Option<&Version>,
    ) {
        let by_hand = match cause {
            UpdateCause::Rollback(_) => true,
            UpdateCause::Boot | UpdateCause::Profile(_) | UpdateCause::Plan => false,
        };
        let Some(profile) = profile.filter(|_| !by_hand) else { return };
        let with = recipe(&self.plan);
        let kept = self.kept_profile(profile);
        (kept.refused, kept.refused_with) = (version.cloned(), version.map(|_| with));
    }

    /// What is applied of all profiles is in place: their sources are asked in their time.
    pub(super) fn boot_with_applied(&mut self) {
        self.kept.booted |= self.plan.profiles.iter().all(|it| self.applied(&it.name).is_some());
    }

    /// A profile cannot be had: nothing was changed.
    pub(super) fn pend(&mut self, step: &mut RolloutStep, missed: MissedProfile) {
        let MissedProfile { profile, version, trouble: Trouble(failure) } = missed;
        self.keep_failure(step, Some(profile), version, failure, Reached::Loading);
    }

    /// Something that no version is guilty of: nothing was changed, and it is tried again.
    pub(super) fn hinder(&mut self, step: &mut RolloutStep, profile: Option<Name>, why: String) {
        self.keep_failure(step, profile, None, why, Reached::Loading);
        self.boot_with_applied();
    }

    /// The source of a profile that this node conducts cannot be had. What has failed here otherwise
    /// comes first.
    pub(super) fn pend_conducted(&mut self, step: &mut RolloutStep, profile: &Name, why: String) {
        let is_it = |it: &KeptFailure| it.profile.as_ref() == Some(profile) && it.version.is_none();
        if self.kept.pending.is_none() || self.conducted_failure().is_some_and(is_it) {
            let profile = Some(profile.clone());
            self.keep_failure(step, profile, None, why, Reached::Conducting);
        }
    }

    /// What a fleet has come back from is pending on the node that asks the source, for as long as
    /// that serves it. Whoever has failed has told of it; of one that was lost this node does.
    pub(super) fn judge_fleet(&mut self, step: &mut RolloutStep) {
        let judged = self.conducted_failure().filter(|it| it.version.is_some());
        if judged.is_some_and(|it| self.is_over_in_fleet(it)) {
            self.kept.pending = None;
        }
        let Some((profile, failed)) =
            self.failed_in_fleet().filter(|_| self.kept.pending.is_none())
        else {
            return;
        };
        let FailedVersion { version, failure: WaveFailure { node, failure }, .. } = failed;
        let is_lost = failure.is_none();
        let mut why = match failure {
            Some(why) => format!("it failed on node '{node}': {why}"),
            None => format!("node '{node}' was lost in its own wave"),
        };
        cut(&mut why);
        let (profile, version) = (Some(profile), Some(version));
        let reached = Reached::Conducting;
        self.keep_failure(step, profile.clone(), version.clone(), why.clone(), reached);
        if is_lost {
            self.report(profile, version, why);
        }
    }

    /// What is pending of a source that this node asks for the fleet.
    pub(super) fn conducted_failure(&self) -> Option<&KeptFailure> {
        self.kept.pending.as_ref().filter(|it| it.conducted && self.plan.wave.is_some())
    }

    /// What is pending of the files of this node, or of the sources that it asks for itself.
    pub(super) fn own_failure(&self) -> Option<&KeptFailure> {
        self.kept.pending.as_ref().filter(|_| self.conducted_failure().is_none())
    }

    /// The source of a profile has answered.
    pub(super) fn end_conducted(&mut self, profile: &Name) {
        let is_it = |it: &KeptFailure| it.profile.as_ref() == Some(profile) && it.version.is_none();
        if self.conducted_failure().is_some_and(is_it) {
            self.kept.pending = None;
        }
    }

    fn keep_failure(
        &mut self,
        step: &mut RolloutStep,
        profile: Option<Name>,
        version: Option<Version>,
        failure: String,
        reached: Reached,
    ) {
        let (came_back, switched, adrift) = match reached {
            Reached::Loading | Reached::Conducting => (false, false, false),
            Reached::Staging => (true, false, false),
            Reached::Switched { adrift } => (true, true, adrift),
        };
        // What could not be had before and still cannot be goes on being pending.
        let conducted = reached == Reached::Conducting;
        if let Some(pending) = &mut self.kept.pending
            && !came_back
            && pending.conducted == conducted
            && (&pending.profile, &pending.version) == (&profile, &version)
        {
            // Why a version has failed is told where it failed: later it only has failed before.
            if pending.version.is_none() {
                pending.failure = failure;
            }
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
            switched,
            conducted,
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

    /// FAILED ends the node, once `on_failure` has been told of it.
    pub(super) fn exit_if_failed(&self, step: &mut RolloutStep) {
        let failed = self.kept.pending.as_ref().is_some_and(|it| it.failed);
        if failed && self.plan.exit_on_failure && self.kept.hook.is_none() {
            step.commands.push(RolloutCommand::Exit);
        }
    }

    /// What has failed in an earlier run is pending in this one, with all of its time.
    pub(super) fn pend_anew(&mut self, now: Mono) {
        let deadline = now.after(self.plan.failure_timeout);
        if let Some(pending) = &mut self.kept.pending {
            (pending.failed, pending.deadline) = (false, deadline);
        }
    }

    /// What was pending of a profile no longer is; whether its way back had failed.
    pub(super) fn end_pending_of(&mut self, profile: &Name) -> bool {
        if self.own_failure().is_none() {
            return false;
        }
        let ended = self.kept.pending.take_if(|pending| pending.profile.as_ref() == Some(profile));
        ended.is_some_and(|pending| pending.adrift)
    }

    /// When what is pending becomes FAILED.
    pub(super) fn deadline(&self) -> Option<Mono> {
        let pending = self.kept.pending.as_ref().filter(|it| !it.failed)?;
        let counts = pending.profile.is_some() || !self.kept.booted || self.boot.is_some();
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
        self.exit_if_failed(step);
        true
    }
}
