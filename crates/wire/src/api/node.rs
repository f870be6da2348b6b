//! What the node as a whole answers.

use super::{
    app::AppStatus,
    fleet::FleetStatus,
    job::JobStatus,
    rollout::RolloutStatus,
    schema::{HealthWord, NodePhaseWord},
};
use crate::link::Stray;
use mainstay_core::{job::Health, name::Name, node::NodePhase};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The node and its jobs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Status")]
pub struct NodeStatus {
    pub node: String,
    pub version: String,
    #[schemars(with = "NodePhaseWord")]
    pub state: NodePhase,
    /// Identifies this run of the node.
    pub run: String,
    #[serde(with = "mainstay_core::text::path")]
    #[schemars(with = "String")]
    pub run_dir: PathBuf,
    #[serde(with = "mainstay_core::text::path")]
    #[schemars(with = "String")]
    pub state_dir: PathBuf,
    pub agent_restarts: u64,
    /// Seconds that a shutdown may take.
    #[serde(default)]
    pub stop_timeout: f64,
    /// The agent's journal was lost in this run, and what is not known since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal_lost: Option<JournalLostStatus>,
    /// `null`: the keeper did not answer in time.
    pub keeper: Option<KeeperStatus>,
    pub jobs: Vec<JobStatus>,
    /// Where telemetry is shown, if the plan says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<ListenerStatus>,
    /// The socket that speaks as ContainerPilot's does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containerpilot: Option<ListenerStatus>,
    /// Where XML-RPC is spoken, over TCP and at a socket.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub xmlrpc: Vec<ListenerStatus>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apps: Vec<AppStatus>,
    pub watches: Vec<WatchStatus>,
    /// `null`: not configured.
    #[serde(default)]
    pub discovery: Option<DiscoveryStatus>,
    /// `null`: it is no node of one.
    pub fleet: Option<FleetStatus>,
    /// `null`: nothing is rolled out.
    pub rollout: Option<Box<RolloutStatus>>,
    /// Processes of this node that belong to no job; `null` as for `keeper`.
    pub strays: Option<Vec<Stray>>,
}

/// A journal that was lost: jobs went on as the keeper remembered them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "JournalLost")]
pub struct JournalLostStatus {
    #[schemars(extend("format" = "date-time"))]
    pub since: String,
    pub reason: String,
    /// Jobs that had ended: what they had said before is not known.
    #[schemars(with = "Vec<String>")]
    pub unknown: Vec<Name>,
}

/// The keeper, as far as it shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Keeper")]
pub struct KeeperStatus {
    pub version: String,
    pub pid: u32,
    /// Lines that a stuck reader of the forwarded output cost.
    pub forward_dropped: u64,
}

/// A listener besides the API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Listener")]
pub struct ListenerStatus {
    /// An address or a path.
    pub at: String,
    /// Why it is not open; it is tried again.
    pub error: Option<String>,
}

/// The way to service discovery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Discovery")]
pub struct DiscoveryStatus {
    /// consul or file.
    pub engine: String,
    /// Where it is.
    pub address: String,
    /// What does not work now, if anything; jobs go on meanwhile.
    pub trouble: Option<String>,
}

/// A watch, and what it sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Watch")]
pub struct WatchStatus {
    #[schemars(with = "String")]
    pub name: Name,
    /// The service or file.
    pub of: String,
    /// unknown before the first answer, then healthy or unhealthy.
    #[schemars(with = "HealthWord")]
    pub state: Health,
    pub instances: usize,
    /// When they last changed.
    #[schemars(extend("format" = "date-time"))]
    pub since: Option<String>,
    pub trouble: Option<String>,
}

/// The state that a request to the node leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "State")]
#[serde(rename_all = "lowercase", tag = "state")]
pub enum NodeStateAnswer {
    Starting,
    Running,
    Maintenance,
    Stopping,
    /// Keeper and agent are being replaced.
    Upgrading,
}

impl From<NodePhase> for NodeStateAnswer {
    fn from(phase: NodePhase) -> NodeStateAnswer {
        match phase {
            NodePhase::Starting => NodeStateAnswer::Starting,
            NodePhase::Running => NodeStateAnswer::Running,
            NodePhase::Maintenance => NodeStateAnswer::Maintenance,
            NodePhase::Stopping => NodeStateAnswer::Stopping,
        }
    }
}

/// The variables that a request has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Changed")]
pub struct EnvironChanged {
    pub changed: Vec<String>,
}

/// The number of values that were fed to metrics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Taken")]
pub struct MetricsTaken {
    pub taken: usize,
}
