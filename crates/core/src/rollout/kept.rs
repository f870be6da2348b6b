//! What outlives the agent and a boot: one value, replaced as a whole. It is on the disk before
//! anything that a step wants is carried out, so that a crash between any two steps finds all that
//! was decided.

use super::{Digest, FailureReport, InstanceNumber, StagedFile, Version};
use crate::{clock::Mono, name::Name};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};

/// So many versions that were applied are remembered of a profile.
pub const HISTORY: usize = 10;

/// All that is kept. The contents of the versions it names are kept beside it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct RolloutKept {
    pub profiles: BTreeMap<Name, KeptProfile>,
    /// Of what we have put in place for each template.
    pub files: BTreeMap<Name, Digest>,
    /// The update that is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update: Option<UpdateRecord>,
    /// A failure that nothing has followed yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<KeptFailure>,
    /// No update begins.
    pub paused: bool,
    /// The first update of the run was made, or was not needed.
    pub booted: bool,
    /// A plan has changed what is rolled out, and its update has not begun to switch files.
    pub plan_due: bool,
    /// Of the last failure.
    pub failures: u64,
    /// `on_failure` is to be run for this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook: Option<FailureReport>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct KeptProfile {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<Version>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retrieved: Option<Version>,
    /// It failed: not applied again until the source has served another, or somebody asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<Version>,
    /// With which templates and services that failed: with others it may not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_with: Option<u64>,
    /// It was rolled back by hand: likewise, whatever has failed before or since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rolled_back: Option<Version>,
    /// Versions that were applied, the last one first; the applied one is not among them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<AppliedVersion>,
    /// When the applied one was applied: wall clock, ns.
    pub applied_at: i64,
    /// Whose contents are on the disk for the fleet, the last one first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<Version>,
}

impl KeptProfile {
    /// The versions that are not applied again.
    pub fn all_refused(&self) -> impl Iterator<Item = &Version> {
        self.refused.iter().chain(&self.rolled_back)
    }

    #[must_use]
    pub fn refuses(&self, version: &Version) -> bool {
        self.all_refused().any(|it| it.is_same_content(version))
    }

    /// The source has served another, or somebody asks.
    pub(super) fn refuse_nothing(&mut self) {
        (self.refused, self.refused_with, self.rolled_back) = (None, None, None);
    }

    /// A version as its source has served it, with the number of its set of secrets: that of the same
    /// one, if it is known, else the next.
    #[must_use]
    pub fn numbered(&self, version: Version) -> Version {
        let known = self.applied.iter().chain(&self.retrieved).chain(self.all_refused());
        let known = known.chain(self.history.iter().map(|it| &it.version)).chain(&self.shared);
        let of_it: Vec<&Version> = known.filter(|it| it.digest == version.digest).collect();
        let same = of_it.iter().find(|it| it.is_same_content(&version)).map(|it| it.rotation);
        let next = || of_it.iter().map(|it| it.rotation.saturating_add(1)).max().unwrap_or(0);
        Version { rotation: same.unwrap_or_else(next), ..version }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AppliedVersion {
    pub version: Version,
    /// Wall clock, ns.
    pub at: i64,
}

/// An update that has begun to switch files, or is about to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct UpdateRecord {
    pub cause: UpdateCause,
    /// What is applied at its end, of each profile that changes.
    pub versions: BTreeMap<Name, Version>,
    pub files: Arc<[StagedFile]>,
    /// What is in place of the other templates that it has rendered.
    #[serde(default)]
    pub unchanged: BTreeMap<Name, Digest>,
    /// In the order in which they are told.
    pub services: Vec<ServiceRecord>,
    /// Why it goes back, once it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<UpdateFailure>,
}

/// Why an update goes back, and what is blamed for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct UpdateFailure {
    /// `None`: the configuration itself.
    pub profile: Option<Name>,
    /// For people.
    pub failure: String,
    /// Some of the way back has failed as well.
    #[serde(default)]
    pub adrift: bool,
}

/// Why an update is made: what it is blamed on if it fails.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UpdateCause {
    /// The first of a run: of all profiles.
    Boot,
    Profile(Name),
    /// Another configuration: these templates and services are not as they were.
    Plan,
    /// Somebody wants an earlier version back.
    Rollback(Name),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ServiceRecord {
    pub service: Name,
    #[serde(default)]
    pub told: ToldState,
    /// The instance that flip-flop has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<InstanceNumber>,
    /// It was told, by this agent or one before, and ran then: if it does not when the update is taken
    /// back, it has died of it.
    #[serde(default)]
    pub ran: bool,
}

/// How far a service is in an update or on its way back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToldState {
    #[default]
    Untold,
    /// It may have heard of it.
    Telling,
    Confirmed,
    /// On the way back: it has the old files again, or could not be told.
    Back,
}

/// A failure that is pending, or has become FAILED.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KeptFailure {
    /// Another one with every failure, and when its time is over.
    pub number: u64,
    /// The profile that is asked for until something changes; `None`: the configuration itself.
    pub profile: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    pub failure: String,
    /// Since when: wall clock, ns.
    pub since: i64,
    /// The way back has failed as well: what is in place is not known.
    #[serde(default)]
    pub adrift: bool,
    /// An update has failed; else something could not be had.
    #[serde(default)]
    pub came_back: bool,
    /// That update had begun to switch files.
    #[serde(default)]
    pub switched: bool,
    /// The source that this node asks for its fleet does not answer, or serves what the fleet has come
    /// back from: what the fleet serves goes on.
    #[serde(default)]
    pub conducted: bool,
    /// When its time is over, in the run that `booted` belongs to.
    pub deadline: Mono,
    /// Its time is over.
    #[serde(default)]
    pub failed: bool,
}
