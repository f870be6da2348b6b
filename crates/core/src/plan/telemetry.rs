//! What a node shows to those who watch it: `[telemetry]`, and `[containerpilot]` for those who
//! watched, and talked to, another supervisor before.

use crate::interface::InterfaceSpec;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TelemetryPlan {
    pub listen: Listen,
    /// What users measure themselves, in the order of the file.
    pub metrics: Vec<MetricPlan>,
}

/// Where it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Listen {
    /// `ip:port`
    At(String),
    /// At the first of these addresses that the host has.
    On { port: u16, interfaces: Vec<InterfaceSpec> },
}

/// A metric that is fed from outside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricPlan {
    /// Whole: namespace, subsystem and name, joined.
    pub name: String,
    pub help: String,
    pub kind: MetricKind,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MetricKind {
    /// Values are added.
    Counter,
    /// The last value counts.
    Gauge,
    /// Values are counted by how large they are; upper bounds, ascending.
    Histogram { buckets: Vec<f64> },
    /// The share of values that lie below; ascending.
    Summary { quantiles: Vec<f64> },
}

impl MetricKind {
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram { .. } => "histogram",
            MetricKind::Summary { .. } => "summary",
        }
    }
}

/// For jobs, scripts and dashboards that were made for ContainerPilot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerPilotPlan {
    /// Its control socket; `None`: only at our own.
    #[serde(default, with = "crate::text::path")]
    pub socket: Option<PathBuf>,
}
