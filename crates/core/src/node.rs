//! One node: its jobs, its start, its shutdown, its exit code.
//!
//! The agent turns the world into [`Input`]s and [`Command`]s into actions. For every input it
//! journals what [`Node::step`] returned (events and the jobs that were touched) *before* anything
//! of it becomes visible, so an agent that dies in between is followed by one that goes on.

use crate::{
    clock::{Mono, Now},
    event::Event,
    exit::{Asked, Exit},
    job::Job,
    name::Name,
    plan::{JobPlan, Plan, Reach},
    signal::Signal,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
        upgraded: Option<(String, String)>,
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The answer to an [`Input::Request`].
    pub answer: Option<Result<(), Refusal>>,
}

/// Where the node is in its own life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodePhase {
    Starting,
    Running,
    Maintenance,
    Stopping,
}

/// The node's own state, apart from its jobs: journaled with every step that changed it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Life {
    phase: NodePhase,
    /// The number of the last event.
    seq: u64,
}

#[derive(Debug, Clone)]
pub struct Node {
    plan: Plan,
    life: Life,
    jobs: BTreeMap<Name, Job>,
}

impl Node {
    #[must_use]
    pub fn new(plan: Plan) -> Node {
        let _ = plan;
        todo!()
    }

    /// A node as an earlier agent journaled it. A job without a journaled state is new.
    #[must_use]
    pub fn restore(plan: Plan, life: Life, jobs: BTreeMap<Name, Job>) -> Node {
        let _ = (plan, life, jobs);
        todo!()
    }

    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    #[must_use]
    pub fn life(&self) -> &Life {
        &self.life
    }

    #[must_use]
    pub fn phase(&self) -> NodePhase {
        self.life.phase
    }

    #[must_use]
    pub fn job(&self, name: &str) -> Option<&Job> {
        self.jobs.get(name)
    }

    /// In the order of the file.
    pub fn jobs(&self) -> impl Iterator<Item = (&JobPlan, &Job)> {
        self.plan.jobs.iter().filter_map(|plan| Some((plan, self.jobs.get(&plan.name)?)))
    }

    pub fn step(&mut self, now: Now, input: Input) -> Outcome {
        let _ = (now, input);
        todo!()
    }
}
