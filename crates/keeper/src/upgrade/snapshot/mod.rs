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
    upgrade::{UpgradeRequester, error::HandoverError, os_text},
};
use mainstay_core::{
    exit::{Asked, Exit},
    job::JobSummary,
    name::Name,
    plan::{Log, NodeLog, Socket},
    task::Bytes,
};
use mainstay_wire::{
    format::Format,
    link::{ExitRecord, LogFigures, NodeSummary, Upgraded},
    sse,
    state::ContainerState,
    task::{TaskDone, TaskKey},
};
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{collections::BTreeMap, os::fd::RawFd, path::PathBuf, time::Duration};

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Handover {
    format: u32,
    #[serde(default)]
    lowest: Option<u32>,
    pub(super) version: String,
    pub(super) exe: RawFd,
    #[serde(rename = "wanting")]
    pub(super) requester: Option<UpgradeRequester>,
    options: RunOptions,
    #[serde(with = "os_text")]
    state_dir: PathBuf,
    #[serde(with = "os_text")]
    run_dir: PathBuf,
    lock: RawFd,
    state_lock: Option<RawFd>,
    api: RawFd,
    socket: RawFd,
    null: RawFd,
    run: String,
    env: Vec<(String, String)>,
    /// What of the environment is no text.
    #[serde(default)]
    raw_env: Vec<(Bytes, Bytes)>,
    ignored: Vec<i32>,
    nofile: Option<(u64, u64)>,
    #[serde(default, with = "os_text::option")]
    cgroup: Option<PathBuf>,
    #[expect(clippy::vec_box, reason = "a list that is read grows, and would move them each time")]
    jobs: Vec<Box<JobSnapshot>>,
    clients: Vec<ClientSnapshot>,
    tasks: Vec<TaskSnapshot>,
    #[serde(rename = "askers")]
    keeper_clients: Vec<(u64, RawFd)>,
    #[serde(deserialize_with = "known")]
    deadlines: Vec<(u64, Deadline)>,
    records: Vec<ExitRecord>,
    #[serde(rename = "untaken", deserialize_with = "known")]
    pending_requests: Vec<(u64, PendingRequest)>,
    #[serde(default, rename = "lost")]
    log_gaps: LogGaps,
    #[serde(rename = "done")]
    outcomes: Vec<TaskDone>,
    #[serde(default)]
    told: Option<NodeSummary>,
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
    #[serde(default)]
    forward_untold: [u64; 2],
    /// Lines of our own log that nobody has written yet.
    #[serde(default)]
    notes: Vec<String>,
    /// Logs are to be rotated.
    #[serde(default)]
    rotate: bool,
    #[serde(default)]
    log: NodeLog,
    /// What is still to be forwarded into a file.
    #[serde(default)]
    forward_file: Bytes,
    #[serde(default)]
    forward_file_untold: u64,
    /// What the old image has slept on: closing that takes as long as there are jobs, and can wait
    /// until output is read again.
    #[serde(default)]
    stale: Vec<RawFd>,
    /// The run ends with its terminal.
    #[serde(default)]
    terminal: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct JobSnapshot {
    id: u64,
    name: Name,
    #[serde(with = "os_text")]
    dir: PathBuf,
    highest: u64,
    spawns: u64,
    ooms: u64,
    sockets: Vec<(Socket, RawFd)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    notify: Option<RawFd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    control: Option<RawFd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    started: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    down: Option<ContainerState>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state_error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    summary: Option<JobSummary>,
    forgotten: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    process: Option<ProcessSnapshot>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ProcessSnapshot {
    incarnation: u64,
    pid: u32,
    main: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cgroup: Option<PathBuf>,
    unenforced: Vec<String>,
    phase: PhaseSnapshot,
    asked: Asked,
    fenced: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fence_at: Option<u64>,
    stop: StopRule,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    log: Option<Log>,
    streams: Vec<u64>,
    oom_before: u64,
    notified: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    forward: Option<Box<Log>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    job: Option<Name>,
    #[serde(rename = "attempt")]
    exec_context: ExecContext,
}

#[derive(Debug, Serialize, Deserialize)]
struct StreamSnapshot {
    key: u64,
    owner: Owner,
    channel: Channel,
    log: Log,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    fd: RawFd,
    /// The job's end of a terminal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    terminal: Option<RawFd>,
    partial: Bytes,
}

/// Those of a list that this version knows: a newer one may wait for more.
fn known<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Vec<T>, D::Error> {
    let all = Vec::<Value>::deserialize(from)?;
    Ok(all.into_iter().filter_map(|one| serde_json::from_value(one).ok()).collect())
}

impl Handover {
    pub(super) fn run(&self) -> &str {
        &self.run
    }

    pub(super) fn read(bytes: &[u8]) -> Result<Handover, HandoverError> {
        // At once, as all output waits for it; what it is counts if it is not what it should be.
        let read = serde_json::from_slice::<Handover>(bytes);
        let format = match &read {
            Ok(handover) => Format { number: handover.format, lowest: handover.lowest },
            Err(_) => serde_json::from_slice(bytes).map_err(HandoverError::None)?,
        };
        match format.is_readable() {
            true => read.map_err(HandoverError::Content),
            false => Err(HandoverError::Format(format.number)),
        }
    }

    /// Everything that must stay open over the exec.
    pub(super) fn descriptors(&self) -> Vec<RawFd> {
        let mut all = vec![self.exe, self.lock, self.api, self.socket, self.null];
        all.extend(self.state_lock.iter().chain(&self.stale));
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

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT_2: &str = include_str!("../../../tests/testdata/handover-2.json");

    /// As a keeper of format 2 wrote it, with jobs, tasks and requests under way.
    #[test]
    fn what_a_keeper_of_format_2_hands_over_is_read() {
        let handover = Handover::read(FORMAT_2.as_bytes()).expect("readable");
        assert_eq!(handover.jobs.len(), 4);
        assert_eq!(handover.requester, Some(UpgradeRequester::KeeperClient(31)));
        assert_eq!((handover.pending_requests.len(), handover.deadlines.len()), (2, 5));
        let owners: Vec<_> = handover.tasks.iter().filter_map(|task| task.task.id()).collect();
        assert_eq!(owners.len(), handover.tasks.len(), "their owners are known");
        assert_eq!(handover.outcomes[0].outcome.output, "said\n");
        assert!(handover.descriptors().contains(&44));
    }

    /// What another neighbour adds is passed over; what it leaves out has a default.
    #[test]
    fn a_neighbour_is_read_both_ways() {
        let mut value: Value = serde_json::from_str(FORMAT_2).expect("JSON");
        value["format"] = 4.into();
        value["lowest"] = 3.into();
        value["mood"] = "good".into();
        value["jobs"][0]["nickname"] = "pet".into();
        let deadlines = value["deadlines"].as_array_mut().expect("a list");
        deadlines.push(serde_json::json!([5, {"Rehearse": {"play": 1}}]));
        let handover = Handover::read(value.to_string().as_bytes()).expect("readable");
        assert_eq!(handover.deadlines.len(), 5, "one of them is not known here");
        value["lowest"] = 4.into();
        let refused = Handover::read(value.to_string().as_bytes());
        assert!(matches!(refused, Err(HandoverError::Format(4))), "{refused:?}");
    }

    #[test]
    fn what_this_version_writes_says_who_can_read_it() {
        let handover = Handover::read(FORMAT_2.as_bytes()).expect("readable");
        let ours = Format::OURS;
        let written = Handover { format: ours.number, lowest: ours.lowest, ..handover };
        let bytes = serde_json::to_vec(&written).expect("JSON");
        let again = Handover::read(&bytes).expect("readable");
        assert_eq!(serde_json::to_vec(&again).expect("JSON"), bytes);
    }
}
