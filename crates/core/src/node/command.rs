//! What a node wants done, and what it answers.

use super::input::Refusal;
use crate::{
    clock::Mono,
    discovery::Standing,
    event::Event,
    job::JobSummary,
    name::Name,
    plan::SignalTarget,
    record::Record,
    signal::Signal,
    task::{TaskId, TaskSpec},
};

/// What the node wants done. Every command is idempotent: it names an incarnation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    Spawn {
        job: Name,
        incarnation: u64,
        /// Behind the plan's arguments.
        args: Vec<String>,
    },
    /// The job's stop signal; counts as asked for.
    Stop { job: Name, incarnation: u64, signal: Signal, to: SignalTarget },
    /// SIGKILL to the whole tree; counts as asked for.
    Kill { job: Name, incarnation: u64 },
    /// A signal that a user sends: the end it may cause is not asked for.
    Signal { job: Name, incarnation: u64, signal: Signal, to: SignalTarget },
    /// Ask a check of the job; the answer is [`super::Input::Checked`], at the latest at `deadline`
    /// (then it has failed). One that is still under way is not asked twice.
    Probe { job: Name, incarnation: u64, check: usize, deadline: Mono },
    /// Say [`super::Input::CronDue`] at the next time its expression names after now. A later one
    /// replaces it.
    ArmCron { job: Name },
    /// Tell service discovery about the job, and go on telling. A later one replaces it.
    Announce { job: Name, standing: Standing, note: String },
    /// Remove the job from service discovery; answered by [`super::Input::Withdrawn`].
    Withdraw { job: Name },
    /// The life of the job is over: nothing but its next launch on purpose concerns this
    /// incarnation any more.
    Rest { job: Name, incarnation: u64 },
    /// The job is gone from the plan, and its process with it.
    Forget { job: Name },
    /// The plan that is in force now.
    Applied,
    /// What is known of a watch has changed: its file is to show it. Whatever is started from now
    /// on finds it there.
    WriteInstances { watch: Name },
    /// What the keeper is to remember of a job that is not to run; `None`: it is to run.
    Remember { job: Name, summary: Option<Box<JobSummary>> },
    /// Run it, killed at `deadline`; the answer is [`super::Input::TaskDone`].
    RunTask {
        id: TaskId,
        deadline: Mono,
        /// `None`: what it runs is in the plan of its job.
        spec: Option<Box<TaskSpec>>,
    },
    /// Wake the node with this token at `at`. A later `SetTimer` with the same token replaces it.
    SetTimer { token: Token, at: Mono },
    /// Everything is gone: the run ends with this code, or another one begins in its place.
    Exit { code: i32, again: bool },
}

/// Says which wait has ended; one that no longer matters is recognised by its incarnation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Token {
    Job {
        job: Name,
        incarnation: u64,
        wait: Wait,
    },
    /// An app that failed is to start again.
    App {
        app: Name,
    },
    /// The end of a shutdown's time.
    ShutdownDeadline,
    /// Everything was killed, and had its time to be gone.
    ShutdownOverdue,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wait {
    /// `start_seconds` have passed.
    Started,
    /// The back-off is over.
    Backoff,
    /// The stop signal had its time.
    StopTimeout,
    /// `when.timeout`.
    When,
    /// The next interval.
    Interval,
    /// The longest run.
    Longest,
    /// The next time a check is asked, or a watchdog is late.
    Check(usize),
    /// The time that a job which was healthy has to become so again.
    Recovery,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    pub events: Vec<Event>,
    pub commands: Vec<Command>,
    /// What is not as it was: the agent journals it.
    pub records: Vec<Record>,
    /// The answer to an [`super::Input::Request`].
    pub answer: Option<Result<(), Refusal>>,
}

impl Outcome {
    /// Whether the plan in force is another one, or what was leaving it is gone: what was written
    /// of the plan elsewhere may be out of date.
    #[must_use]
    pub fn changes_plan(&self) -> bool {
        let changes = |record: &Record| matches!(record, Record::Plan(_) | Record::JobGone(_));
        self.records.iter().any(changes)
    }

    /// Whether what the fleet is told of this node may be another: its plan, its phase, its jobs and
    /// their placement.
    #[must_use]
    pub fn concerns_fleet(&self) -> bool {
        self.records.iter().any(|record| {
            matches!(
                record,
                Record::Plan(_)
                    | Record::Node(_)
                    | Record::Job(..)
                    | Record::JobGone(_)
                    | Record::Placed(..)
            )
        })
    }
}
