//! Words and numbers of Supvisors: of the fleet and of its nodes, once and today.

use mainstay_core::{
    fleet::{Conciliation, PeerState, Strategy},
    node::NodePhase,
};

/// How far the fleet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Initialization,
    Deployment,
    Operation,
    Conciliation,
    Restarting,
    ShuttingDown,
    Shutdown,
}

/// A word of Supvisors with its number.
pub(super) type Coded = (i32, &'static str);

impl Stage {
    pub(super) const WORKING: [Stage; 5] = [
        Stage::Deployment,
        Stage::Operation,
        Stage::Conciliation,
        Stage::Restarting,
        Stage::ShuttingDown,
    ];

    /// Of a fleet, by its word.
    pub(super) fn of_fleet(word: &str) -> Stage {
        match word {
            "DEPLOYMENT" => Stage::Deployment,
            "OPERATION" => Stage::Operation,
            "CONCILIATION" => Stage::Conciliation,
            "RESTARTING" => Stage::Restarting,
            "SHUTTING_DOWN" => Stage::ShuttingDown,
            "SHUTDOWN" => Stage::Shutdown,
            _ => Stage::Initialization,
        }
    }

    /// Of a node that is a fleet of one.
    pub(super) fn of_node(phase: NodePhase) -> Stage {
        match phase {
            NodePhase::Starting => Stage::Deployment,
            NodePhase::Running | NodePhase::Maintenance => Stage::Operation,
            NodePhase::Stopping => Stage::ShuttingDown,
        }
    }

    /// In the words of today.
    pub(super) fn today(self) -> Coded {
        match self {
            Stage::Initialization => (1, "SYNCHRONIZATION"),
            Stage::Deployment => (3, "DISTRIBUTION"),
            Stage::Operation => (4, "OPERATION"),
            Stage::Conciliation => (5, "CONCILIATION"),
            Stage::Restarting => (6, "RESTARTING"),
            Stage::ShuttingDown => (7, "SHUTTING_DOWN"),
            Stage::Shutdown => (8, "FINAL"),
        }
    }

    /// In those of 0.8.
    pub(super) fn once(self) -> Coded {
        match self {
            Stage::Initialization => (0, "INITIALIZATION"),
            Stage::Deployment => (1, "DEPLOYMENT"),
            Stage::Operation => (2, "OPERATION"),
            Stage::Conciliation => (3, "CONCILIATION"),
            Stage::Restarting => (4, "RESTARTING"),
            Stage::ShuttingDown => (6, "SHUTTING_DOWN"),
            Stage::Shutdown => (7, "SHUTDOWN"),
        }
    }
}

/// A node in the words of today.
pub(super) fn peer_today(state: PeerState) -> Coded {
    match state {
        PeerState::Unknown | PeerState::Silent => (0, "STOPPED"),
        PeerState::Checking => (1, "CHECKING"),
        PeerState::Running => (3, "RUNNING"),
        PeerState::Isolated => (5, "ISOLATED"),
    }
}

/// A node in those of 0.8.
pub(super) fn peer_once(state: PeerState) -> Coded {
    match state {
        PeerState::Unknown => (0, "UNKNOWN"),
        PeerState::Checking => (1, "CHECKING"),
        PeerState::Running => (2, "RUNNING"),
        PeerState::Silent => (3, "SILENT"),
        PeerState::Isolated => (5, "ISOLATED"),
    }
}

/// In the order of their numbers.
pub(super) const STRATEGIES: [(&str, Strategy); 6] = [
    ("CONFIG", Strategy::Config),
    ("LESS_LOADED", Strategy::LessLoaded),
    ("MOST_LOADED", Strategy::MostLoaded),
    ("LOCAL", Strategy::Local),
    ("LESS_LOADED_NODE", Strategy::LessLoadedNode),
    ("MOST_LOADED_NODE", Strategy::MostLoadedNode),
];

/// In the order of their numbers.
pub(super) const CONCILIATIONS: [(&str, Conciliation); 6] = [
    ("SENICIDE", Conciliation::Senicide),
    ("INFANTICIDE", Conciliation::Infanticide),
    ("USER", Conciliation::User),
    ("STOP", Conciliation::Stop),
    ("RESTART", Conciliation::Restart),
    ("RUNNING_FAILURE", Conciliation::RunningFailure),
];

/// Their word for one of ours.
pub(super) fn word<T: PartialEq>(words: &[(&'static str, T)], ours: &T) -> &'static str {
    words.iter().find(|(_, it)| it == ours).map_or("", |(word, _)| *word)
}
