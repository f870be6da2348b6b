//! What a node is told.

use super::{NodePhase, ReloadPreview, command::Token};
use crate::{
    discovery::InstanceList,
    environ::Unfit,
    event,
    exit::{Asked, Exit, Usage},
    fleet::{FleetEvent, JobSaid, Number, OrderKind, RemoteCopy},
    job::JobSummary,
    name::Name,
    plan::{Plan, SignalTarget},
    record::Encoded,
    rollout::RolloutFacts,
    signal::Signal,
    task::{MAX_INPUT, TaskId, TaskOutcome, TaskSpec},
};
use std::{collections::BTreeMap, time::Duration};

/// What the node is told.
#[derive(Debug, Clone, PartialEq)]
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
        /// The journal does not say how it was: what the keeper has and remembers counts.
        lost: Option<LostJournal>,
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
        /// `None`: it never ran, or nobody knows.
        usage: Option<Usage>,
        asked: Asked,
    },
    /// A task has ended. Said again until the step that heard of it is journaled.
    TaskDone {
        id: TaskId,
        outcome: TaskOutcome,
    },
    Timer {
        token: Token,
    },
    Request(Request),
    /// The fleet wants something of a job that it places.
    Ordered {
        job: Name,
        order: Number,
        what: OrderKind,
        /// What the job has said before in the life that goes on here.
        said: JobSaid,
    },
    /// How a job that the fleet places, and that somebody here waits for, is on another node;
    /// `None`: what there is of it is here.
    Elsewhere {
        job: Name,
        copy: Option<RemoteCopy>,
    },
    /// Something has happened in the fleet, for observers.
    Fleet(FleetEvent),
    /// A signal that the node itself received.
    Signalled {
        signal: Signal,
    },
    /// A check that was asked for with [`super::Command::Probe`] has an answer.
    Checked {
        job: Name,
        incarnation: u64,
        /// Its place in the plan.
        check: usize,
        passed: bool,
        /// For people; at most a few lines.
        output: String,
    },
    /// The job has said something about itself: sd_notify, or its notification descriptor
    /// (which is READY).
    Notified {
        job: Name,
        incarnation: u64,
        ready: bool,
        watchdog: bool,
        /// WATCHDOG_USEC: from now on it will tell at least so often.
        watchdog_every: Option<Duration>,
    },
    /// The cron expression of the job is due.
    CronDue {
        job: Name,
    },
    /// Service discovery was asked about a watch.
    Instances {
        watch: Name,
        instances: InstanceList,
    },
    /// How profiles and templates stand.
    Rollout(Box<RolloutFacts>),
    /// The rollout has failed for good, and that ends the node.
    RolloutEnds,
    /// The job is no longer announced, or it was tried in vain.
    Withdrawn {
        job: Name,
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
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Held {
    pub job: Name,
    /// The highest incarnation ever spawned in this run.
    pub highest: u64,
    /// The incarnation that is alive now (spawned and its end not yet recorded), and its pid.
    pub live: Option<(u64, u32)>,
    /// How the highest incarnation came out is still to be said: its exec is under way, or the
    /// record of its end follows.
    pub pending: bool,
    /// Its control socket is open: the keeper has not heard yet that its life is over.
    pub open: bool,
    /// What the keeper remembers of it, if it is not to run.
    pub summary: Option<JobSummary>,
}

/// What is known of a journal that is missing, or not whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostJournal {
    /// What is wrong with it, for people.
    pub reason: String,
    /// Where the node was, as the keeper remembers it.
    pub phase: NodePhase,
}

/// What people and programs ask for.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Those of them that wait for one another go in that order.
    Start {
        jobs: Vec<Name>,
        /// Added to its command for as long as it is desired; `None`: as they are.
        args: Option<Vec<String>>,
        /// Does not wait for unset latches.
        now: bool,
    },
    /// Not started by anything but a user's enable; kept over runs.
    Disable {
        job: Name,
    },
    Enable {
        job: Name,
    },
    /// The job's own `reload`.
    Reload {
        job: Name,
    },
    Maintenance {
        on: bool,
    },
    StartApp {
        app: Name,
    },
    StopApp {
        app: Name,
    },
    RestartApp {
        app: Name,
        /// So many of its jobs at a time, each as it should be before the next; `None`: all of it
        /// goes down, and then up.
        wave: Option<u32>,
    },
    Stop {
        job: Name,
    },
    /// Those of them that others of them need go when those are gone.
    StopInOrder {
        jobs: Vec<Name>,
    },
    /// No grace: kill the tree; the job rests afterwards.
    Kill {
        job: Name,
    },
    Restart {
        jobs: Vec<Name>,
        /// As for a start.
        args: Option<Vec<String>>,
    },
    Signal {
        job: Name,
        signal: Signal,
        to: SignalTarget,
    },
    /// Brings a new plan into force: touches only what it changes.
    Apply {
        plan: Encoded<Plan>,
        /// What it comes to, if somebody has looked: that is what is applied, unless the node has
        /// moved on since.
        preview: Option<Box<ReloadPreview>>,
    },
    /// Sets variables for whatever is started from now on, and takes some away (`None`).
    Environ {
        changes: BTreeMap<String, Option<String>>,
    },
    /// Runs something for the node itself.
    RunTask {
        purpose: String,
        timeout: Duration,
        task: Box<TaskSpec>,
    },
    Shutdown,
    /// A shutdown that another run follows, in its place.
    BeginAnew,
}

impl Input {
    /// Cuts the texts that come with it: from here on none of them is long.
    pub(super) fn cut_texts(&mut self) {
        match self {
            Input::Exited { exit, .. } => exit.cut_text(),
            Input::TaskDone { outcome, .. } => {
                outcome.exit.cut_text();
                event::cut(&mut outcome.output);
            }
            Input::Checked { output, .. } => event::cut(output),
            Input::StrayKilled { command, .. } => event::cut(command),
            Input::Attached { upgraded, lost, .. } => {
                lost.iter_mut().for_each(|lost| event::cut(&mut lost.reason));
                for (from, to) in upgraded {
                    event::cut(from);
                    event::cut(to);
                }
            }
            Input::Boot
            | Input::Spawned { .. }
            | Input::Timer { .. }
            | Input::Request(_)
            | Input::Ordered { .. }
            | Input::Elsewhere { .. }
            | Input::Fleet(_)
            | Input::Signalled { .. }
            | Input::Notified { .. }
            | Input::CronDue { .. }
            | Input::Instances { .. }
            | Input::Rollout(_)
            | Input::RolloutEnds
            | Input::Withdrawn { .. }
            | Input::LogGap { .. } => {}
        }
    }
}

impl Request {
    /// The one job that it concerns, or the first of them.
    #[must_use]
    pub fn job(&self) -> Option<&Name> {
        match self {
            Request::Start { jobs, .. }
            | Request::Restart { jobs, .. }
            | Request::StopInOrder { jobs } => jobs.first(),
            Request::Disable { job }
            | Request::Enable { job }
            | Request::Reload { job }
            | Request::Stop { job }
            | Request::Kill { job }
            | Request::Signal { job, .. } => Some(job),
            Request::Maintenance { .. }
            | Request::StartApp { .. }
            | Request::StopApp { .. }
            | Request::RestartApp { .. }
            | Request::Apply { .. }
            | Request::Environ { .. }
            | Request::RunTask { .. }
            | Request::BeginAnew
            | Request::Shutdown => None,
        }
    }

    /// The job that it disables (`true`) or enables.
    #[must_use]
    pub fn disables(&self) -> Option<(&Name, bool)> {
        if let Request::Disable { job } | Request::Enable { job } = self {
            return Some((job, matches!(self, Request::Disable { .. })));
        }
        None
    }

    /// It is taken only if it can be written down: who is told that it was taken relies on it
    /// whatever becomes of the agent. What acts on processes is not kept up by a full disk.
    #[must_use]
    pub fn is_promise(&self) -> bool {
        match self {
            Request::Disable { .. }
            | Request::Enable { .. }
            | Request::Apply { .. }
            | Request::Environ { .. } => true,
            Request::Start { .. }
            | Request::Reload { .. }
            | Request::Stop { .. }
            | Request::StopInOrder { .. }
            | Request::Kill { .. }
            | Request::Restart { .. }
            | Request::Signal { .. }
            | Request::Maintenance { .. }
            | Request::StartApp { .. }
            | Request::StopApp { .. }
            | Request::RestartApp { .. }
            | Request::RunTask { .. }
            | Request::BeginAnew
            | Request::Shutdown => false,
        }
    }
}

/// Why a request was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("there is no job '{0}': `mainstay status` shows those there are")]
    NoSuchJob(String),
    #[error("job '{0}' is not running")]
    NotRunning(Name),
    /// A running process cannot be given other arguments.
    #[error("job '{0}' runs already, without these arguments: use `mainstay restart {0} -- ARGS`")]
    RunsAlready(Name),
    #[error("there is no app '{0}'")]
    NoSuchApp(String),
    #[error("job '{0}' has no reload")]
    NoReload(Name),
    #[error("job '{0}' is disabled: enable it first")]
    Disabled(Name),
    #[error(transparent)]
    Environ(#[from] Unfit),
    #[error("the input of a task is {0} bytes: it can be given {MAX_INPUT}")]
    InputTooLong(usize),
    #[error("a task for this purpose is still running")]
    TaskUnderWay,
    #[error("the node is stopping")]
    NodeStopping,
    #[error("nothing is changed, since only a new run of the node can have another {0}")]
    NewRun(String),
    #[error("nothing is changed, since it could not be kept: {0}")]
    NotKept(String),
}
