//! The bodies of requests. What is not understood in them is refused.

use super::schema::ReachWord;
use mainstay_core::{environ::Environ, plan::SignalTarget, signal::Signal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::PathBuf};

/// How a job is to be started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Start")]
pub struct StartRequest {
    /// Added to the command of the job.
    pub args: Option<Vec<String>>,
    /// Does not wait for what its `when` asks for.
    #[serde(default)]
    pub now: bool,
}

/// How a job is to be started again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Restart")]
pub struct RestartRequest {
    /// Added to the command of the job, in place of those it was started with.
    pub args: Option<Vec<String>>,
}

/// A signal for a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Signal")]
pub struct SignalRequest {
    #[schemars(with = "String", example = &"SIGHUP")]
    pub signal: Signal,
    /// Default: leader.
    #[schemars(with = "Option<ReachWord>")]
    pub to: Option<SignalTarget>,
}

/// Whether the node is to be in maintenance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Maintenance")]
pub struct MaintenanceRequest {
    pub on: bool,
}

/// How the node is to be shut down.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Shutdown")]
pub struct ShutdownRequest {
    /// What the fleet has placed here goes elsewhere first.
    #[serde(default)]
    pub drain: bool,
}

/// The binary that keeper and agent are to be replaced by.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Upgrade")]
pub struct UpgradeRequest {
    /// Default: the path that the keeper was started from.
    #[serde(default, with = "mainstay_core::text::path")]
    #[schemars(with = "Option<String>")]
    pub binary: Option<PathBuf>,
}

/// Variables by name; `null`: taken away.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(rename = "Environ")]
pub struct EnvironVariables(pub BTreeMap<String, Option<String>>);

impl From<&Environ> for EnvironVariables {
    fn from(environ: &Environ) -> EnvironVariables {
        let owned =
            |(name, value): (&str, Option<&str>)| (name.to_owned(), value.map(str::to_owned));
        EnvironVariables(environ.iter().map(owned).collect())
    }
}

/// Values by the name of their metric.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(rename = "Metrics")]
pub struct MetricValues(pub BTreeMap<String, f64>);
