//! What people and programs see of a node: the JSON of `status` and `events`.

use jiff::Timestamp;
use mainstay_core::{
    event::{Event, Kind, Source},
    exit::Exit,
    job::{Desired, Health, Job, Phase},
    name::Name,
    node::{Node, NodePhase},
};
use mainstay_wire::link::{LogFigures, Stray, Tree};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::PathBuf};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    pub node: String,
    pub version: String,
    pub state: NodePhase,
    /// Identifies this run of the node.
    pub run: String,
    pub run_dir: PathBuf,
    pub state_dir: PathBuf,
    pub agent_restarts: u64,
    /// `None`: the keeper did not answer in time.
    pub keeper: Option<Keeper>,
    pub jobs: Vec<JobStatus>,
    pub watches: Vec<serde_json::Value>,
    pub fleet: Option<serde_json::Value>,
    pub rollout: Option<serde_json::Value>,
    /// Processes of this node that belong to no job; `None` as for `keeper`.
    pub strays: Option<Vec<Stray>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Keeper {
    pub version: String,
    pub pid: u32,
    /// Lines that a stuck reader of the forwarded output cost.
    pub forward_dropped: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobStatus {
    pub name: Name,
    pub state: Phase,
    pub desired: Desired,
    pub health: Health,
    pub checks: Vec<serde_json::Value>,
    pub pid: Option<u32>,
    pub incarnation: u64,
    pub restarts: u64,
    /// How the latest run ended.
    pub exit: Option<Exit>,
    /// Was that end one that the plan expects?
    pub exit_expected: Option<bool>,
    /// When it entered its state.
    pub since: String,
    pub waiting: Vec<serde_json::Value>,
    pub app: Option<String>,
    pub args: Vec<String>,
    pub tree: Option<Tree>,
    /// Limits that this machine cannot enforce.
    pub unenforced: Vec<String>,
    /// The latest of what it said by sd_notify.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub notify: BTreeMap<String, String>,
    pub log: Option<LogFigures>,
}

/// What the agent knows of a job beyond what is decided about it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    pub(crate) incarnation: u64,
    pub(crate) tree: Option<Tree>,
    pub(crate) unenforced: Vec<String>,
    pub(crate) notify: BTreeMap<String, String>,
}

pub(crate) fn job(name: &Name, exit_codes: &[i32], job: &Job, facts: Option<&Facts>) -> JobStatus {
    let facts = facts.cloned().unwrap_or_default();
    let exit = job.last_exit().cloned();
    JobStatus {
        name: name.clone(),
        state: job.phase(),
        desired: job.desired(),
        health: job.health(),
        checks: Vec::new(),
        pid: job.pid(),
        incarnation: job.incarnation(),
        restarts: job.restarts(),
        exit_expected: exit.as_ref().map(|exit| expected(exit, exit_codes)),
        exit,
        since: time(job.since()),
        waiting: Vec::new(),
        app: None,
        args: Vec::new(),
        tree: facts.tree,
        unenforced: facts.unenforced,
        notify: facts.notify,
        log: None,
    }
}

pub(crate) fn jobs(node: &Node, facts: &BTreeMap<Name, Facts>) -> Vec<JobStatus> {
    node.jobs()
        .map(|(plan, state)| job(&plan.name, &plan.exit_codes, state, facts.get(&plan.name)))
        .collect()
}

fn expected(exit: &Exit, codes: &[i32]) -> bool {
    matches!(exit, Exit::Code { code } if codes.contains(code))
}

/// RFC 3339, UTC, microseconds.
#[must_use]
pub fn time(wall: i64) -> String {
    Timestamp::from_nanosecond(wall.into())
        .map_or_else(|_| wall.to_string(), |time| format!("{time:.6}"))
}

/// An event as it is written: `{"seq","time","source","event","detail"}`.
#[derive(Debug, Serialize)]
pub struct EventView<'a> {
    seq: u64,
    time: String,
    source: &'a Source,
    #[serde(flatten)]
    kind: &'a Kind,
}

impl<'a> From<&'a Event> for EventView<'a> {
    fn from(event: &'a Event) -> EventView<'a> {
        EventView {
            seq: event.seq,
            time: time(event.time),
            source: &event.source,
            kind: &event.kind,
        }
    }
}
