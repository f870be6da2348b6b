//! What is answered about a fleet, as one of its nodes sees it.

use super::{
    app::AppStatus,
    schema::{ConciliationWord, DesiredWord, PeerStateWord},
};
use mainstay_core::{
    fleet::{Conciliation, PeerState},
    job::Desired,
    name::Name,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The fleet, as this node sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Fleet")]
pub struct FleetStatus {
    #[schemars(with = "String")]
    pub name: Name,
    /// The node that answers.
    #[schemars(with = "String")]
    pub node: Name,
    /// Its id, which outlives runs and boots.
    pub id: String,
    /// INITIALIZATION, DEPLOYMENT, OPERATION, CONCILIATION, RESTARTING, SHUTTING_DOWN or SHUTDOWN.
    pub state: String,
    /// `null`: none is known.
    #[schemars(with = "Option<String>")]
    pub master: Option<Name>,
    /// Which reign of a master it is.
    pub term: Option<u64>,
    /// The node that answers first.
    pub nodes: Vec<FleetNodeStatus>,
    pub apps: Vec<AppStatus>,
    pub jobs: Vec<PlacedStatus>,
}

/// A node of the fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "FleetNode")]
pub struct FleetNodeStatus {
    #[schemars(with = "String")]
    pub name: Name,
    #[schemars(with = "PeerStateWord")]
    pub state: PeerState,
    /// Identifies its run; `null`: it is not heard.
    pub run: Option<String>,
    /// Nodes of one machine share its load.
    pub machine: Option<String>,
    /// What runs there takes so much of its machine, of 100.
    pub load: u32,
    /// How many placed jobs run there.
    pub jobs: usize,
    /// Nothing is placed there.
    pub drained: bool,
    /// What runs there goes elsewhere, because it is to end after that.
    #[serde(default)]
    pub hands_over: bool,
    /// It is about to end, on purpose.
    pub ending: bool,
}

/// A placed job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PlacedJob")]
pub struct PlacedStatus {
    #[schemars(with = "String")]
    pub job: Name,
    #[schemars(with = "String")]
    pub app: Name,
    #[schemars(with = "DesiredWord")]
    pub desired: Desired,
    /// Where there is something of it, those first that run.
    pub copies: Vec<CopyStatus>,
    pub args: Vec<String>,
    /// It runs on more than one node.
    pub conflict: bool,
    /// Why it is not as it should be, if it is not: no room, a lost node.
    pub reason: Option<String>,
    /// Nodes whose configuration has another job under its name: it is not placed there.
    #[schemars(with = "Vec<String>")]
    pub differs: Vec<Name>,
    /// Nodes that take part and know it.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub known_by: Vec<Name>,
    /// Nodes that somebody has taken from its candidates (`disable --here`).
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub disabled_on: Vec<Name>,
}

/// A job on one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Copy")]
pub struct CopyStatus {
    #[schemars(with = "String")]
    pub node: Name,
    /// STOPPED, WAITING, STARTING, RUNNING, BACKOFF, STOPPING, EXITED or FATAL.
    pub state: String,
    pub incarnation: u64,
    /// It has ended by itself, and not as it should.
    #[serde(default)]
    pub failed: bool,
    /// Somebody has started or stopped it on that node alone.
    pub by_hand: bool,
}

/// The jobs that run on more than one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conflicts {
    pub conflicts: Vec<PlacedStatus>,
}

/// How a conflict is to be solved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConciliateRequest {
    /// `null`: all that are in conflict.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub job: Option<Name>,
    #[schemars(with = "ConciliationWord")]
    pub rule: Conciliation,
}

/// A node of the fleet, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeRequest {
    #[schemars(with = "String")]
    pub node: Name,
}

/// Where something is to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveRequest {
    #[schemars(with = "String")]
    pub to: Name,
}

impl FleetStatus {
    #[must_use]
    pub fn job(&self, job: &str) -> Option<&PlacedStatus> {
        self.jobs.iter().find(|it| it.job.as_str() == job)
    }

    #[must_use]
    pub fn app(&self, app: &str) -> Option<&AppStatus> {
        self.apps.iter().find(|it| it.name.as_str() == app)
    }
}

impl PlacedStatus {
    /// Where to look for what it has written: where it runs, else where it has run, this node first.
    #[must_use]
    pub fn last_home(&self, me: &Name) -> Option<&Name> {
        let here = self.copies.iter().find(|copy| copy.node == *me);
        self.home().or(here).or(self.copies.first()).map(|copy| &copy.node)
    }

    /// Where it runs, or will.
    #[must_use]
    pub fn home(&self) -> Option<&CopyStatus> {
        self.copies.first().filter(|copy| copy.is_home())
    }
}

impl CopyStatus {
    /// It runs there, or will.
    #[must_use]
    pub fn is_home(&self) -> bool {
        !["STOPPED", "EXITED", "FATAL"].contains(&self.state.as_str())
    }
}
