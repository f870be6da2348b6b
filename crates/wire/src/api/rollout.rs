//! What is answered about a rollout, and why something is not done about it.

use mainstay_core::{name::Name, rollout::RolloutRefusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the rollout of a node stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Rollout")]
pub struct RolloutStatus {
    /// starting, running, updating, rolling-back, pending, failed or paused.
    pub state: String,
    /// What it does now, if anything.
    pub doing: Option<String>,
    /// The profile or service that it does it with.
    #[schemars(with = "Option<String>")]
    pub subject: Option<Name>,
    /// No update begins until somebody says `resume`.
    pub paused: bool,
    /// What has failed, until something else works.
    pub failure: Option<RolloutFailureStatus>,
    /// The update under way, once it has begun to change something.
    pub update: Option<UpdateStatus>,
    /// In the order of the configuration, as all below.
    pub profiles: Vec<ProfileStatus>,
    pub templates: Vec<TemplateStatus>,
    pub services: Vec<ServiceStatus>,
}

/// What has failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RolloutFailure")]
pub struct RolloutFailureStatus {
    /// Another one with each failure; `on_failure` is told it.
    pub number: u64,
    /// The only profile that is asked for until it works; `null`: the configuration is to blame.
    #[schemars(with = "Option<String>")]
    pub profile: Option<Name>,
    /// The version that has failed; `null`: none could be had.
    pub version: Option<String>,
    pub failure: String,
    #[schemars(extend("format" = "date-time"))]
    pub since: String,
    /// Its time is over: it has failed for good.
    pub is_final: bool,
    /// The way back has failed as well: what is in place is not certain.
    pub adrift: bool,
}

/// An update, or its way back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RolloutUpdate")]
pub struct UpdateStatus {
    /// boot, profile, plan or rollback.
    pub cause: String,
    /// The versions that are applied at its end.
    pub versions: Vec<ProfileVersion>,
    /// The templates whose files it changes.
    #[schemars(with = "Vec<String>")]
    pub templates: Vec<Name>,
    /// Why it goes back, if it does.
    pub failure: Option<String>,
}

/// A version of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileVersion {
    #[schemars(with = "String")]
    pub profile: Name,
    pub version: VersionStatus,
}

/// A version of a profile: what people call it, and what it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Version")]
pub struct VersionStatus {
    /// What its source calls it, if it does.
    pub label: Option<String>,
    /// SHA-256 of content type and content.
    pub digest: String,
    /// Both, as they are shown to people.
    pub text: String,
}

/// A profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Profile")]
pub struct ProfileStatus {
    #[schemars(with = "String")]
    pub name: Name,
    /// file, http, appconfig or agent.
    pub source: String,
    /// unknown, applied, updating, pending, failed or adrift.
    pub state: String,
    /// The version that its files are made of.
    pub applied: Option<VersionStatus>,
    #[schemars(extend("format" = "date-time"))]
    pub applied_at: Option<String>,
    /// How old that is, in seconds.
    pub age: Option<u64>,
    /// The last version that was loaded.
    pub retrieved: Option<VersionStatus>,
    /// A version that failed or was rolled back: not applied until its source serves another.
    pub refused: Option<VersionStatus>,
    /// What is applied is in place.
    pub in_place: bool,
    /// When its source last answered, in the life of this agent.
    #[schemars(extend("format" = "date-time"))]
    pub answered_at: Option<String>,
    /// Seconds until its source is asked again.
    pub next_in: Option<u64>,
    /// Why its source could not be asked the last time.
    pub error: Option<String>,
    /// The versions before the applied one, the last one first.
    pub history: Vec<EarlierVersion>,
    /// How it goes through the fleet; null if it does not go in waves.
    #[serde(default)]
    pub waves: Option<WaveStatus>,
}

/// How a version of a profile goes through a fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Waves")]
pub struct WaveStatus {
    /// The node that asks the source; null while the fleet has no master.
    #[schemars(with = "Option<String>")]
    pub conductor: Option<Name>,
    /// none, storing, wave, resting, applied or back.
    pub state: String,
    /// The wave that is under way, or follows the pause, counted from 1.
    pub wave: Option<usize>,
    pub waves: usize,
    pub version: Option<VersionStatus>,
    /// What was applied in the fleet before.
    pub before: Option<VersionStatus>,
    /// Names this attempt: another one each time that a version begins.
    #[serde(default)]
    pub attempt: Option<String>,
    /// Somebody has asked for this version, which no source serves.
    #[serde(default)]
    pub by_hand: bool,
    /// The version that was rolled back by hand: not applied until the source serves another.
    #[serde(default)]
    pub rolled_back: Option<VersionStatus>,
    /// Something is still to come, as far as this node knows: an answer of the source, a wave, a way
    /// back.
    #[serde(default)]
    pub under_way: bool,
    /// The node that it has failed on.
    #[schemars(with = "Option<String>")]
    pub failed_on: Option<Name>,
    /// Why; null if that node was lost.
    pub failure: Option<String>,
    /// This node sees no more than half of the nodes: nothing is decided here.
    pub minority: bool,
    pub nodes: Vec<WaveNodeStatus>,
}

/// What a node says of the version that goes through its fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "WaveNode")]
pub struct WaveNodeStatus {
    #[schemars(with = "String")]
    pub name: Name,
    /// Its wave, counted from 1; null if it is in none.
    pub wave: Option<usize>,
    /// applied, stored, waiting, failed, pending, left-out, ended or lost.
    pub state: String,
    /// What is applied there.
    pub applied: Option<VersionStatus>,
    /// What has failed or is pending there.
    pub failure: Option<String>,
}

/// A version that was applied before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EarlierVersion {
    pub version: VersionStatus,
    #[schemars(extend("format" = "date-time"))]
    pub applied_at: String,
}

/// A template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Template")]
pub struct TemplateStatus {
    #[schemars(with = "String")]
    pub name: Name,
    pub source: String,
    pub destination: String,
    #[schemars(with = "Vec<String>")]
    pub profiles: Vec<Name>,
    /// Its file is in place, as it was made last.
    pub in_place: bool,
    /// SHA-256 of that file.
    pub digest: Option<String>,
}

/// A service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Service")]
pub struct ServiceStatus {
    #[schemars(with = "String")]
    pub name: Name,
    /// job, unit or command.
    pub kind: String,
    /// The name of the job or unit.
    pub target: Option<String>,
    #[schemars(with = "Vec<String>")]
    pub templates: Vec<Name>,
    /// In an update under way: waiting, telling, confirmed or back; else idle.
    pub state: String,
    /// What its last update has not failed of, and somebody should know.
    #[serde(default)]
    pub note: Option<String>,
}

/// What an update would change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RolloutPreview {
    /// The versions it would be made of; those of profiles that do not change are there as well.
    pub versions: Vec<ProfileVersion>,
    /// Profiles whose version would be another one.
    #[schemars(with = "Vec<String>")]
    pub changed: Vec<Name>,
    pub files: Vec<FileChange>,
    /// Who would be told, in this order.
    #[schemars(with = "Vec<String>")]
    pub services: Vec<Name>,
    /// What stands against it, though it could be tried.
    pub notes: Vec<String>,
}

/// A file that would change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    #[schemars(with = "String")]
    pub template: Name,
    pub destination: String,
    /// Unified, with the names of secrets in place of their values.
    pub difference: String,
}

/// What a preview is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreviewSubject {
    /// What the sources serve now: what a refresh would do. `None`: all profiles.
    Sources(Option<Name>),
    /// What is applied: shows what somebody else has edited.
    Applied,
    /// A version of the history, by its label or the beginning of its digest; `None`: the last one.
    Version { profile: Name, version: Option<String> },
}

/// Why a question about a rollout has no answer, or nothing is done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RolloutError {
    #[error("nothing is rolled out here: there are no [templates]")]
    NotConfigured,
    #[error(transparent)]
    Refused(#[from] RolloutRefusal),
    #[error("'{version}' is no version in the history of profile '{profile}'")]
    UnknownVersion { profile: Name, version: String },
    #[error(
        "'{version}' means more than one version in the history of profile '{profile}': name one as \
         the history does, or with +N for its set of secrets"
    )]
    AmbiguousVersion { profile: Name, version: String },
    /// A template or a source stands against it.
    #[error("{0}")]
    Impossible(String),
    /// Nobody had time for it.
    #[error("{0}")]
    Unserved(String),
}
