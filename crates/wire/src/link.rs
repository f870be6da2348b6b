//! The link: the inherited socket pair between keeper and agent.
//!
//! One frame (see [`crate::frame`]) holds one JSON message. The agent speaks first (`Hello`), the
//! keeper answers with all that it holds (`Welcome`), followed by whatever no agent has taken yet;
//! from then on both talk freely. Nothing here is a call: what the agent asks for is answered by
//! what then happens.
//!
//! `Hello` and `Welcome` say the format of each side. A field that is not known is passed over, and
//! so is a message; one that is asked at `keeper.sock` is refused by its name.
//!
//! What must not be lost is said again to every new agent until one says that it is journaled:
//! exit records (`Ack`), results of tasks (`TaskTaken`), orders, signals and lost lines (`Taken`).

use crate::{
    format::Format,
    task::{RunTask, TaskDone, TaskKey},
};
use mainstay_core::{
    clock::Mono,
    exit::{Asked, Exit, Usage},
    job::JobSummary,
    name::Name,
    node::NodePhase,
    plan::{Limits, Log, NodeLog, SignalTarget, Socket, Stderr, Stdin},
    signal::Signal,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::PathBuf, time::Duration};

/// The lowest number of a binary whose messages this one understands.
pub const OLDEST: u32 = 3;

/// Bootstrap file descriptors of the agent.
pub const LINK_FD: i32 = 3;
/// The listening socket of the API, held by the keeper.
pub const API_FD: i32 = 4;

/// What a line of the agent's stderr begins with that is none of its log: [`NodeLog`] as JSON, which
/// holds for the lines behind it. The message says the same, but may be read after them.
pub const LOG_MARK: u8 = 0x1e;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToKeeper {
    Hello {
        #[serde(flatten)]
        format: Format,
        version: String,
    },
    /// The configuration is in force: from now on a dead agent is replaced at once.
    /// May be said again when the settings change.
    Ready {
        stop_timeout_ms: u64,
        /// The upgrades of the welcome are not in the journal yet.
        #[serde(default)]
        unjournaled: bool,
    },
    /// How lines are forwarded from now on, as far as that is not a job's affair.
    NodeLog(Box<NodeLog>),
    /// Another plan has come into force.
    Reloaded,
    Spawn(Box<Spawn>),
    /// Send the stop signal; an end that follows is `asked: stop`.
    Stop {
        job: Name,
        incarnation: u64,
        signal: Signal,
        to: SignalTarget,
    },
    /// SIGKILL to the tree; an end that follows is `asked: kill`.
    Kill {
        job: Name,
        incarnation: u64,
    },
    /// A signal that is not meant to end it.
    Signal {
        job: Name,
        incarnation: u64,
        signal: Signal,
        to: SignalTarget,
    },
    /// Move the deadline after which the keeper kills the tree by itself (CLOCK_BOOTTIME, ns).
    Extend {
        job: Name,
        incarnation: u64,
        fence_at: u64,
    },
    /// Other settings for the process that runs; one that is not there has them from its spawn.
    UpdateSettings {
        job: Name,
        settings: Box<LiveSettings>,
    },
    /// The life of the job is over, whose last incarnation this was: close its control socket.
    Rest {
        job: Name,
        incarnation: u64,
    },
    /// The job is no longer in the plan: drop its sockets, directory and cgroup once it is down.
    Forget {
        job: Name,
    },
    RunTask(Box<RunTask>),
    /// What came of this task is journaled: drop it.
    TaskTaken {
        id: TaskKey,
    },
    /// This exit record is journaled: drop it.
    Ack {
        record: u64,
    },
    /// What to remember of a job that is not to run; `None`: it is to run.
    Remember {
        job: Name,
        summary: Option<Box<JobSummary>>,
    },
    /// How far the node is: events up to this number are in the journal.
    Told(NodeSummary),
    /// `Asked` or `Signalled` with this token is in the agent's hands.
    Taken {
        token: u64,
    },
    Inspect {
        id: u64,
    },
    /// Re-execute the keeper; `None`: the binary at the path the keeper was started from.
    Upgrade {
        id: u64,
        #[serde(default, with = "mainstay_core::text::path")]
        binary: Option<PathBuf>,
    },
    /// End the run: kill what is left, exit with this code.
    Exit {
        code: i32,
        /// Do not exit: begin another run in its place, as this one was begun.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        again: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToAgent {
    Welcome(Box<Welcome>),
    Spawned {
        job: Name,
        incarnation: u64,
        pid: u32,
        tree: TreeKind,
        unenforced: Vec<String>,
    },
    Exited(ExitRecord),
    TaskDone(TaskDone),
    /// Somebody wrote to the job's control socket.
    Asked {
        token: u64,
        job: Name,
        incarnation: u64,
        request: ControlRequest,
    },
    /// The node received a signal.
    Signalled {
        token: u64,
        signal: Signal,
    },
    /// sd_notify: the assignments, the latest value of each.
    Notified {
        job: Name,
        incarnation: u64,
        fields: BTreeMap<String, String>,
    },
    /// Lines of a log are lost. Said again until it is `Taken`.
    LogGap {
        token: u64,
        job: Name,
        lines: u64,
    },
    /// A log file was closed and has this name now.
    Rotated {
        job: Name,
        #[serde(with = "mainstay_core::text::path")]
        file: PathBuf,
        compress: bool,
    },
    StrayKilled {
        pid: u32,
        command: String,
    },
    Figures {
        id: u64,
        figures: Figures,
    },
    /// The upgrade was refused; on success this agent is replaced instead.
    UpgradeFailed {
        id: u64,
        error: String,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Welcome {
    #[serde(flatten)]
    pub format: Format,
    /// Identifies this run of the node; 16 hex digits.
    pub run: String,
    #[serde(with = "mainstay_core::text::path")]
    pub run_dir: PathBuf,
    #[serde(with = "mainstay_core::text::path")]
    pub state_dir: PathBuf,
    /// How often an agent of this run was replaced.
    pub agent_restarts: u64,
    /// Upgrades of the keeper that no agent has got ready after yet, oldest first.
    pub upgraded: Vec<Upgraded>,
    pub jobs: Vec<HeldJob>,
    /// Not yet acknowledged, oldest first.
    pub records: Vec<ExitRecord>,
    /// Signals that ended the run of an agent before it could take them, oldest first.
    pub signals: Vec<(u64, Signal)>,
    /// What control sockets were asked and no agent has taken, oldest first. Each follows as
    /// `Asked` once more, for agents that do not look here.
    #[serde(default)]
    pub asked: Vec<PendingControl>,
    /// What an agent has last told of the node; `None`: none has told anything.
    #[serde(default)]
    pub told: Option<NodeSummary>,
}

/// What somebody wrote to a job's control socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingControl {
    pub token: u64,
    pub job: Name,
    pub incarnation: u64,
    pub request: ControlRequest,
}

/// What the keeper remembers of the node, for an agent that has lost its journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSummary {
    /// The number of the last event.
    pub seq: u64,
    pub phase: NodePhase,
    /// It stops, and another run is to follow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// It is not ready yet, though its jobs are: what is rolled out is not in place. That may take
    /// until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_until: Option<Mono>,
}

/// The keeper became another binary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upgraded {
    /// From 1 within a run.
    pub number: u64,
    pub from: String,
    pub to: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeldJob {
    pub job: Name,
    pub highest: u64,
    pub live: Option<LiveProcess>,
    /// Its control socket is open.
    #[serde(default)]
    pub open: bool,
    /// If it is not to run.
    #[serde(default)]
    pub summary: Option<JobSummary>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveProcess {
    pub incarnation: u64,
    pub pid: u32,
    pub tree: TreeKind,
    pub unenforced: Vec<String>,
    /// False while exec has neither succeeded nor failed.
    pub spawned: bool,
    /// What it has said by sd_notify, the latest of each.
    pub notified: BTreeMap<String, String>,
    /// `None`: the keeper does not know them any more.
    #[serde(default)]
    pub settings: Option<LiveSettings>,
}

/// What counts as the tree of a job on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TreeKind {
    Cgroup,
    Group,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ControlRequest {
    Stop,
    Kill,
    Signal(Signal),
}

/// Sent again to every new agent until one acknowledges it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExitRecord {
    pub record: u64,
    pub job: Name,
    pub incarnation: u64,
    pub exit: Exit,
    pub asked: Asked,
    /// The keeper killed it at `fence_at`.
    pub fenced: bool,
    /// Wall clock, ns since the epoch.
    pub ended: i64,
    pub cpu_user_us: u64,
    pub cpu_system_us: u64,
    pub max_rss_kib: u64,
}

impl ExitRecord {
    /// What the process had used; `None`: it never ran, or its usage was not seen. Whatever ran
    /// has had some memory.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        let ran = match self.exit {
            Exit::Code { .. } | Exit::Signal { .. } => self.max_rss_kib > 0,
            Exit::Error { .. } => false,
        };
        ran.then(|| Usage {
            cpu_user: Duration::from_micros(self.cpu_user_us),
            cpu_system: Duration::from_micros(self.cpu_system_us),
            max_rss: self.max_rss_kib.saturating_mul(1024),
        })
    }
}

/// What holds for a process and may change while it runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveSettings {
    /// Its exit code is the run's, should the keeper have to end the run without an agent.
    pub main: bool,
    pub log: Log,
    /// For a stop that the keeper has to carry out by itself.
    pub stop_signal: Signal,
    pub stop_to: SignalTarget,
    pub stop_timeout_ms: u64,
}

/// Everything needed to start one process. Names are resolved: the keeper looks nothing up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spawn {
    pub job: Name,
    pub incarnation: u64,
    pub exec: Exec,
    pub limits: Limits,
    pub sockets: Vec<Socket>,
    pub notify: bool,
    /// How often it has to say WATCHDOG=1: told as WATCHDOG_USEC.
    #[serde(default)]
    pub watchdog_us: Option<u64>,
    /// The number of a descriptor on which a newline says READY=1.
    #[serde(default)]
    pub ready_fd: Option<i32>,
    pub stderr: Stderr,
    /// A session of its own; else a process group only.
    #[serde(default = "yes")]
    pub session: bool,
    #[serde(default)]
    pub stdin: Stdin,
    /// A pseudo-terminal instead of pipes.
    #[serde(default)]
    pub tty: bool,
    pub settings: LiveSettings,
    /// CLOCK_BOOTTIME, ns; past it the keeper kills the tree.
    pub fence_at: Option<u64>,
}

fn yes() -> bool {
    true
}

/// What tasks and jobs have in common. Its texts are bytes (see `core::text::bytes`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Exec {
    pub argv: Vec<String>,
    /// On top of the environment that the keeper was started with.
    pub env: Vec<(String, String)>,
    /// Of that environment, left out.
    #[serde(default)]
    pub unset: Vec<String>,
    #[serde(default, with = "mainstay_core::text::path")]
    pub cwd: Option<PathBuf>,
    pub identity: Option<Identity>,
    pub umask: Option<u32>,
    pub nice: Option<i32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub uid: u32,
    pub gid: u32,
    pub groups: Vec<u32>,
}

/// What `status` shows of the keeper.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    pub version: String,
    pub pid: u32,
    pub strays: Vec<Stray>,
    pub logs: BTreeMap<Name, LogFigures>,
    /// Forwarded output that a stuck reader cost, in lines.
    pub forward_dropped: u64,
    /// Processes that it has started since it became this binary.
    #[serde(default)]
    pub forks: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "api", derive(schemars::JsonSchema))]
pub struct Stray {
    pub pid: u32,
    pub command: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "api", derive(schemars::JsonSchema))]
pub struct LogFigures {
    pub lines: u64,
    pub bytes: u64,
    pub dropped: u64,
}

/// What may be asked at `keeper.sock`: one frame in, one frame out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeeperRequest {
    Upgrade {
        #[serde(default, with = "mainstay_core::text::path")]
        binary: Option<PathBuf>,
    },
    Stop,
    Figures,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeeperResponse {
    Done { version: String },
    Refused { error: String },
    Figures(Figures),
}
