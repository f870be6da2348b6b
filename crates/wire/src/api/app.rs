//! What is answered about apps, of the node or of its fleet.

use super::{
    job::JobStatus,
    schema::{AppFailureWord, AppPhaseWord, DesiredWord},
};
use mainstay_core::{
    app::{AppFailure, AppPhase},
    job::Desired,
    name::Name,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An app: how far it is, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "App")]
pub struct AppStatus {
    #[schemars(with = "String")]
    pub name: Name,
    #[schemars(with = "AppPhaseWord")]
    pub state: AppPhase,
    /// minor: a job has failed that it can do without; major: a required one has, or is not there.
    #[serde(default)]
    #[schemars(with = "AppFailureWord")]
    pub failure: AppFailure,
}

/// The apps, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Apps")]
pub struct AppList {
    pub apps: Vec<AppStatus>,
}

/// An app and its jobs, wherever they run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppDetail {
    #[serde(flatten)]
    pub app: AppStatus,
    pub jobs: Vec<AppMember>,
}

/// A job of an app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppMember {
    #[schemars(with = "String")]
    pub name: Name,
    /// STOPPED, WAITING, STARTING, RUNNING, BACKOFF, STOPPING, EXITED, FATAL or UNKNOWN.
    pub state: String,
    /// Where it runs, or ran last; `null` without a fleet, and if it never ran.
    #[schemars(with = "Option<String>")]
    pub node: Option<Name>,
    #[schemars(with = "DesiredWord")]
    pub desired: Desired,
    /// What it is to the app that the job is not as it should be.
    #[schemars(with = "AppFailureWord")]
    pub failure: AppFailure,
    /// Why it has no node.
    pub reason: Option<String>,
}

/// What a start of an app would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StartPlan {
    #[schemars(with = "String")]
    pub app: Name,
    /// In the order in which they would start.
    pub jobs: Vec<PlannedStart>,
}

/// What would become of a job of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedStart {
    #[schemars(with = "String")]
    pub job: Name,
    pub start_sequence: u32,
    /// Where it would start, or runs; `null`: nowhere, and `reason` says why.
    #[schemars(with = "Option<String>")]
    pub node: Option<Name>,
    /// It runs already, and would be left alone.
    pub runs: bool,
    pub reason: Option<String>,
}

/// How an app is to be restarted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "AppRestart")]
pub struct AppRestartRequest {
    /// So many of its jobs at a time, each healthy before the next; default: all of it goes down,
    /// and then up.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub wave: Option<u32>,
}

/// The jobs of an app that was started or stopped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AppJobs {
    #[schemars(with = "String")]
    pub app: Name,
    pub jobs: Vec<JobStatus>,
}
