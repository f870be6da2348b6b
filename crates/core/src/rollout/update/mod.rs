//! One update: staged and checked, switched as one set, told to one service after the other; and its
//! way back.
//!
//! ```text
//!  Staging ─► Checking ─► Switching ─► Telling(0) ─► Telling(1) … ─► applied, the record goes
//!     │           │           │             │
//!     │ nothing has changed   └─────────────┴──► Restoring ─► Returning(0) ─► … ─► the record goes
//!     └───────────┴──► pending                                                        └─► pending
//! ```
//!
//! The record is kept from `Switching` on. A way back that fails goes on with the services that are
//! left, and never turns round.

mod tell;

use super::{
    AppliedVersion, Digest, HISTORY, Op, RestoreOutcome, Rollout, RolloutCommand, RolloutStage,
    RolloutStep, ServiceRecord, StageFailure, StageSet, StageTemplate, StagedFile, StagedSet,
    ToldState, Trouble, UpdateCause, UpdateFailure, UpdateRecord, Version,
    failure::{Blame, Reached},
    round::{Round, RoundPurpose},
    service::ServiceUpdate,
};
use crate::{
    clock::Mono,
    name::Name,
    plan::{ServicePlan, TemplatePlan},
};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Update {
    pub(super) cause: UpdateCause,
    /// What is applied at its end.
    pub(super) versions: BTreeMap<Name, Version>,
    /// What it is a part of.
    pub(super) round: Round,
    stage: UpdateStage,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum UpdateStage {
    Staging {
        op: Op,
    },
    /// The check of the file at this place.
    Checking {
        op: Op,
        at: usize,
        files: Arc<[StagedFile]>,
        unchanged: BTreeMap<Name, Digest>,
    },
    Switching {
        op: Op,
    },
    Telling {
        at: usize,
        service: ServiceUpdate,
    },
    Restoring {
        op: Op,
    },
    Returning {
        at: usize,
        service: ServiceUpdate,
    },
}

impl Update {
    pub(super) fn wake(&self) -> Option<Mono> {
        match &self.stage {
            UpdateStage::Telling { service, .. } | UpdateStage::Returning { service, .. } => {
                service.wake()
            }
            UpdateStage::Staging { .. }
            | UpdateStage::Checking { .. }
            | UpdateStage::Switching { .. }
            | UpdateStage::Restoring { .. } => None,
        }
    }

    /// The service that is told of it, or of its way back: its place in the record.
    pub(super) fn telling(&self) -> Option<usize> {
        self.doing().1
    }

    /// When that service is done at the earliest, with nothing in its way.
    pub(super) fn telling_until(&self, plan: &ServicePlan, now: Mono) -> Option<Mono> {
        match &self.stage {
            UpdateStage::Telling { service, .. } | UpdateStage::Returning { service, .. } => {
                Some(service.done_at(plan, now))
            }
            UpdateStage::Staging { .. }
            | UpdateStage::Checking { .. }
            | UpdateStage::Switching { .. }
            | UpdateStage::Restoring { .. } => None,
        }
    }

    /// What it does now, for people; of a service, its place in the record.
    pub(super) fn doing(&self) -> (&'static str, Option<usize>) {
        match &self.stage {
            UpdateStage::Staging { .. } => ("rendering", None),
            UpdateStage::Checking { .. } => ("checking what was rendered", None),
            UpdateStage::Switching { .. } => ("switching files", None),
            UpdateStage::Restoring { .. } => ("putting files back", None),
            UpdateStage::Telling { at, service } | UpdateStage::Returning { at, service } => {
                (service.doing(), Some(*at))
            }
        }
    }
}

impl Rollout {
    pub(super) fn begin_update(
        &mut self,
        step: &mut RolloutStep,
        cause: UpdateCause,
        versions: BTreeMap<Name, Version>,
        round: Round,
    ) {
        let record = self.kept.update.as_ref();
        let in_scope = |template: &&TemplatePlan| match round.purpose {
            RoundPurpose::Boot | RoundPurpose::Plan => true,
            RoundPurpose::Refresh => template.profiles.iter().any(|it| versions.contains_key(it)),
        };
        let templates: Vec<&TemplatePlan> = self.plan.templates.iter().filter(in_scope).collect();
        let expected = |name: &Name| {
            let ours = record.and_then(|it| it.files.iter().find(|file| file.template == *name));
            ours.map(|file| file.new).or_else(|| self.kept.files.get(name).copied())
        };
        let used = templates.iter().flat_map(|template| &template.profiles);
        let version = |name: &Name| versions.get(name).or_else(|| self.applied(name)).cloned();
        let profiles = used.filter_map(|it| Some((it.clone(), version(it)?))).collect();
        let set = StageSet {
            profiles,
            force: round.force,
            open: record.map_or_else(|| Arc::from([]), |record| record.files.clone()),
            templates: templates
                .iter()
                .map(|it| StageTemplate { template: it.name.clone(), expected: expected(&it.name) })
                .collect(),
        };
        let op = self.ask(step, |op| RolloutCommand::Stage { op, set });
        let stage = UpdateStage::Staging { op };
        self.stage = RolloutStage::Updating(Update { cause, versions, round, stage });
    }

    /// As if its files were being switched.
    pub(super) fn reopen(&mut self, round: Round) {
        let Some(record) = &self.kept.update else { return };
        let (cause, versions) = (record.cause.clone(), record.versions.clone());
        let stage = UpdateStage::Switching { op: Op::default() };
        self.stage = RolloutStage::Updating(Update { cause, versions, round, stage });
    }

    fn update(&mut self) -> Option<&mut Update> {
        match &mut self.stage {
            RolloutStage::Updating(update) => Some(update),
            RolloutStage::New
            | RolloutStage::Idle
            | RolloutStage::Finishing { .. }
            | RolloutStage::Loading { .. }
            | RolloutStage::Storing { .. } => None,
        }
    }

    pub(super) fn staged(
        &mut self,
        step: &mut RolloutStep,
        op: Op,
        outcome: Result<StagedSet, StageFailure>,
    ) {
        let Some(Update { stage: UpdateStage::Staging { op: mine }, .. }) = self.update() else {
            return;
        };
        if *mine != op {
            return;
        }
        match outcome {
            Ok(StagedSet { changed, unchanged }) => {
                let files = self.merged(changed);
                self.check(step, 0, files, unchanged);
            }
            Err(StageFailure::Render { template, trouble: Trouble(why) }) => {
                self.fail_update(step, &Blame::Template(template), why);
            }
            Err(StageFailure::Edited { templates, trouble }) => {
                let names: Vec<String> = templates.iter().map(|it| format!("'{it}'")).collect();
                let names = names.join(", ");
                let why = format!("somebody else has edited the files of {names}: {trouble}");
                let blame = templates.into_iter().next().map_or(Blame::Update, Blame::Template);
                self.fail_update(step, &blame, why);
            }
            Err(StageFailure::Lost { profile, version, trouble }) => {
                self.regain(step, profile, *version, trouble);
            }
            Err(StageFailure::Disk(Trouble(why))) => self.fail_update(step, &Blame::Disk, why),
        }
    }

    /// With what an open record has changed already: what was there before that is what it goes
    /// back to.
    fn merged(&self, changed: Vec<StagedFile>) -> Arc<[StagedFile]> {
        let Some(record) = &self.kept.update else { return changed.into() };
        let mut files: Vec<StagedFile> = record.files.to_vec();
        for mut file in changed {
            match files.iter_mut().find(|it| it.template == file.template) {
                Some(earlier) => {
                    file.unconfirmed = file.old.map(|found| found.digest);
                    file.old = earlier.old.clone();
                    *earlier = file;
                }
                None => files.push(file),
            }
        }
        files.into()
    }

    /// Runs the checks of staged files, from this one on.
    fn check(
        &mut self,
        step: &mut RolloutStep,
        from: usize,
        files: Arc<[StagedFile]>,
        unchanged: BTreeMap<Name, Digest>,
    ) {
        let has_check = |file: &StagedFile| {
            self.template(&file.template).is_some_and(|template| template.check.is_some())
                && self.is_to_switch(file)
        };
        let Some(at) = (from..files.len()).find(|at| has_check(&files[*at])) else {
            return self.switch(step, files, unchanged);
        };
        let StagedFile { template, staged, .. } = files[at].clone();
        let op = self.ask(step, |op| RolloutCommand::Check { op, template, staged });
        if let Some(update) = self.update() {
            update.stage = UpdateStage::Checking { op, at, files, unchanged };
        }
    }

    /// It is not one that an open record has put in place already.
    fn is_to_switch(&self, file: &StagedFile) -> bool {
        self.kept.update.as_ref().is_none_or(|record| !record.files.contains(file))
    }

    pub(super) fn checked(&mut self, step: &mut RolloutStep, op: Op, outcome: Result<(), Trouble>) {
        let Some(Update {
            stage: UpdateStage::Checking { op: mine, at, files, unchanged }, ..
        }) = self.update()
        else {
            return;
        };
        if *mine != op {
            return;
        }
        let (at, files, unchanged) = (*at, files.clone(), std::mem::take(unchanged));
        match outcome {
            Ok(()) => self.check(step, at + 1, files, unchanged),
            Err(trouble) => {
                let template = files[at].template.clone();
                let why = format!("the check of template '{template}' fails: {trouble}");
                self.fail_update(step, &Blame::Template(template), why);
            }
        }
    }

    /// Writes the record, and puts the files in place.
    fn switch(
        &mut self,
        step: &mut RolloutStep,
        files: Arc<[StagedFile]>,
        unchanged: BTreeMap<Name, Digest>,
    ) {
        let RolloutStage::Updating(update) = &self.stage else { return };
        let open = self.kept.update.as_ref();
        let earlier = |name: &Name| open?.services.iter().find(|it| it.service == *name);
        let concerned = self.plan.services.iter().filter(|service| {
            let uses = |file: &StagedFile| service.templates.contains(&file.template);
            files.iter().any(uses)
                || update.round.forced.contains(&service.name)
                || earlier(&service.name).is_some()
        });
        let services: Vec<ServiceRecord> = concerned
            .map(|service| ServiceRecord {
                service: service.name.clone(),
                told: ToldState::Untold,
                started: earlier(&service.name).and_then(|it| it.started),
                ran: earlier(&service.name).is_some_and(|it| it.ran),
            })
            .collect();
        let (cause, versions) = (update.cause.clone(), update.versions.clone());
        self.kept.plan_due &= update.round.purpose == RoundPurpose::Refresh;
        let record = UpdateRecord {
            cause,
            versions,
            files: files.clone(),
            unchanged,
            services,
            failure: None,
        };
        let changes_nothing = record.files.is_empty() && record.services.is_empty();
        self.kept.update = Some(record);
        if changes_nothing {
            return self.commit(step);
        }
        if files.is_empty() {
            return self.tell_from(step, 0, false);
        }
        let op = self.ask(step, |op| RolloutCommand::Switch { op, files });
        if let Some(update) = self.update() {
            update.stage = UpdateStage::Switching { op };
        }
    }

    pub(super) fn switched(
        &mut self,
        step: &mut RolloutStep,
        op: Op,
        outcome: Result<(), Trouble>,
    ) {
        match &self.stage {
            RolloutStage::Finishing { op: mine } if *mine == op => self.finished(step, outcome),
            RolloutStage::Updating(Update {
                stage: UpdateStage::Switching { op: mine }, ..
            }) if *mine == op => match outcome {
                Ok(()) => self.tell_from(step, 0, false),
                Err(Trouble(why)) => self.fail_update(step, &Blame::Disk, why),
            },
            RolloutStage::New
            | RolloutStage::Idle
            | RolloutStage::Finishing { .. }
            | RolloutStage::Loading { .. }
            | RolloutStage::Storing { .. }
            | RolloutStage::Updating(_) => {}
        }
    }

    /// All is well: what was retrieved is applied, and the record goes.
    fn commit(&mut self, step: &mut RolloutStep) {
        let stage = std::mem::replace(&mut self.stage, RolloutStage::Idle);
        let RolloutStage::Updating(update) = stage else { return };
        let Some(record) = self.kept.update.take() else { return };
        let is_new = |name: &Name| {
            let applied = self.applied(name);
            let version = record.versions.get(name);
            version.is_some_and(|new| applied.is_none_or(|it| !it.is_same_content(new)))
        };
        let failing = self.own_failure().and_then(|it| it.profile.as_ref());
        let is_mended = failing.is_none_or(is_new);
        for (name, version) in record.versions {
            let profile = self.kept.profiles.entry(name.clone()).or_default();
            let before = profile.applied.replace(version.clone());
            let is_same = before.as_ref().is_some_and(|it| it.is_same_content(&version));
            if !is_same {
                let at = std::mem::replace(&mut profile.applied_at, step.now.wall);
                profile.history.retain(|it| !it.version.is_same_content(&version));
                if let Some(version) = before {
                    if record.cause == UpdateCause::Rollback(name.clone()) {
                        profile.rolled_back = Some(version.clone());
                    }
                    profile.history.insert(0, AppliedVersion { version, at });
                    profile.history.truncate(HISTORY);
                }
            }
            profile.retrieved = Some(version);
        }
        self.kept.files.extend(record.unchanged);
        self.kept.files.extend(record.files.iter().map(|it| (it.template.clone(), it.new)));
        let mut round = update.round;
        match round.purpose {
            RoundPurpose::Boot | RoundPurpose::Plan => {
                (self.kept.booted, self.boot) = (true, None);
                // A boot has asked for every profile; a plan that has nothing to do with what has
                // failed does not end it.
                let ends = round.purpose == RoundPurpose::Boot || is_mended;
                if self.own_failure().is_some() && ends {
                    self.kept.pending = None;
                }
                let missed = round.missed.as_ref().map(|it| it.trouble.clone());
                self.end_plan(missed.map_or(Ok(()), Err));
            }
            RoundPurpose::Refresh => {
                let of_it = |it: &Name| update.versions.contains_key(it);
                if self.own_failure().is_some_and(|it| it.profile.as_ref().is_none_or(of_it)) {
                    self.kept.pending = None;
                }
            }
        }
        self.retain(step);
        match round.missed.take() {
            Some(missed) => self.pend(step, missed),
            None if self.next_plan.is_some() => {}
            None => match round.purpose {
                RoundPurpose::Boot | RoundPurpose::Plan => {}
                RoundPurpose::Refresh => self.go_round(step, round),
            },
        }
    }

    /// The failure is in the record: the old files come back.
    pub(super) fn restore(&mut self, step: &mut RolloutStep) {
        let Some(record) = &self.kept.update else { return };
        let (files, cause, versions) =
            (record.files.clone(), record.cause.clone(), record.versions.clone());
        let op = self.ask(step, |op| RolloutCommand::Restore { op, files });
        let round = Round::new(RoundPurpose::Refresh, VecDeque::new());
        let stage = UpdateStage::Restoring { op };
        self.stage = RolloutStage::Updating(Update { cause, versions, round, stage });
    }

    pub(super) fn restored(&mut self, step: &mut RolloutStep, op: Op, outcome: RestoreOutcome) {
        let Some(Update { stage: UpdateStage::Restoring { op: mine }, .. }) = self.update() else {
            return;
        };
        if *mine != op {
            return;
        }
        for (template, trouble) in outcome.failed {
            self.note_adrift(format!("the file of template '{template}' stays: {trouble}"));
        }
        self.tell_from(step, 0, true);
    }

    /// Something of the way back has failed as well.
    fn note_adrift(&mut self, why: String) {
        let record = self.kept.update.as_mut();
        if let Some(UpdateFailure { failure, adrift, .. }) =
            record.and_then(|record| record.failure.as_mut())
        {
            *adrift = true;
            failure.push_str("; ");
            failure.push_str(&why);
        }
    }

    /// All is as it was before: the record goes, and the failure is pending.
    fn conclude_failure(&mut self, step: &mut RolloutStep) {
        self.stage = RolloutStage::Idle;
        let Some(record) = self.kept.update.take() else { return };
        let Some(UpdateFailure { profile, failure, adrift }) = record.failure else { return };
        self.retain(step);
        match record.cause {
            UpdateCause::Boot | UpdateCause::Plan => self.end_plan(Err(Trouble(failure.clone()))),
            UpdateCause::Profile(_) | UpdateCause::Rollback(_) => {}
        }
        let version = profile.as_ref().and_then(|it| record.versions.get(it)).cloned();
        self.refuse(&record.cause, profile.as_ref(), version.as_ref());
        self.came_back(step, profile, version, Trouble(failure), Reached::Switched { adrift });
    }

    /// Something has failed. With a record the way back begins; without one nothing has changed.
    pub(super) fn fail_update(&mut self, step: &mut RolloutStep, blame: &Blame, why: String) {
        let RolloutStage::Updating(update) = &self.stage else { return };
        if self.ending {
            // Whatever is told while the node ends may fail because of that: the next start goes on.
            self.stage = RolloutStage::Idle;
            return;
        }
        let profile = self.blamed(update, blame);
        if let Some(record) = &mut self.kept.update {
            record.failure = Some(UpdateFailure { profile, failure: why, adrift: false });
            return self.restore(step);
        }
        let (versions, round) = (update.versions.clone(), update.round.clone());
        let cause = update.cause.clone();
        self.stage = RolloutStage::Idle;
        self.retain(step);
        if round.purpose != RoundPurpose::Refresh {
            self.end_plan(Err(Trouble(why.clone())));
        }
        match blame {
            Blame::Disk | Blame::Content(_) => {
                self.put_off(versions, round);
                self.hinder(step, profile, why);
            }
            Blame::Template(_) | Blame::Service(_) | Blame::Update => {
                let version = profile.as_ref().and_then(|it| versions.get(it)).cloned();
                self.refuse(&cause, profile.as_ref(), version.as_ref());
                self.came_back(step, profile, version, Trouble(why), Reached::Staging);
            }
        }
    }
}
