//! How a rollout stands, for those who wait for it and those who look at it.

use super::{Digest, KeptProfile, Rollout, RolloutStage, ServiceRecord, Trouble, Version};
use crate::{clock::Mono, name::Name, plan::ServiceTarget};
use std::collections::{BTreeMap, BTreeSet};

/// What the node is told: it makes events of what has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct RolloutFacts {
    /// Those of which something is known.
    pub profiles: BTreeMap<Name, SourceFact>,
    pub templates: BTreeMap<Name, SourceFact>,
    /// The last failure, while it is pending.
    pub failure: Option<FailureFact>,
    /// Jobs that an update under way tells, or takes back: one that ends may come back with it.
    pub told: BTreeSet<Name>,
    /// The one of them that is told now: a node that ends lets it finish that.
    pub telling: Option<Name>,
}

/// How a profile or a template stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SourceFact {
    /// What is applied is in place.
    pub in_place: bool,
    pub applied: AppliedContent,
}

/// What was applied of a profile or a template.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AppliedContent {
    /// A version, and when it was applied: wall clock, ns.
    Profile(Version, i64),
    Template(Digest),
}

impl AppliedContent {
    /// Another one with everything that is applied.
    pub(super) fn mark(&self) -> String {
        match self {
            AppliedContent::Profile(version, at) => format!("{} {at}", version.digest),
            AppliedContent::Template(digest) => digest.to_string(),
        }
    }

    /// For people.
    pub(super) fn version(&self) -> String {
        match self {
            AppliedContent::Profile(version, _) => version.to_string(),
            AppliedContent::Template(digest) => {
                let mut text = digest.to_string();
                text.truncate(12);
                text
            }
        }
    }
}

/// A failure that is pending.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FailureFact {
    /// Another one with every failure, and when it becomes FAILED.
    pub number: u64,
    pub profile: Option<Name>,
    pub version: Option<Version>,
    pub failure: String,
    /// An update has failed, and what was there before is in place.
    pub came_back: bool,
    /// That update had begun to switch files.
    pub switched: bool,
    pub failed: bool,
}

/// Where a rollout is, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RolloutPhase {
    /// Its first update of the run is still to come.
    Starting,
    Running,
    /// An update is under way.
    Updating,
    /// An update goes back.
    RollingBack,
    Pending,
    Failed,
    Paused,
}

impl RolloutPhase {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            RolloutPhase::Starting => "starting",
            RolloutPhase::Running => "running",
            RolloutPhase::Updating => "updating",
            RolloutPhase::RollingBack => "rolling-back",
            RolloutPhase::Pending => "pending",
            RolloutPhase::Failed => "failed",
            RolloutPhase::Paused => "paused",
        }
    }
}

impl Rollout {
    #[must_use]
    pub fn phase(&self) -> RolloutPhase {
        // One that was found open is under way while its profiles are asked for.
        if let Some(record) = &self.kept.update {
            return match record.failure.is_some() {
                true => RolloutPhase::RollingBack,
                false => RolloutPhase::Updating,
            };
        }
        match (&self.stage, &self.kept.pending) {
            (RolloutStage::Updating(_) | RolloutStage::Finishing { .. }, _) => {
                RolloutPhase::Updating
            }
            (
                RolloutStage::New
                | RolloutStage::Idle
                | RolloutStage::Loading { .. }
                | RolloutStage::Storing { .. },
                pending,
            ) => match pending {
                Some(pending) if pending.failed => RolloutPhase::Failed,
                Some(_) => RolloutPhase::Pending,
                None if self.kept.paused => RolloutPhase::Paused,
                None if !self.kept.booted => RolloutPhase::Starting,
                None => RolloutPhase::Running,
            },
        }
    }

    /// What is done now, and with which service, for people.
    #[must_use]
    pub fn doing(&self) -> Option<(&'static str, Option<&Name>)> {
        match &self.stage {
            RolloutStage::New | RolloutStage::Idle => None,
            RolloutStage::Finishing { .. } => Some(("switching files", None)),
            RolloutStage::Loading { profile, .. } | RolloutStage::Storing { profile, .. } => {
                Some(("loading", Some(profile)))
            }
            RolloutStage::Updating(update) => {
                let (doing, at) = update.doing();
                let services = self.kept.update.as_ref().map(|record| &record.services);
                let service = services.zip(at).and_then(|(services, at)| services.get(at));
                Some((doing, service.map(|it| &it.service)))
            }
        }
    }

    /// What was last told of a service that its update did not fail of.
    #[must_use]
    pub fn note_of(&self, service: &str) -> Option<&str> {
        self.notes.get(service).map(String::as_str)
    }

    /// Why the source of a profile could not be asked the last time.
    #[must_use]
    pub fn source_trouble(&self, profile: &str) -> Option<&Trouble> {
        self.sources.get(profile)?.trouble.as_ref()
    }

    /// When the source of a profile last answered: wall clock, ns.
    #[must_use]
    pub fn answered_at(&self, profile: &str) -> Option<i64> {
        self.sources.get(profile)?.answered_at
    }

    /// When the source of a profile is asked next. `None`: another node asks it.
    #[must_use]
    pub fn next_load(&self, profile: &str) -> Option<Mono> {
        let (name, source) = self.sources.get_key_value(profile)?;
        let asks = !self.is_fed(name) || self.feed(name).is_some_and(|feed| feed.conducts);
        asks.then_some(source.next)
    }

    #[must_use]
    pub fn facts(&self) -> RolloutFacts {
        if self.stage == RolloutStage::New {
            return RolloutFacts::default();
        }
        let pending = self.kept.pending.as_ref();
        let adrift = pending.filter(|it| it.adrift);
        let is_adrift = |profile: &Name| {
            adrift.is_some_and(|it| it.profile.as_ref().is_none_or(|it| it == profile))
        };
        let booted = self.kept.booted;
        let profiles = self.kept.profiles.iter().filter_map(|(name, kept)| {
            let KeptProfile { applied: Some(version), applied_at, .. } = kept else { return None };
            let in_place = booted && !is_adrift(name);
            let applied = AppliedContent::Profile(version.clone(), *applied_at);
            Some((name.clone(), SourceFact { in_place, applied }))
        });
        let templates = self.kept.files.iter().map(|(name, digest)| {
            let uses_adrift = |profiles: &[Name]| profiles.iter().any(is_adrift);
            let is_of_adrift = || self.template(name).is_some_and(|it| uses_adrift(&it.profiles));
            let in_place = booted && !(adrift.is_some() && is_of_adrift());
            (name.clone(), SourceFact { in_place, applied: AppliedContent::Template(*digest) })
        });
        let failure = pending.map(|it| FailureFact {
            number: it.number,
            profile: it.profile.clone(),
            version: it.version.clone(),
            failure: it.failure.clone(),
            came_back: it.came_back,
            switched: it.switched,
            failed: it.failed,
        });
        let (profiles, templates) = (profiles.collect(), templates.collect());
        let (told, telling) = (self.told_jobs(), self.telling_job());
        RolloutFacts { profiles, templates, failure, told, telling }
    }

    /// The jobs of this node that the update under way concerns.
    #[must_use]
    pub fn told_jobs(&self) -> BTreeSet<Name> {
        let services = self.kept.update.iter().flat_map(|record| &record.services);
        services.filter_map(|it| self.job_of(it)).collect()
    }

    fn telling_job(&self) -> Option<Name> {
        let RolloutStage::Updating(update) = &self.stage else { return None };
        let services = self.kept.update.as_ref().map(|record| &record.services);
        self.job_of(services?.get(update.telling()?)?)
    }

    fn job_of(&self, record: &ServiceRecord) -> Option<Name> {
        match &self.service(&record.service)?.target {
            ServiceTarget::Job(job) => Some(job.clone()),
            ServiceTarget::Unit(_) | ServiceTarget::Command => None,
        }
    }
}
