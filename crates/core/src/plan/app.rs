//! Apps: jobs that start and stop together, in order. Here a fleet of one.

use super::{NodePattern, Spread};
use crate::{fleet::Strategy, name::Name};
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppPlan {
    pub name: Name,
    /// Apps start one sequence after the other, lowest first; 0 = never by itself.
    pub start_sequence: u32,
    /// Lowest first.
    pub stop_sequence: u32,
    pub stop_order: StopOrder,
    pub on_start_failure: OnStartFailure,
    pub on_failure: OnFailure,
    /// `None`: the fleet's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    /// Where its jobs may run, unless they say so themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodePattern>,
    #[serde(default)]
    pub distribution: Distribution,
}

/// How far the jobs of an app may be from each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    #[default]
    Any,
    OneNode,
    OneMachine,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StopOrder {
    /// By `stop_sequence`, lowest first.
    Sequence,
    /// The mirror of the start.
    Reverse,
}

/// A required job of the app did not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnStartFailure {
    /// Start nothing more of the app.
    Abort,
    /// Stop the app.
    Stop,
    Continue,
}

/// A job of a running app ended for good and was not meant to, or its node is lost. Of several the
/// last counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    Continue,
    /// Answers the loss of a node, never a crash.
    RestartProcess,
    RestartApp,
    StopApp,
}

/// Where a job stands in its app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// 0 = not started with the app.
    pub start_sequence: u32,
    pub stop_sequence: u32,
    pub required: bool,
    /// The next sequence waits until it has exited as expected.
    pub wait_exit: bool,
    /// `None`: the app's.
    pub on_failure: Option<OnFailure>,
    /// Where it may run; empty: where the app says, else anywhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodePattern>,
    /// What it takes of a machine, of 100.
    #[serde(default)]
    pub load: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
    /// How long a start with `wait_exit` waits in a fleet.
    #[serde(default = "wait_timeout")]
    pub wait_timeout: Duration,
}

fn wait_timeout() -> Duration {
    Place::WAIT_TIMEOUT
}

impl Default for Place {
    fn default() -> Place {
        Place {
            start_sequence: 1,
            stop_sequence: 0,
            required: false,
            wait_exit: false,
            on_failure: None,
            nodes: Vec::new(),
            load: 0,
            spread: None,
            wait_timeout: Place::WAIT_TIMEOUT,
        }
    }
}

impl Place {
    pub const WAIT_TIMEOUT: Duration = Duration::from_secs(600);
}

impl AppPlan {
    #[must_use]
    pub fn new(name: Name) -> AppPlan {
        AppPlan {
            name,
            start_sequence: 1,
            stop_sequence: 0,
            stop_order: StopOrder::Sequence,
            on_start_failure: OnStartFailure::Abort,
            on_failure: OnFailure::Continue,
            strategy: None,
            nodes: Vec::new(),
            distribution: Distribution::Any,
        }
    }

    /// When a job of the app is stopped, lowest first.
    #[must_use]
    pub fn stop_sequence_of(&self, place: &Place) -> u32 {
        match self.stop_order {
            StopOrder::Reverse => u32::MAX - place.start_sequence,
            StopOrder::Sequence => place.stop_sequence,
        }
    }
}
