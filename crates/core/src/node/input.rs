//! What a node is told.

use super::command::{TaskId, Token};
use crate::{
    exit::{Asked, Exit},
    name::Name,
    plan::Reach,
    signal::Signal,
};
use serde::{Deserialize, Serialize};

/// What the node is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Input {
    /// The first input of a run.
    Boot,
    /// The first input of an agent that takes over a running node: what the keeper holds now.
    /// Commands that may have been lost are decided again; exit records that nobody has
    /// acknowledged follow as [`Input::Exited`].
    Attached {
        held: Vec<Held>,
        agent_restarts: u64,
        /// (from, to): upgrades that no agent has told of yet, oldest first.
        upgraded: Vec<(String, String)>,
    },
    /// exec has succeeded.
    Spawned {
        job: Name,
        incarnation: u64,
        pid: u32,
    },
    /// The process and its whole tree are gone, or it never ran.
    Exited {
        job: Name,
        incarnation: u64,
        exit: Exit,
        asked: Asked,
    },
    TaskDone {
        id: TaskId,
        exit: Exit,
    },
    Timer {
        token: Token,
    },
    Request(Request),
    /// A signal that the node itself received.
    Signalled {
        signal: Signal,
    },
    LogGap {
        job: Name,
        lines: u64,
    },
    StrayKilled {
        pid: u32,
        command: String,
    },
}

/// A job as the keeper has it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Held {
    pub job: Name,
    /// The highest incarnation ever spawned in this run.
    pub highest: u64,
    /// The incarnation that is alive now (spawned and its end not yet recorded), and its pid.
    pub live: Option<(u64, u32)>,
}

/// What people and programs ask for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    Start {
        job: Name,
    },
    Stop {
        job: Name,
    },
    /// No grace: kill the tree; the job rests afterwards.
    Kill {
        job: Name,
    },
    Restart {
        job: Name,
    },
    Signal {
        job: Name,
        signal: Signal,
        to: Reach,
    },
    Shutdown,
}

/// Why a request was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Refusal {
    #[error("there is no job '{0}'")]
    NoSuchJob(String),
    #[error("job '{0}' is not running")]
    NotRunning(Name),
    #[error("the node is stopping")]
    NodeStopping,
}
