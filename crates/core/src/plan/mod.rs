//! The plan: a validated configuration, in the words the machines use.
//!
//! `config` makes it from a file, the agent applies it and keeps it as `plan.json`, so that the
//! next agent goes on with what was applied and not with what somebody edited since.

mod api;
mod app;
mod check;
mod diff;
mod discovery;
mod fleet;
mod log;
mod longest_stop;
mod rollout;
mod telemetry;
mod when;

pub use api::{ApiPlan, ApiTls, Listeners, Login, XmlRpcPlan};
pub use app::{AppPlan, Distribution, OnFailure, OnStartFailure, Place, StopOrder};
pub use check::{Check, CheckOutput, Http, HttpTls, Probe};
pub(crate) use diff::diff_job;
pub use diff::{Change, JobChange, NodeDiff, PlanDiff, diff};
pub use discovery::{Advertise, WatchPlan, Watched};
pub use fleet::{
    FLEET_PORT, FleetEngine, FleetNode, FleetPlan, NodePattern, Spread, nodes_in_order,
    wants_new_run,
};
pub use log::{FileFormat, ForwardFormat, ForwardTo, Keep, Log, NodeLog};
pub use longest_stop::{LongestStop, USUAL_SHUTDOWN};
pub use rollout::{
    CloudWatchPlan, HealthComparison, HealthSource, ProfileFormat, ProfilePlan, ProfileSource,
    ReloadMethod, RolloutPlan, ServiceCheck, ServicePlan, ServiceTarget, TemplatePlan, WavePlan,
};
pub use telemetry::{ContainerPilotPlan, Listen, MetricKind, MetricPlan, TelemetryPlan};
pub use when::{Awaited, Condition, Cron, OnLoss, RolloutSource, SourceRef, Trigger, When, While};

use crate::{discovery::Backend, name::Name, signal::Signal};
use serde::{Deserialize, Serialize};
use std::{path::PathBuf, sync::Arc, time::Duration};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub node: NodePlan,
    /// In the order of the file. Shared, so that a copy of a plan costs next to nothing.
    pub jobs: Vec<Arc<JobPlan>>,
    pub apps: Vec<AppPlan>,
    /// In the order of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watches: Vec<WatchPlan>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery: Option<Backend>,
    #[serde(default)]
    pub api: ApiPlan,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<TelemetryPlan>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containerpilot: Option<ContainerPilotPlan>,
    #[serde(default, skip_serializing_if = "NodeLog::is_default")]
    pub log: NodeLog,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<Box<FleetPlan>>,
    /// Shared with those who carry it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Arc<RolloutPlan>>,
}

impl Plan {
    /// Jobs and nothing else.
    #[must_use]
    pub fn new(node: NodePlan, jobs: Vec<JobPlan>) -> Plan {
        Plan {
            node,
            jobs: shared(jobs),
            apps: Vec::new(),
            watches: Vec::new(),
            discovery: None,
            telemetry: None,
            containerpilot: None,
            api: ApiPlan::default(),
            log: NodeLog::default(),
            fleet: None,
            rollout: None,
        }
    }

    #[must_use]
    pub fn job(&self, name: &str) -> Option<&JobPlan> {
        self.jobs.iter().find(|job| job.name.as_str() == name).map(Arc::as_ref)
    }

    #[must_use]
    pub fn app(&self, name: &str) -> Option<&AppPlan> {
        self.apps.iter().find(|app| app.name.as_str() == name)
    }

    #[must_use]
    pub fn watch(&self, name: &str) -> Option<&WatchPlan> {
        self.watches.iter().find(|watch| watch.name.as_str() == name)
    }

    /// Its fleet says where the job runs: it starts and stops by order alone.
    #[must_use]
    pub fn is_placed(&self, job: &JobPlan) -> bool {
        self.fleet.is_some() && self.placing_app(job).is_some()
    }

    /// The app whose fleet says where the job runs. A job that runs for the end of one of an app
    /// belongs to every node: it is needed where that one runs.
    #[must_use]
    pub fn placing_app(&self, job: &JobPlan) -> Option<&AppPlan> {
        let app = self.app_of(job)?;
        let of_app = |name: &Name| self.job(name.as_str()).is_some_and(|it| it.app.is_some());
        let is_hook = job.when.conditions().any(|it| match &it.source {
            SourceRef::Job(name) => it.event.ends() && *name != job.name && of_app(name),
            SourceRef::Node | SourceRef::Watch(_) | SourceRef::Rollout(_) => false,
        });
        (!is_hook).then_some(app)
    }

    /// The app that the job belongs to.
    #[must_use]
    pub fn app_of(&self, job: &JobPlan) -> Option<&AppPlan> {
        job.app.as_ref().and_then(|app| self.app(app.as_str()))
    }
}

/// Kept for as long as the plan is in force: nothing in it has room for more.
fn shared(jobs: Vec<JobPlan>) -> Vec<Arc<JobPlan>> {
    // Not collected: that would stay in the room that the jobs themselves have taken.
    let mut all = Vec::with_capacity(jobs.len());
    for mut job in jobs {
        job.exec.iter_mut().for_each(String::shrink_to_fit);
        job.exec.shrink_to_fit();
        job.env.shrink_to_fit();
        all.push(Arc::new(job));
    }
    all
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodePlan {
    pub name: String,
    pub stop_timeout: Duration,
    pub exit: ExitRule,
    /// Level of our own log: error, warn, info, debug, trace.
    pub log_level: String,
    /// Nodes of one machine share its load; `None`: the machine that it runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
}

/// When the node ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExitRule {
    /// When a main job has ended.
    Main,
    /// When every job has ended.
    All,
    /// When some job has ended.
    Any,
    /// When some job has failed, or every job has ended.
    AnyFailure,
    Never,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobPlan {
    pub name: Name,
    /// Program and arguments. Empty for a job that is only announced or checked: a process of our
    /// own stands in its place.
    pub exec: Vec<String>,
    pub main: bool,
    /// When it has failed for good the node ends.
    #[serde(default)]
    pub exit_on_failure: bool,
    pub restart: Restart,
    pub start_seconds: Duration,
    /// How many failed starts in a row are tried again, whatever `restart` says; `None`: it decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_retries: Option<u32>,
    pub exit_codes: Vec<i32>,
    pub stop: Stop,
    pub user: Option<String>,
    pub group: Option<String>,
    /// Supplementary groups; `None`: those of the user.
    pub groups: Option<Vec<String>>,
    #[serde(default, with = "crate::text::path")]
    pub cwd: Option<PathBuf>,
    pub env: Vec<(String, String)>,
    pub umask: Option<u32>,
    pub nice: Option<i32>,
    pub limits: Limits,
    pub sockets: Vec<Socket>,
    /// Give it an sd_notify socket.
    pub notify: bool,
    pub stderr: Stderr,
    /// A session of its own; else only a process group of its own.
    #[serde(default = "yes")]
    pub session: bool,
    #[serde(default)]
    pub stdin: Stdin,
    /// A pseudo-terminal for it, as controlling terminal and for what it writes.
    #[serde(default)]
    pub tty: bool,
    pub log: Log,
    pub when: When,
    /// `while`
    pub follows: Option<While>,
    /// `health`
    pub checks: Vec<Check>,
    /// The longest run: past it the tree is killed, which counts as a failure.
    pub timeout: Option<Duration>,
    pub reload: Option<Reload>,
    /// It starts by itself; else by command only. Of a job with `app` its app decides.
    #[serde(default = "yes")]
    pub autostart: bool,
    pub app: Option<Name>,
    pub place: Place,
    /// The name in the file that this job is an instance of.
    pub instance_of: Option<Name>,
    /// Names of `env` whose values are secret: shown nowhere.
    pub secrets: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advertise: Option<Box<Advertise>>,
    /// `None`: in no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<Written>,
    /// A digest of its table as it is written, before variables are put in: two nodes know the same
    /// job when it is equal.
    #[serde(default)]
    pub definition: u64,
}

/// Where a job is written, as `file:line`, for those who ask why it is as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    pub at: String,
    /// Its `when`, if it has one.
    pub when: Option<String>,
}

/// What `mainstay reload JOB` does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reload {
    Signal(Signal),
    /// Run as a task.
    Exec(Vec<String>),
}

/// What happens after an exit that nobody asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restart {
    pub on: RestartOn,
    /// `None`: at once after a stable run (10 s), then 200 ms doubling to `max_delay`.
    /// Given: holds for every restart and doubles to `max_delay`; zero stays zero.
    pub delay: Option<Duration>,
    pub max_delay: Duration,
    pub limit: Option<u32>,
    /// The window in which `limit` counts; `None`: the life of the job.
    pub within: Option<Duration>,
    #[serde(default, skip_serializing_if = "DelayFrom::is_end")]
    pub from: DelayFrom,
}

/// Where the delay of a restart begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DelayFrom {
    /// At the end of a run.
    #[default]
    End,
    /// At its start: a run that takes longer is followed at once.
    Start,
}

impl DelayFrom {
    fn is_end(&self) -> bool {
        *self == DelayFrom::End
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RestartOn {
    Never,
    Failure,
    Any,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    pub signal: Signal,
    pub to: SignalTarget,
    pub timeout: Duration,
    /// Run as a task before the signal, within the same time limit.
    pub exec: Option<Vec<String>>,
}

/// Whom a signal is sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SignalTarget {
    Leader,
    Group,
    Tree,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// By rlimit name (`nofile`, `core`, …); `None` is unlimited. Soft and hard alike.
    pub rlimits: Vec<(String, Option<u64>)>,
    /// Bytes.
    pub memory: Option<u64>,
    pub cpus: Option<f64>,
    pub pids: Option<u64>,
}

/// So many sockets a process can be given at its start.
pub const MOST_SOCKETS: usize = 60;

/// A listening socket that the keeper opens and holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Socket {
    pub name: String,
    /// `ip:port`, `unix:/path`, `udp:ip:port`.
    pub address: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stderr {
    /// One pipe with stdout: lines stay in order.
    Joined,
    Separate,
    /// That of the node: nobody reads along.
    Inherit,
}

/// Where a job reads from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stdin {
    /// /dev/null
    #[default]
    Null,
    /// What the node was started with.
    Inherit,
    /// An input that never ends and never says anything.
    Open,
    /// Opened as the job's user; relative to its working directory.
    File(#[serde(with = "crate::text::path")] PathBuf),
}

fn yes() -> bool {
    true
}

impl Default for Stop {
    fn default() -> Stop {
        Stop {
            signal: Signal::TERM,
            to: SignalTarget::Group,
            timeout: Duration::from_secs(5),
            exec: None,
        }
    }
}

impl ExitRule {
    /// Whether the end of this job for good, well or not, is the end of the node.
    #[must_use]
    pub fn ends_with(self, job: &JobPlan, well: bool) -> bool {
        let failed = !well && job.exit_on_failure;
        match self {
            ExitRule::Main => job.main || failed,
            ExitRule::All => failed,
            ExitRule::Any => true,
            ExitRule::AnyFailure => !well,
            ExitRule::Never => false,
        }
    }
}

impl Restart {
    pub const MAX_DELAY: Duration = Duration::from_secs(30);

    #[must_use]
    pub fn on(on: RestartOn) -> Restart {
        Restart {
            on,
            delay: None,
            max_delay: Restart::MAX_DELAY,
            limit: None,
            within: None,
            from: DelayFrom::End,
        }
    }
}

impl JobPlan {
    /// How long it may take to be healthy again once it was. It is not before it is RUNNING.
    #[must_use]
    pub fn recovers_within(&self) -> Duration {
        let longest = self.checks.iter().map(Check::recovers_within).max();
        longest.unwrap_or_default().saturating_add(self.start_seconds)
    }

    /// Which of the instances of a job it is, counted from 1.
    #[must_use]
    pub fn instance(&self) -> Option<u32> {
        let number = self.name.as_str().strip_prefix(self.instance_of.as_ref()?.as_str())?;
        number.strip_prefix('-')?.parse().ok()
    }

    /// A job with every default in place.
    #[must_use]
    pub fn new(name: Name, exec: Vec<String>) -> JobPlan {
        JobPlan {
            name,
            exec,
            main: false,
            exit_on_failure: false,
            restart: Restart::on(RestartOn::Failure),
            start_seconds: Duration::ZERO,
            start_retries: None,
            exit_codes: vec![0],
            stop: Stop::default(),
            user: None,
            group: None,
            groups: None,
            cwd: None,
            env: Vec::new(),
            umask: None,
            nice: None,
            limits: Limits::default(),
            sockets: Vec::new(),
            notify: false,
            stderr: Stderr::Joined,
            session: true,
            stdin: Stdin::Null,
            tty: false,
            log: Log::default(),
            when: When::default(),
            follows: None,
            checks: Vec::new(),
            timeout: None,
            reload: None,
            autostart: true,
            app: None,
            place: Place::default(),
            instance_of: None,
            secrets: Vec::new(),
            advertise: None,
            written: None,
            definition: 0,
        }
    }
}
