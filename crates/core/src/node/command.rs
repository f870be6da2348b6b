//! What a node wants done, and what it answers.

use super::input::Refusal;
use crate::{clock::Mono, event::Event, name::Name, plan::Reach, signal::Signal};
use serde::{Deserialize, Serialize};

/// What the node wants done. Every command is idempotent: it names an incarnation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    Spawn {
        job: Name,
        incarnation: u64,
    },
    /// The job's stop signal; counts as asked for.
    Stop {
        job: Name,
        incarnation: u64,
        signal: Signal,
        to: Reach,
    },
    /// SIGKILL to the whole tree; counts as asked for.
    Kill {
        job: Name,
        incarnation: u64,
    },
    /// A signal that a user sends: the end it may cause is not asked for.
    Signal {
        job: Name,
        incarnation: u64,
        signal: Signal,
        to: Reach,
    },
    /// Run the job's `stop.exec`, killed at `deadline`.
    RunTask {
        id: TaskId,
        deadline: Mono,
    },
    /// Wake the node with this token at `at`. A later `SetTimer` with the same token replaces it.
    SetTimer {
        token: Token,
        at: Mono,
    },
    /// Everything is gone: the run ends with this code.
    Exit {
        code: i32,
    },
}

/// A short run on behalf of a job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskId {
    pub job: Name,
    pub incarnation: u64,
    pub what: TaskKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskKind {
    StopExec,
}

/// Says which wait has ended; one that no longer matters is recognised by its incarnation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Token {
    Job {
        job: Name,
        incarnation: u64,
        wait: Wait,
    },
    /// The end of a shutdown's time.
    ShutdownDeadline,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Wait {
    /// `start_seconds` have passed.
    Started,
    /// The back-off is over.
    Backoff,
    /// The stop signal had its time.
    StopTimeout,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    pub events: Vec<Event>,
    pub commands: Vec<Command>,
    /// Jobs whose state is not what it was: the agent journals them.
    pub touched: Vec<Name>,
    /// The answer to an [`super::Input::Request`].
    pub answer: Option<Result<(), Refusal>>,
}
