//! What is rolled out: profiles, the templates made of them, and the services that are told.

use super::Http;
use crate::{
    name::Name,
    rollout::{Digest, WaveSize},
    signal::Signal,
};
use serde::{Deserialize, Serialize};
use std::{path::PathBuf, time::Duration};

/// All of `[rollout]`, `[profiles]`, `[templates]` and `[services]`; the order of the lists is that
/// of the file, and counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RolloutPlan {
    pub refresh_interval: Duration,
    /// How long a failure stays pending.
    pub failure_timeout: Duration,
    /// Run when an update has failed.
    #[serde(default)]
    pub on_failure: Option<Vec<String>>,
    /// FAILED ends the node with exit code 1.
    #[serde(default)]
    pub exit_on_failure: bool,
    /// Where units are asked for that we have no right to tell.
    #[serde(default, with = "crate::text::path", skip_serializing_if = "Option::is_none")]
    pub signal_files: Option<PathBuf>,
    /// Through the fleet in waves; `None`: each node by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wave: Option<WavePlan>,
    /// Where it is published whether something has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloudwatch: Option<CloudWatchPlan>,
    pub profiles: Vec<ProfilePlan>,
    pub templates: Vec<TemplatePlan>,
    pub services: Vec<ServicePlan>,
    /// What all of it is read from, which no template may overwrite.
    #[serde(default, with = "crate::text::path::list", skip_serializing_if = "Vec::is_empty")]
    pub configuration: Vec<PathBuf>,
}

/// A metric of CloudWatch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloudWatchPlan {
    pub namespace: String,
    pub name: String,
    /// In the order of the file.
    #[serde(default)]
    pub dimensions: Vec<(String, String)>,
    #[serde(default)]
    pub region: Option<String>,
    #[serde(default)]
    pub endpoint: Option<String>,
}

/// `wave` and `pause` of `[rollout]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WavePlan {
    pub size: WaveSize,
    /// Between two waves.
    pub pause: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfilePlan {
    pub name: Name,
    pub source: ProfileSource,
    /// What it contains; `None`: its source says so, or the ending of its name.
    #[serde(default)]
    pub format: Option<ProfileFormat>,
}

/// Where the content of a profile comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProfileSource {
    File {
        #[serde(with = "crate::text::path")]
        path: PathBuf,
    },
    Http {
        url: String,
        /// Sent as a bearer token.
        #[serde(default, with = "crate::text::path")]
        token_file: Option<PathBuf>,
        /// Trusted in place of those of the system.
        #[serde(default, with = "crate::text::path")]
        ca: Option<PathBuf>,
    },
    AppConfig {
        application: String,
        environment: String,
        profile: String,
        #[serde(default)]
        region: Option<String>,
        /// In place of AWS's own.
        #[serde(default)]
        endpoint: Option<String>,
    },
    /// The AppConfig Agent, on this machine.
    Agent {
        application: String,
        environment: String,
        profile: String,
        #[serde(default)]
        url: Option<String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProfileFormat {
    Json,
    Yaml,
    Toml,
    Text,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplatePlan {
    pub name: Name,
    #[serde(with = "crate::text::path")]
    pub src: PathBuf,
    /// Of what `src` was when the configuration was read: another one is another template. `None`:
    /// it could not be read.
    #[serde(default)]
    pub source: Option<Digest>,
    #[serde(with = "crate::text::path")]
    pub dst: PathBuf,
    /// Those that it may use.
    pub profiles: Vec<Name>,
    /// `user`, `user:group` or `:group`; `None`: as the file that is there, else ours.
    #[serde(default)]
    pub owner: Option<String>,
    /// `None`: as the file that is there, else 0644, or 0600 where a secret is used.
    #[serde(default)]
    pub mode: Option<u32>,
    /// Run on the staged file, whose path stands for `{{ staged }}`.
    #[serde(default)]
    pub check: Option<Vec<String>>,
    pub check_timeout: Duration,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServicePlan {
    pub name: Name,
    pub target: ServiceTarget,
    pub templates: Vec<Name>,
    pub reload: ReloadMethod,
    pub checks: Vec<ServiceCheck>,
    /// Reload and checks end at this.
    pub reload_timeout: Duration,
    /// In which any check that fails counts.
    pub bake_time: Duration,
}

/// Who is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServiceTarget {
    /// A job of this node.
    Job(Name),
    /// A unit of systemd; of flip-flop, the template of the instances `@1` and `@2`.
    Unit(String),
    /// Only the command of its `reload` knows.
    Command,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReloadMethod {
    /// Of a job: its own `reload`, else a restart.
    TryReloadOrRestart,
    FlipFlop,
    Signal(Signal),
    Exec(Vec<String>),
}

/// What has to hold before a service counts as confirmed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServiceCheck {
    /// The children of the main process are others than before the reload.
    ChangeChildPid {
        /// All earlier ones are gone.
        strict: bool,
    },
    /// Of flip-flop: the new instance does not fail notably more requests than the old one.
    HealthComparison(HealthComparison),
    Http(Http),
    Exec(Vec<String>),
}

/// When a new instance fails notably more than the old one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HealthComparison {
    pub source: HealthSource,
    /// Fewer requests of the new instance say nothing.
    pub requests: u64,
    /// By so many percentage points.
    pub points: u32,
}

/// Where the requests and failures of an instance are read; `{instance}` stands for its number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HealthSource {
    /// Prints `{"requests": n, "failures": m}`.
    Exec(Vec<String>),
    /// Answers so, or with the text of raindrops.
    Http(Http),
}
