//! What an update would change, worked out beside the loop from a copy of what is known there:
//! nothing is stored, staged or told.

use super::{RolloutRoom, view};
use mainstay_core::{
    name::Name,
    plan::RolloutPlan,
    rollout::{
        Content, LoadOutcome, RolloutKept, RolloutRefusal, StageFailure, StageSet, StageTemplate,
        Version,
    },
};
use mainstay_pool::ROLLOUT;
use mainstay_rollout::{
    source::{Shared, Source},
    switch::{Preview, Switch},
};
use mainstay_wire::api::{FileChange, PreviewSubject, RolloutError, RolloutPreview};
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc};

/// All that a preview needs.
#[derive(Debug)]
pub(crate) struct PreviewWork {
    plan: Arc<RolloutPlan>,
    kept: RolloutKept,
    switch: Switch,
    shared: Shared,
    node: Arc<Value>,
    subject: PreviewSubject,
    notes: Vec<String>,
}

impl RolloutRoom {
    pub(crate) fn preview(&self, subject: PreviewSubject) -> PreviewWork {
        let (plan, kept) = (self.rollout.plan().clone(), self.rollout.kept().clone());
        let (switch, shared, node) = self.performers.for_preview();
        PreviewWork { plan, kept, switch, shared, node, subject, notes: Vec::new() }
    }
}

impl PreviewWork {
    pub(crate) async fn run(mut self) -> Result<RolloutPreview, RolloutError> {
        let applied = self.kept.profiles.iter();
        let applied: BTreeMap<Name, Version> = applied
            .filter_map(|(name, kept)| Some((name.clone(), kept.applied.clone()?)))
            .collect();
        let mut versions = applied.clone();
        let mut unstored = BTreeMap::new();
        match self.subject.clone() {
            PreviewSubject::Applied => {}
            PreviewSubject::Version { profile, version } => {
                let version = earlier_version(&self.kept, &profile, version.as_deref())?;
                versions.insert(profile, version);
            }
            PreviewSubject::Sources(only) => {
                for (name, version, content) in self.load(only.as_ref()).await? {
                    versions.insert(name.clone(), version);
                    unstored.insert(name, content);
                }
                self.note_what_stands_against_it();
            }
        }
        let changed = versions
            .iter()
            .filter(|(name, it)| applied.get(*name).is_none_or(|was| !was.is_same_content(it)))
            .map(|(name, _)| name.clone())
            .collect();
        let shown = view::versions(&versions);
        let files = self.files(versions, unstored).await?;
        let is_changed = |template: &Name| files.iter().any(|it| it.template == *template);
        let told = self.plan.services.iter().filter(|it| it.templates.iter().any(is_changed));
        let services = told.map(|it| it.name.clone()).collect();
        let file = |it: Preview| FileChange {
            template: it.template,
            destination: it.destination.display().to_string(),
            difference: it.difference,
        };
        Ok(RolloutPreview {
            versions: shown,
            changed,
            services,
            files: files.into_iter().map(file).collect(),
            notes: self.notes,
        })
    }

    /// What the sources serve now, asked apart from those that the rollout asks: what they remember
    /// of the last answer stays as it is.
    async fn load(
        &mut self,
        only: Option<&Name>,
    ) -> Result<Vec<(Name, Version, Arc<Content>)>, RolloutError> {
        let profiles = &self.plan.profiles;
        if let Some(name) = only.filter(|name| profiles.iter().all(|it| it.name != **name)) {
            return Err(RolloutRefusal::UnknownProfile(name.clone()).into());
        }
        let mut served = Vec::new();
        for profile in profiles.iter().filter(|it| only.is_none_or(|name| it.name == *name)) {
            let name = profile.name.clone();
            match Source::new(profile, &self.shared).load(true).await.outcome {
                LoadOutcome::Served { version, content } => {
                    let kept = self.kept.profiles.get(&name);
                    let version = kept.map_or(version.clone(), |it| it.numbered(version));
                    served.push((name, version, content));
                }
                LoadOutcome::Unchanged => {
                    self.notes.push(format!("the source of profile '{name}' has served nothing"));
                }
                LoadOutcome::Failed(trouble) => {
                    self.notes.push(format!("profile '{name}' cannot be loaded: {trouble}"));
                }
            }
        }
        for (name, version, _) in &served {
            if self.kept.profiles.get(name).is_some_and(|it| it.refuses(version)) {
                self.notes.push(format!(
                    "version {version} of profile '{name}' has failed or was rolled back: it is \
                     applied again only when somebody asks for a refresh"
                ));
            }
        }
        Ok(served)
    }

    fn note_what_stands_against_it(&mut self) {
        if self.kept.paused {
            self.notes.push("the rollout is paused: nothing begins before it is resumed".into());
        }
        let pending = self.kept.pending.as_ref().filter(|it| !it.conducted);
        if let Some(profile) = pending.and_then(|it| it.profile.as_ref()) {
            self.notes.push(format!("profile '{profile}' is pending: nothing else is asked for"));
        }
    }

    async fn files(
        &mut self,
        versions: BTreeMap<Name, Version>,
        unstored: BTreeMap<Name, Arc<Content>>,
    ) -> Result<Vec<Preview>, RolloutError> {
        let (mut templates, mut lacking) = (Vec::new(), Vec::new());
        for plan in &self.plan.templates {
            match plan.profiles.iter().find(|it| !versions.contains_key(*it)) {
                None => templates.push(StageTemplate {
                    template: plan.name.clone(),
                    expected: self.kept.files.get(&plan.name).copied(),
                }),
                Some(profile) => lacking.push(format!(
                    "template '{}' cannot be rendered: profile '{profile}' has no version yet",
                    plan.name
                )),
            }
        }
        self.notes.extend(lacking);
        let open = std::sync::Arc::from([]);
        let set = StageSet { templates, profiles: versions, force: true, open };
        let (switch, plan, node) = (self.switch.clone(), self.plan.clone(), self.node.clone());
        let work = move || switch.preview(&set, &unstored, &plan, &node);
        match ROLLOUT.run(work).await {
            Ok(Ok(files)) => Ok(files),
            Ok(Err(
                StageFailure::Render { trouble, .. }
                | StageFailure::Edited { trouble, .. }
                | StageFailure::Lost { trouble, .. }
                | StageFailure::Disk(trouble),
            )) => Err(RolloutError::Impossible(trouble.to_string())),
            Err(unserved) => Err(RolloutError::Unserved(unserved.to_string())),
        }
    }
}

/// A version of the history by its name, its label or the beginning of its digest; `None`: the last
/// one.
pub(super) fn earlier_version(
    kept: &RolloutKept,
    profile: &Name,
    text: Option<&str>,
) -> Result<Version, RolloutError> {
    let history = kept.profiles.get(profile).map(|it| it.history.as_slice()).unwrap_or_default();
    let mut all = history.iter().map(|it| &it.version);
    let Some(text) = text else {
        let none = || RolloutRefusal::NoEarlier(profile.clone());
        return Ok(all.next().ok_or_else(none)?.clone());
    };
    // As the history shows it, before what several may be called.
    if let [one] = all.clone().filter(|it| it.to_string() == text).collect::<Vec<_>>()[..] {
        return Ok(one.clone());
    }
    let (profile, version) = (profile.clone(), text.to_owned());
    let mut meant = all.filter(|it| it.is_meant_by(text));
    match (meant.next(), meant.next()) {
        (Some(one), None) => Ok(one.clone()),
        (Some(_), Some(_)) => Err(RolloutError::AmbiguousVersion { profile, version }),
        (None, _) => Err(RolloutError::UnknownVersion { profile, version }),
    }
}
