//! What people and programs see of a node: core's state as values of the API's model.

pub(crate) mod why;

use crate::discovery::Discovery;
use mainstay_core::{
    app::AppFailure,
    clock::Mono,
    discovery::{Backend, InstanceList},
    explain,
    job::{CheckState, Desired, Health, Job, Phase},
    name::Name,
    node::{AppSummary, Blocker, Blockers, Effect, JournalLoss, Node, NodePhase, ReloadPreview},
    plan::{self, Check, JobPlan, Plan, WatchPlan, Watched},
};
use mainstay_wire::{
    api::{
        AppDetail, AppMember, AppStatus, Change, Changes, CheckStatus, DiscoveryStatus, JobStatus,
        JournalLostStatus, PlannedStart, StartPlan, StartStage, Waiting, WatchStatus,
    },
    link::TreeKind,
    stamp::rfc3339,
};
use std::{collections::BTreeMap, time::Duration};

/// A job without checks has started when it has lived for so long.
const STARTED: Duration = Duration::from_millis(500);

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
        node: None,
        state: job.phase(),
        desired: job.desired(),
        health: job.health(),
        as_desired: job.is_as_desired() && job.health() != Health::Unhealthy,
        checks: checks(plan, job),
        pid: job.pid(),
        incarnation: job.incarnation(),
        restarts: job.restarts(),
        exit: job.last_exit().cloned(),
        usage: job.last_usage(),
        since: rfc3339(job.since()),
        waiting: waiting(blockers, plan, job),
        app: plan.app.as_ref().map(ToString::to_string),
        instance_of: plan.instance_of.clone(),
        args: job.args().to_vec(),
        tree: facts.tree,
        unenforced: facts.unenforced,
        notify: facts.notify,
        log: None,
        announced: None,
        placed: None,
        start: StartStage::default(),
    }
}

/// How far the start of a job has come. In maintenance its checks say nothing.
pub(crate) fn start_stage(node: &Node, plan: &JobPlan, job: &Job, now: Mono) -> StartStage {
    let Some(since) = job.up_since().filter(|_| job.phase() == Phase::Running) else {
        return StartStage::Waiting;
    };
    let checked = !plan.checks.is_empty() && node.phase() != NodePhase::Maintenance;
    // One with `start_seconds` has lived for them when it is RUNNING.
    let needed = if plan.start_seconds.is_zero() { STARTED } else { Duration::ZERO };
    match needed.checked_sub(now.since(since)) {
        _ if checked && job.health() == Health::Healthy => StartStage::Started,
        _ if checked => StartStage::Waiting,
        Some(left) if !left.is_zero() => StartStage::Young(left),
        Some(_) | None => StartStage::Started,
    }
}

pub(crate) fn apps(node: &Node) -> Vec<AppStatus> {
    let view = |it: AppSummary<'_>| AppStatus {
        name: it.plan.name.clone(),
        state: it.phase,
        failure: it.failure,
    };
    node.apps().map(view).collect()
}

/// An app with its jobs.
pub(crate) fn app(node: &Node, name: &str) -> Option<AppDetail> {
    let app = apps(node).into_iter().find(|it| it.name.as_str() == name)?;
    let failed: BTreeMap<Name, AppFailure> = node.failed_of_app(name).into_iter().collect();
    let member = |(plan, job): (&JobPlan, &Job)| AppMember {
        name: plan.name.clone(),
        state: explain::word(job.phase()),
        node: None,
        desired: job.desired(),
        failure: failed.get(&plan.name).copied().unwrap_or_default(),
        reason: None,
    };
    let of_app = |plan: &JobPlan| plan.app.as_ref() == Some(&app.name);
    let jobs = node.jobs().filter(|(plan, _)| of_app(plan)).map(member).collect();
    Some(AppDetail { app, jobs })
}

/// What a start of an app would do where there is no other node.
pub(crate) fn plan_start(node: &Node, app: &Name) -> Option<StartPlan> {
    let name = node.plan().app(app.as_str())?.name.clone();
    let here = Name::new(&node.plan().node.name).ok();
    let planned = |(plan, job): (&JobPlan, &Job)| {
        let disabled = job.desired() == Desired::Disabled;
        PlannedStart {
            job: plan.name.clone(),
            start_sequence: plan.place.start_sequence,
            node: here.clone().filter(|_| !disabled),
            runs: job.phase().is_up(),
            reason: disabled.then(|| "it is disabled".to_owned()),
        }
    };
    let of_app = |plan: &JobPlan| plan.app.as_ref() == Some(&name) && plan.place.start_sequence > 0;
    let mut jobs: Vec<PlannedStart> =
        node.jobs().filter(|(plan, _)| of_app(plan)).map(planned).collect();
    jobs.sort_by_key(|it| it.start_sequence);
    Some(StartPlan { app: name, jobs })
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
            state: match known.map(InstanceList::is_empty) {
                None => Health::Unknown,
                Some(false) => Health::Healthy,
                Some(true) => Health::Unhealthy,
            },
            instances: known.map_or(0, InstanceList::len),
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
        state: state.verdict(),
        since: rfc3339(state.since()),
        output: state.output().to_owned(),
    };
    checks.map(view).collect()
}

fn waiting(blockers: &Blockers<'_>, plan: &JobPlan, job: &Job) -> Vec<Waiting> {
    let view = |blocker: &Blocker| {
        let explain::Waiting { source, event, reason } = explain::waiting(&plan.name, blocker);
        Waiting { source, event, since: rfc3339(job.since()), reason }
    };
    blockers.of(plan.name.as_str()).iter().map(view).collect()
}

/// A journal that was lost, for those who ask for the status.
pub(crate) fn journal_lost(loss: &JournalLoss) -> JournalLostStatus {
    let JournalLoss { since, reason, unknown } = loss;
    let (reason, unknown) = (reason.clone(), unknown.clone());
    JournalLostStatus { since: rfc3339(*since), reason, unknown }
}

pub(crate) fn jobs(node: &Node, facts: &BTreeMap<Name, Facts>) -> Vec<JobStatus> {
    let blockers = node.blockers();
    node.jobs().map(|(plan, state)| job(&blockers, plan, state, facts.get(&plan.name))).collect()
}

pub(crate) fn changes(ReloadPreview { node, jobs, ends, .. }: &ReloadPreview) -> Changes {
    let mut changes = Changes {
        node: node.node.clone(),
        api: node.api.clone(),
        apps: node.apps,
        watches: node.watches,
        discovery: node.discovery,
        ends: *ends,
        ..Changes::default()
    };
    for job in jobs {
        let name = &job.change.job;
        let one = Change {
            job: name.clone(),
            change: job.change.change,
            keys: job.change.keys.clone(),
            effect: job.effect,
            because: job.because.as_ref().map(explain::moved_by),
            waits: job.waits.iter().map(|it| explain::blocker(name, it)).collect(),
        };
        match one.change {
            plan::Change::Added => changes.added.push(name.clone()),
            plan::Change::Removed => changes.removed.push(name.clone()),
            plan::Change::Live | plan::Change::Restart => changes.changed.push(one.clone()),
            plan::Change::Unchanged if one.effect == Effect::Keep => continue,
            plan::Change::Unchanged => {}
        }
        changes.jobs.push(one);
    }
    changes
}
