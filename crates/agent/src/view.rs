//! What people and programs see of a node: the JSON of `status` and `events`.

use crate::discovery::{Announced, Discovery};
use mainstay_core::{
    clock::Now,
    discovery::Backend,
    event::{Event, Kind, Source},
    exit::Exit,
    job::{CheckState, Desired, Health, Job, Phase, Verdict},
    name::Name,
    node::{self, Blockers, Effect, JobPreview, Node, NodePhase, Refusal, ReloadPreview},
    plan::{self, Check, JobChange, JobPlan, Plan, WatchPlan, Watched, diff},
};
use mainstay_wire::{
    link::{LogFigures, Stray, TreeKind},
    stamp::rfc3339,
};
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
    /// Where telemetry is shown, if the plan says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<Door>,
    /// The socket that speaks as ContainerPilot's does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containerpilot: Option<Door>,
    pub watches: Vec<WatchStatus>,
    /// `None`: not configured.
    #[serde(default)]
    pub discovery: Option<DiscoveryStatus>,
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

/// Something that is open to others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Door {
    /// An address or a path.
    pub at: String,
    /// Why it is not open; it is tried again.
    pub error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobStatus {
    pub name: Name,
    pub state: Phase,
    pub desired: Desired,
    pub health: Health,
    /// It runs as it should and no check speaks against it, or it rests and its last run ended as
    /// it should.
    pub as_desired: bool,
    pub checks: Vec<CheckStatus>,
    pub pid: Option<u32>,
    pub incarnation: u64,
    pub restarts: u64,
    /// How the latest run ended.
    pub exit: Option<Exit>,
    /// When it entered its state.
    pub since: String,
    pub waiting: Vec<Waiting>,
    pub app: Option<String>,
    /// The job in the file that it is an instance of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_of: Option<Name>,
    pub args: Vec<String>,
    pub tree: Option<TreeKind>,
    /// Limits that this machine cannot enforce.
    pub unenforced: Vec<String>,
    /// The latest of what it said by sd_notify.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub notify: BTreeMap<String, String>,
    pub log: Option<LogFigures>,
    /// What others are told about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announced: Option<Announced>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiscoveryStatus {
    /// consul or file.
    pub engine: String,
    /// Where it is.
    pub address: String,
    /// What does not work now, if anything; jobs go on meanwhile.
    pub trouble: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchStatus {
    pub name: Name,
    /// The service or file.
    pub of: String,
    /// unknown before the first answer, then healthy or unhealthy.
    pub state: Health,
    pub instances: usize,
    /// When they last changed.
    pub since: Option<String>,
    pub trouble: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckStatus {
    pub name: String,
    /// passing, failing, or unknown: not answered often enough yet.
    pub state: String,
    pub since: String,
    /// What it said last.
    pub output: String,
}

impl JobStatus {
    /// It has ended, as it should.
    #[must_use]
    pub fn ended_well(&self) -> bool {
        self.state == Phase::Exited && self.as_desired
    }
}

/// One thing that a job waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    pub source: String,
    pub event: String,
    pub since: String,
    /// Why it can never come, if so.
    pub reason: Option<String>,
}

/// What applying a plan changes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Changes {
    pub added: Vec<Name>,
    pub removed: Vec<Name>,
    pub changed: Vec<Change>,
    /// Every job that is touched: those above, and those that are the same and follow another one,
    /// run because it stops, or have waited for it.
    #[serde(default)]
    pub jobs: Vec<Change>,
    /// Nothing is left to run for: the node ends.
    #[serde(default)]
    pub ends: bool,
    /// Keys of the node that differ.
    pub node: Vec<String>,
    /// Keys of the API that differ.
    #[serde(default)]
    pub api: Vec<String>,
    /// The apps themselves differ.
    pub apps: bool,
    /// Of the configuration, ready to be printed.
    #[serde(default)]
    pub warnings: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    pub job: Name,
    pub change: plan::Change,
    pub keys: Vec<String>,
    /// What becomes of the job, if all goes well.
    pub effect: Effect,
    /// What moves it, if not its own change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// What it will wait for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<String>,
}

/// Why a job is as it is, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Why {
    pub job: Name,
    /// Five at most.
    pub lines: Vec<String>,
}

/// What the agent knows of a job beyond what is decided about it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    pub(crate) incarnation: u64,
    pub(crate) tree: Option<TreeKind>,
    pub(crate) unenforced: Vec<String>,
    pub(crate) notify: BTreeMap<String, String>,
}

pub(crate) fn job(
    blockers: &Blockers<'_>,
    plan: &JobPlan,
    job: &Job,
    facts: Option<&Facts>,
) -> JobStatus {
    let facts = facts.cloned().unwrap_or_default();
    JobStatus {
        name: plan.name.clone(),
        state: job.phase(),
        desired: job.desired(),
        health: job.health(),
        as_desired: job.is_as_desired() && job.health() != Health::Unhealthy,
        checks: checks(plan, job),
        pid: job.pid(),
        incarnation: job.incarnation(),
        restarts: job.restarts(),
        exit: job.last_exit().cloned(),
        since: rfc3339(job.since()),
        waiting: blockers.waiting(plan.name.as_str()).into_iter().map(Waiting::from).collect(),
        app: plan.app.as_ref().map(ToString::to_string),
        instance_of: plan.instance_of.clone(),
        args: job.args().to_vec(),
        tree: facts.tree,
        unenforced: facts.unenforced,
        notify: facts.notify,
        log: None,
        announced: None,
    }
}

pub(crate) fn watches(node: &Node, discovery: &Discovery) -> Vec<WatchStatus> {
    let view = |plan: &WatchPlan| {
        let state = node.watch(plan.name.as_str());
        let known = state.and_then(|state| state.instances());
        WatchStatus {
            name: plan.name.clone(),
            of: match &plan.of {
                Watched::Service { service, .. } => service.clone(),
                Watched::File(path) => path.display().to_string(),
            },
            state: match known.map(|all| all.is_empty()) {
                None => Health::Unknown,
                Some(false) => Health::Healthy,
                Some(true) => Health::Unhealthy,
            },
            instances: known.map_or(0, |all| all.len()),
            since: state.filter(|_| known.is_some()).map(|state| rfc3339(state.since())),
            trouble: discovery.watch_trouble(&plan.name).map(str::to_owned),
        }
    };
    node.plan().watches.iter().map(view).collect()
}

pub(crate) fn discovery(plan: &Plan, discovery: &Discovery) -> Option<DiscoveryStatus> {
    let (engine, address) = match plan.discovery.as_ref()? {
        Backend::Consul(consul) => ("consul", consul.address.clone()),
        Backend::File(file) => ("file", file.directory.display().to_string()),
    };
    let trouble = discovery.trouble().map(str::to_owned);
    Some(DiscoveryStatus { engine: engine.to_owned(), address, trouble })
}

fn checks(plan: &JobPlan, job: &Job) -> Vec<CheckStatus> {
    let checks = plan.checks.iter().zip(job.checks());
    let view = |(check, state): (&Check, &CheckState)| CheckStatus {
        name: check.name.clone(),
        state: match state.verdict() {
            Verdict::Unknown => "unknown",
            Verdict::Passing => "passing",
            Verdict::Failing => "failing",
        }
        .to_owned(),
        since: rfc3339(state.since()),
        output: state.output().to_owned(),
    };
    checks.map(view).collect()
}

impl From<node::Waiting> for Waiting {
    fn from(waiting: node::Waiting) -> Waiting {
        let node::Waiting { source, event, since, reason } = waiting;
        Waiting { source, event, since: rfc3339(since), reason }
    }
}

pub(crate) fn jobs(node: &Node, facts: &BTreeMap<Name, Facts>) -> Vec<JobStatus> {
    let blockers = node.blockers();
    node.jobs().map(|(plan, state)| job(&blockers, plan, state, facts.get(&plan.name))).collect()
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
            time: rfc3339(event.time),
            source: &event.source,
            kind: &event.kind,
        }
    }
}

pub(crate) fn changes(node: &Node, now: Now, plan: &Plan) -> Result<Changes, Refusal> {
    let whole = diff(node.plan(), plan);
    let ReloadPreview { jobs, ends } = node.preview(now, plan)?;
    let mut changes =
        Changes { node: whole.node, api: whole.api, apps: whole.apps, ends, ..Changes::default() };
    for JobPreview { change: JobChange { job, change, keys }, effect, because, waits } in jobs {
        let waits = waits.iter().map(awaited).collect();
        let one = Change { job: job.clone(), change, keys, effect, because, waits };
        match change {
            plan::Change::Added => changes.added.push(job),
            plan::Change::Removed => changes.removed.push(job),
            plan::Change::Live | plan::Change::Restart => changes.changed.push(one.clone()),
            plan::Change::Unchanged if effect == Effect::Keep => continue,
            plan::Change::Unchanged => {}
        }
        changes.jobs.push(one);
    }
    Ok(changes)
}

fn awaited(waiting: &node::Waiting) -> String {
    let node::Waiting { source, event, reason, .. } = waiting;
    let never = reason.as_ref().map(|reason| format!(", which can never come: {reason}"));
    format!("{source} {event}{}", never.unwrap_or_default())
}
