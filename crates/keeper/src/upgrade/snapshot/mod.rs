//! All that a keeper holds, as text: descriptors by their numbers.
//!
//! [`describe`] makes it of a keeper, [`restore`] makes a keeper of it.

mod describe;
mod restore;

use crate::{
    RunOptions,
    event_loop::deadline::Deadline,
    link::{log_gaps::LogGaps, node::PendingRequest},
    output::{Channel, Gap, Owner},
    process::{
        exec_error::ExecContext,
        job::{Ended, StopRule},
    },
    upgrade::UpgradeRequester,
};
use mainstay_core::{
    exit::{Asked, Exit},
    name::Name,
    plan::{Log, Socket},
    task::Bytes,
};
use mainstay_wire::{
    link::{ExitRecord, FORMAT, LogFigures, Upgraded},
    sse,
    task::{TaskDone, TaskKey},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, os::fd::RawFd, path::PathBuf, time::Duration};

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Handover {
    format: u32,
    pub(super) version: String,
    pub(super) exe: RawFd,
    #[serde(rename = "wanting")]
    pub(super) requester: Option<UpgradeRequester>,
    options: RunOptions,
    state_dir: PathBuf,
    run_dir: PathBuf,
    lock: RawFd,
    state_lock: Option<RawFd>,
    api: RawFd,
    socket: RawFd,
    null: RawFd,
    run: String,
    env: Vec<(String, String)>,
    ignored: Vec<i32>,
    nofile: Option<(u64, u64)>,
    cgroup: Option<PathBuf>,
    jobs: Vec<JobSnapshot>,
    clients: Vec<ClientSnapshot>,
    tasks: Vec<TaskSnapshot>,
    #[serde(rename = "askers")]
    keeper_clients: Vec<(u64, RawFd)>,
    deadlines: Vec<(u64, Deadline)>,
    records: Vec<ExitRecord>,
    #[serde(rename = "untaken")]
    pending_requests: Vec<(u64, PendingRequest)>,
    #[serde(default, rename = "lost")]
    log_gaps: LogGaps,
    #[serde(rename = "done")]
    outcomes: Vec<TaskDone>,
    upgraded: Vec<Upgraded>,
    upgrades: u64,
    next_record: u64,
    next_token: u64,
    next_id: u64,
    next_stream: u64,
    restarts: u64,
    stop_timeout: Duration,
    main_exit: Option<i32>,
    streams: Vec<StreamSnapshot>,
    figures: BTreeMap<Name, LogFigures>,
    gaps: Vec<(Owner, Gap)>,
    forward: [Bytes; 2],
    forward_dropped: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct JobSnapshot {
    id: u64,
    name: Name,
    dir: PathBuf,
    highest: u64,
    spawns: u64,
    ooms: u64,
    sockets: Vec<(Socket, RawFd)>,
    notify: Option<RawFd>,
    control: Option<RawFd>,
    state_error: Option<String>,
    forgotten: bool,
    process: Option<ProcessSnapshot>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ProcessSnapshot {
    incarnation: u64,
    pid: u32,
    main: bool,
    cgroup: Option<PathBuf>,
    unenforced: Vec<String>,
    phase: PhaseSnapshot,
    asked: Asked,
    fenced: bool,
    fence_at: Option<u64>,
    stop: StopRule,
    #[serde(default)]
    log: Option<Log>,
    streams: Vec<u64>,
    oom_before: u64,
    notified: BTreeMap<String, String>,
    #[serde(default)]
    ready: Option<RawFd>,
    #[serde(rename = "attempt")]
    exec_context: ExecContext,
}

#[derive(Debug, Serialize, Deserialize)]
enum PhaseSnapshot {
    Execing { failure: RawFd },
    Failed { exit: Exit },
    Up,
    Clearing { ended: Ended },
}

#[derive(Debug, Serialize, Deserialize)]
struct ClientSnapshot {
    id: u64,
    job: u64,
    fd: RawFd,
    decoder: sse::SseDecoder,
    unsent: Bytes,
    newest: Option<Bytes>,
    deaf: bool,
    leaving: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct TaskSnapshot {
    id: u64,
    task: TaskKey,
    #[serde(default)]
    ends_with: Option<(Name, u64)>,
    pid: u32,
    #[serde(default)]
    cgroup: Option<PathBuf>,
    failure: Option<RawFd>,
    pipe: Option<RawFd>,
    output: Bytes,
    truncated: bool,
    timed_out: bool,
    #[serde(rename = "attempt")]
    exec_context: ExecContext,
}

#[derive(Debug, Serialize, Deserialize)]
struct StreamSnapshot {
    key: u64,
    owner: Owner,
    channel: Channel,
    log: Log,
    fd: RawFd,
    /// The job's end of a terminal.
    #[serde(default)]
    terminal: Option<RawFd>,
    partial: Bytes,
}

impl Handover {
    pub(super) fn run(&self) -> &str {
        &self.run
    }

    pub(super) fn read(bytes: &[u8]) -> Result<Handover, String> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let found: Format = serde_json::from_slice(bytes)
            .map_err(|error| format!("it is not a keeper's state: {error}"))?;
        if found.format != FORMAT {
            return Err(format!("its format is {}, and this binary reads {FORMAT}", found.format));
        }
        serde_json::from_slice(bytes).map_err(|error| format!("its state cannot be read: {error}"))
    }

    /// Everything that must stay open over the exec.
    pub(super) fn descriptors(&self) -> Vec<RawFd> {
        let mut all = vec![self.exe, self.lock, self.api, self.socket, self.null];
        all.extend(self.state_lock);
        for job in &self.jobs {
            all.extend(job.sockets.iter().map(|(_, fd)| *fd));
            all.extend(job.notify.iter().chain(&job.control));
            if let Some(process) = &job.process {
                all.extend(process.ready);
                if let PhaseSnapshot::Execing { failure } = &process.phase {
                    all.push(*failure);
                }
            }
        }
        all.extend(self.clients.iter().map(|client| client.fd));
        all.extend(self.tasks.iter().flat_map(|task| task.failure.iter().chain(&task.pipe)));
        all.extend(self.keeper_clients.iter().map(|(_, fd)| *fd));
        all.extend(self.streams.iter().flat_map(|it| std::iter::once(it.fd).chain(it.terminal)));
        all
    }
}
