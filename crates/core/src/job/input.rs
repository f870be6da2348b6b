//! What a job is told: by the world, by people, by the node that knows the other jobs, and by a new
//! plan.

use super::{Force, Notification, Permit};
use crate::{
    exit::{Asked, Exit, Usage},
    name::Name,
    node::{Held, Wait},
    plan::{JobPlan, SignalTarget},
    signal::Signal,
};
use std::collections::BTreeSet;

#[derive(Debug, Clone)]
pub(crate) enum JobInput<'a> {
    // The world.
    /// A new agent: what the keeper has of the job, if it ever had anything.
    Attached {
        held: Option<&'a Held>,
    },
    /// A new agent that has no journal: the same, and it is all there is to know.
    Recovered {
        held: Option<&'a Held>,
    },
    /// exec has succeeded.
    Spawned {
        incarnation: u64,
        pid: u32,
    },
    /// The process and its whole tree are gone, or it never ran.
    Exited {
        incarnation: u64,
        exit: &'a Exit,
        usage: Option<Usage>,
        asked: Asked,
    },
    /// `stop.exec` has ended.
    StopExecDone {
        incarnation: u64,
    },
    Timer {
        incarnation: u64,
        wait: Wait,
    },
    Checked {
        incarnation: u64,
        check: usize,
        passed: bool,
        output: &'a str,
    },
    Notified {
        incarnation: u64,
        said: Notification,
    },
    CronDue,
    /// Its entry in service discovery is gone, or that was tried in vain.
    Withdrawn,

    // People.
    Start {
        args: Option<Vec<String>>,
        now: bool,
    },
    Restart {
        args: Option<Vec<String>>,
    },
    /// In its turn among others that are restarted with it.
    RestartInOrder {
        args: Option<Vec<String>>,
    },
    Stop(Force),
    Signal {
        signal: Signal,
        to: SignalTarget,
    },
    /// The job's own way to take up its configuration.
    Reload,
    Disable,
    /// `rests`: its fleet says when it runs.
    Enable {
        rests: bool,
    },

    // The node.
    /// A request is about to launch it, together with these.
    LaunchAhead {
        along: &'a BTreeSet<Name>,
    },
    /// A job whose end it runs for has begun another life.
    SourceBegins,
    /// The node stops, and with it a job whose end it runs for.
    SourceEnds,
    /// The plan has just come to want it: its clocks start.
    Arm,
    /// It waits, and may do this.
    Permitted(Permit),
    /// Its trigger has come.
    Triggered,
    /// What it follows is down: it goes down as well, and comes back with it.
    SourceLost,
    /// What it follows is back, and it shall begin anew with it.
    SourceBack,
    /// No job runs on behalf of its end any more.
    HooksDone,
    /// The node has begun to stop, and has not told it yet.
    ShutdownBegun,
    /// Whether the node is in maintenance has changed.
    MaintenanceChanged,

    // Its app.
    /// Its sequence has come.
    Ordered,

    // A new plan.
    /// What can be applied to what is there.
    PlanChanged {
        before: &'a JobPlan,
    },
    /// It waited, failed or was given up under the plan of before.
    PlanRevives {
        before: &'a JobPlan,
    },
    /// Only a new process can have what has changed.
    PlanRestarts {
        before: Option<&'a JobPlan>,
    },
    /// It is gone from the plan. What has a process is stopped when it comes next: after what
    /// needs it.
    PlanRemoves,
    /// It is gone from the plan together with a job whose end it is to run for: it goes after it.
    PlanLingers,
    /// From now on it follows something that is not there.
    PlanLosesSource,
    /// What it follows goes down for the plan: it does so before, in its order, and comes back after.
    RestartAlong,
    /// Its pending restart comes next.
    BeginRestart,
}
