//! The rollout as people and programs see it.

use super::RolloutRoom;
use crate::agent::Agent;
use mainstay_core::{
    clock::Now,
    fleet::{WaveAnswer, WaveNode, WaveProfile},
    name::Name,
    plan::{ProfilePlan, ProfileSource, ServicePlan, ServiceTarget, TemplatePlan},
    rollout::{KeptProfile, ToldState, UpdateCause, UpdateRecord, Version, WaveRecord, WaveStage},
};
use mainstay_wire::{
    api::{
        EarlierVersion, ProfileStatus, ProfileVersion, RolloutFailureStatus, RolloutStatus,
        ServiceStatus, TemplateStatus, UpdateStatus, VersionStatus, WaveNodeStatus, WaveStatus,
    },
    stamp::rfc3339,
};
use std::{collections::BTreeMap, path::Path};

impl RolloutRoom {
    pub(crate) fn status(&self, now: Now) -> RolloutStatus {
        let (rollout, kept) = (&self.rollout, self.rollout.kept());
        let (doing, subject) = rollout.doing().unzip();
        let plan = rollout.plan();
        let failure = kept.pending.as_ref().map(|pending| RolloutFailureStatus {
            number: pending.number,
            profile: pending.profile.clone(),
            version: pending.version.as_ref().map(ToString::to_string),
            failure: pending.failure.clone(),
            since: rfc3339(pending.since),
            is_final: pending.failed,
            adrift: pending.adrift,
        });
        RolloutStatus {
            state: rollout.phase().as_str().to_owned(),
            doing: doing.map(ToOwned::to_owned),
            subject: subject.flatten().cloned(),
            paused: kept.paused,
            failure,
            update: kept.update.as_ref().map(update),
            profiles: plan.profiles.iter().map(|it| self.profile(it, now)).collect(),
            templates: plan.templates.iter().map(|it| self.template(it)).collect(),
            services: plan.services.iter().map(|it| self.service(it)).collect(),
        }
    }

    fn profile(&self, plan: &ProfilePlan, now: Now) -> ProfileStatus {
        let (rollout, name) = (&self.rollout, &plan.name);
        let none = KeptProfile::default();
        let kept = rollout.kept().profiles.get(name).unwrap_or(&none);
        let applied = kept.applied.as_ref();
        let age = now.wall.saturating_sub(kept.applied_at) / 1_000_000_000;
        let earlier = |it: &mainstay_core::rollout::AppliedVersion| EarlierVersion {
            version: version(&it.version),
            applied_at: rfc3339(it.at),
        };
        ProfileStatus {
            name: name.clone(),
            source: kind_of(&plan.source).to_owned(),
            state: self.profile_state(name, kept).to_owned(),
            applied: applied.map(version),
            applied_at: applied.map(|_| rfc3339(kept.applied_at)),
            age: applied.map(|_| u64::try_from(age).unwrap_or(0)),
            retrieved: kept.retrieved.as_ref().map(version),
            refused: kept.all_refused().next().map(version),
            in_place: self.facts.profiles.get(name).is_some_and(|it| it.in_place),
            answered_at: rollout.answered_at(name.as_str()).map(rfc3339),
            next_in: rollout.next_load(name.as_str()).map(|at| at.since(now.mono).as_secs()),
            error: rollout.source_trouble(name.as_str()).map(ToString::to_string),
            history: kept.history.iter().map(earlier).collect(),
            waves: None,
        }
    }

    fn profile_state(&self, name: &Name, kept: &KeptProfile) -> &'static str {
        let of_it = |it: &Option<Name>| it.as_ref().is_none_or(|it| it == name);
        let all = self.rollout.kept();
        let updates = |it: &UpdateRecord| it.versions.contains_key(name);
        match &all.pending {
            _ if all.update.as_ref().is_some_and(updates) => "updating",
            Some(pending) if of_it(&pending.profile) && pending.adrift => "adrift",
            Some(pending) if pending.profile.as_ref() == Some(name) && pending.failed => "failed",
            Some(pending) if pending.profile.as_ref() == Some(name) => "pending",
            Some(_) | None if kept.applied.is_some() => "applied",
            Some(_) | None => "unknown",
        }
    }

    fn template(&self, plan: &TemplatePlan) -> TemplateStatus {
        let path = |path: &Path| path.display().to_string();
        TemplateStatus {
            name: plan.name.clone(),
            source: path(&plan.src),
            destination: path(&plan.dst),
            profiles: plan.profiles.clone(),
            in_place: self.facts.templates.get(&plan.name).is_some_and(|it| it.in_place),
            digest: self.rollout.kept().files.get(&plan.name).map(ToString::to_string),
        }
    }

    fn service(&self, plan: &ServicePlan) -> ServiceStatus {
        let record = self.rollout.kept().update.as_ref();
        let told = record.and_then(|it| it.services.iter().find(|it| it.service == plan.name));
        let (kind, target) = match &plan.target {
            ServiceTarget::Job(job) => ("job", Some(job.to_string())),
            ServiceTarget::Unit(unit) => ("unit", Some(unit.clone())),
            ServiceTarget::Command => ("command", None),
        };
        let state = match told.map(|it| it.told) {
            None => "idle",
            Some(ToldState::Untold) => "waiting",
            Some(ToldState::Telling) => "telling",
            Some(ToldState::Confirmed) => "confirmed",
            Some(ToldState::Back) => "back",
        };
        ServiceStatus {
            name: plan.name.clone(),
            kind: kind.to_owned(),
            target,
            templates: plan.templates.clone(),
            state: state.to_owned(),
            note: self.rollout.note_of(plan.name.as_str()).map(ToOwned::to_owned),
        }
    }
}

impl Agent {
    /// With how its profiles go through the fleet.
    pub(crate) fn rollout_status(&self, now: Now) -> Option<RolloutStatus> {
        let mut status = self.rollout.room()?.status(now);
        if let Some(fleet) = &self.fleet {
            for profile in &mut status.profiles {
                profile.waves = fleet.wave_profile(&profile.name).map(waves);
                let asks = self.rollout.room().is_some_and(|room| {
                    room.rollout.asks_for_fleet(&profile.name, room.report.as_ref())
                });
                if let Some(waves) = profile.waves.as_mut().filter(|_| asks) {
                    waves.under_way = true;
                }
            }
        }
        Some(status)
    }
}

fn waves(profile: WaveProfile) -> WaveStatus {
    let record = profile.record.as_ref();
    let stage = record.map(|it| &it.stage);
    let (state, wave, failure) = match stage {
        None => ("none", None, None),
        Some(WaveStage::Storing) => ("storing", None, None),
        Some(WaveStage::Wave { at }) => ("wave", Some(at + 1), None),
        Some(WaveStage::Resting { next }) => ("resting", Some(next + 1), None),
        Some(WaveStage::Applied) => ("applied", None, None),
        Some(WaveStage::Back(failure)) => ("back", None, Some(failure)),
    };
    WaveStatus {
        state: state.to_owned(),
        wave,
        waves: record.map_or(0, |it| it.waves.len()),
        version: record.map(|it| version(&it.version)),
        attempt: record.map(|it| format!("{}.{}", it.begun.term.number, it.begun.counter)),
        by_hand: record.is_some_and(|it| it.by_hand),
        rolled_back: record.and_then(|it| it.rolled_back.as_ref()).map(version),
        under_way: !profile.is_settled,
        before: record.and_then(|it| it.before.as_ref()).map(version),
        failed_on: failure.map(|it| it.node.clone()),
        failure: failure.and_then(|it| it.failure.clone()),
        minority: !profile.has_majority,
        nodes: profile.nodes.iter().map(|it| wave_node(it, record)).collect(),
        conductor: profile.conductor,
    }
}

fn wave_node(node: &WaveNode, record: Option<&WaveRecord>) -> WaveNodeStatus {
    let state = node.answer(record);
    let copy = &node.copy;
    let failed = copy.failed.as_ref().filter(|_| state == WaveAnswer::Failed);
    let failure = failed.map(|it| &it.failure).or(copy.pending.as_ref());
    WaveNodeStatus {
        name: node.name.clone(),
        wave: node.wave.map(|at| at + 1),
        state: state.as_str().to_owned(),
        applied: copy.applied.as_ref().map(version),
        failure: failure.cloned(),
    }
}

fn kind_of(source: &ProfileSource) -> &'static str {
    match source {
        ProfileSource::File { .. } => "file",
        ProfileSource::Http { .. } => "http",
        ProfileSource::AppConfig { .. } => "appconfig",
        ProfileSource::Agent { .. } => "agent",
    }
}

fn update(record: &UpdateRecord) -> UpdateStatus {
    let cause = match &record.cause {
        UpdateCause::Boot => "boot",
        UpdateCause::Profile(_) => "profile",
        UpdateCause::Plan => "plan",
        UpdateCause::Rollback(_) => "rollback",
    };
    UpdateStatus {
        cause: cause.to_owned(),
        versions: versions(&record.versions),
        templates: record.files.iter().map(|it| it.template.clone()).collect(),
        failure: record.failure.as_ref().map(|it| it.failure.clone()),
    }
}

pub(super) fn versions(all: &BTreeMap<Name, Version>) -> Vec<ProfileVersion> {
    let one = |(name, it): (&Name, &Version)| {
        let (profile, version) = (name.clone(), version(it));
        ProfileVersion { profile, version }
    };
    all.iter().map(one).collect()
}

fn version(version: &Version) -> VersionStatus {
    VersionStatus {
        label: version.label.clone(),
        digest: version.digest.to_string(),
        text: version.to_string(),
    }
}
