//! How far a fleet is, as its master says and the others repeat.
//!
//! ```text
//!  INITIALIZATION ──in sync, a master──► DEPLOYMENT ──apps started──► OPERATION ◄──► CONCILIATION
//!                                            ▲ a node has joined ─────────┘
//!  from each of them: RESTARTING or SHUTTING_DOWN ──all apps down──► SHUTDOWN
//! ```

use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum FleetStage {
    /// Nodes wait for each other.
    Initialization,
    /// The master starts apps.
    Deployment,
    Operation,
    /// Some job runs more than once.
    Conciliation,
    /// All apps are stopped; then every node begins a new run.
    Restarting,
    /// All apps are stopped; then every node ends.
    ShuttingDown,
    Shutdown {
        again: bool,
    },
}

impl fmt::Display for FleetStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            FleetStage::Initialization => "INITIALIZATION",
            FleetStage::Deployment => "DEPLOYMENT",
            FleetStage::Operation => "OPERATION",
            FleetStage::Conciliation => "CONCILIATION",
            FleetStage::Restarting => "RESTARTING",
            FleetStage::ShuttingDown => "SHUTTING_DOWN",
            FleetStage::Shutdown { .. } => "SHUTDOWN",
        })
    }
}

impl FleetStage {
    /// All runs end, and others follow.
    #[must_use]
    pub fn begins_anew(self) -> bool {
        match self {
            FleetStage::Restarting | FleetStage::Shutdown { again: true } => true,
            FleetStage::Initialization
            | FleetStage::Deployment
            | FleetStage::Operation
            | FleetStage::Conciliation
            | FleetStage::ShuttingDown
            | FleetStage::Shutdown { again: false } => false,
        }
    }

    #[must_use]
    pub fn is_ending(self) -> bool {
        match self {
            FleetStage::Restarting | FleetStage::ShuttingDown | FleetStage::Shutdown { .. } => true,
            FleetStage::Initialization
            | FleetStage::Deployment
            | FleetStage::Operation
            | FleetStage::Conciliation => false,
        }
    }
}
