//! Apps: jobs that start and stop together, in order. Here a fleet of one.

use crate::name::Name;
use serde::{Deserialize, Serialize};

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
}

impl Default for Place {
    fn default() -> Place {
        Place {
            start_sequence: 1,
            stop_sequence: 0,
            required: false,
            wait_exit: false,
            on_failure: None,
        }
    }
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
