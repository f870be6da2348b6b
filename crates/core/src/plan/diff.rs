//! What lies between two plans: which jobs are new, gone, or other than they were, and whether a
//! job has to be started anew for that.
//!
//! Every key is in the tables below, once: one that is added to a plan does not compile until
//! somebody has decided what a reload does with it, or by which name it is told.

use super::{ApiPlan, Check, JobPlan, NodePlan, Plan, Probe};
use crate::name::Name;
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanDiff {
    pub node: NodeDiff,
    /// In the order of the new plan; those that are gone follow.
    pub jobs: Vec<JobChange>,
}

/// What differs beside the jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeDiff {
    /// Keys of the node, and tables that are its own.
    pub node: Vec<String>,
    /// Keys of the API.
    pub api: Vec<String>,
    /// The order of apps, or what is done about them.
    pub apps: bool,
    /// The watches.
    pub watches: bool,
    /// The catalogue of service discovery.
    pub discovery: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobChange {
    pub job: Name,
    pub change: Change,
    /// The keys that differ.
    pub keys: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    Added,
    Removed,
    Unchanged,
    /// Can be applied to what runs.
    Live,
    /// Only a new process can have it.
    Restart,
}

#[must_use]
pub fn diff(old: &Plan, new: &Plan) -> PlanDiff {
    let before: BTreeMap<&Name, &JobPlan> =
        old.jobs.iter().map(|job| (&job.name, job.as_ref())).collect();
    let kept: BTreeSet<&Name> = new.jobs.iter().map(|job| &job.name).collect();
    let compare = |job: &JobPlan| match before.get(&job.name) {
        Some(before) => diff_job(before, job),
        None => whole(job, Change::Added),
    };
    let gone = old.jobs.iter().filter(|job| !kept.contains(&job.name));
    let gone = gone.map(|job| whole(job, Change::Removed));
    let jobs = new.jobs.iter().map(|job| compare(job)).chain(gone).collect();
    PlanDiff { node: diff_node(old, new), jobs }
}

/// What differs beside the jobs.
fn diff_node(old: &Plan, new: &Plan) -> NodeDiff {
    let Plan {
        node: NodePlan { name, stop_timeout, exit, log_level, machine },
        jobs: _,
        apps,
        watches,
        discovery,
        api: ApiPlan { listen, token_file, tls, insecure, socket_group, xmlrpc },
        telemetry,
        containerpilot,
        log,
        fleet,
        rollout,
    } = old;
    let node = [
        ("name", *name != new.node.name),
        ("stop_timeout", *stop_timeout != new.node.stop_timeout),
        ("exit", *exit != new.node.exit),
        ("machine", *machine != new.node.machine),
        ("telemetry", *telemetry != new.telemetry),
        ("containerpilot", *containerpilot != new.containerpilot),
        ("log", *log != new.log || *log_level != new.node.log_level),
        ("fleet", *fleet != new.fleet),
        ("rollout", *rollout != new.rollout),
    ];
    let api = [
        ("listen", *listen != new.api.listen),
        ("token_file", *token_file != new.api.token_file),
        ("tls", *tls != new.api.tls),
        ("insecure", *insecure != new.api.insecure),
        ("socket_group", *socket_group != new.api.socket_group),
        ("xmlrpc", *xmlrpc != new.api.xmlrpc),
    ];
    NodeDiff {
        node: named(&node),
        api: named(&api),
        apps: *apps != new.apps,
        watches: *watches != new.watches,
        discovery: *discovery != new.discovery,
    }
}

fn whole(job: &JobPlan, change: Change) -> JobChange {
    JobChange { job: job.name.clone(), change, keys: Vec::new() }
}

/// What differs in one job.
pub(crate) fn diff_job(old: &JobPlan, new: &JobPlan) -> JobChange {
    let JobPlan {
        name,
        exec,
        main,
        exit_on_failure,
        restart,
        start_seconds,
        start_retries,
        exit_codes,
        stop,
        user,
        group,
        groups,
        cwd,
        env,
        umask,
        nice,
        limits,
        sockets,
        notify,
        stderr,
        session,
        stdin,
        tty,
        log,
        when,
        follows,
        checks,
        timeout,
        reload,
        autostart,
        app,
        place,
        instance_of,
        secrets,
        advertise,
        // Lines that moved change nothing, nor does another way to write the same.
        written: _,
        definition: _,
    } = old;
    let anew = named(&[
        ("exec", *exec != new.exec),
        ("user", *user != new.user),
        ("group", *group != new.group),
        ("groups", *groups != new.groups),
        ("cwd", *cwd != new.cwd),
        ("env", *env != new.env),
        ("umask", *umask != new.umask),
        ("nice", *nice != new.nice),
        ("limits", *limits != new.limits),
        ("sockets", *sockets != new.sockets),
        ("notify", *notify != new.notify),
        ("stderr", *stderr != new.stderr),
        ("session", *session != new.session),
        ("stdin", *stdin != new.stdin),
        ("tty", *tty != new.tty),
        // What the job has to be given when it starts.
        ("health", channels(checks) != channels(&new.checks)),
    ]);
    let live = named(&[
        ("main", *main != new.main),
        ("exit_on_failure", *exit_on_failure != new.exit_on_failure),
        ("restart", *restart != new.restart),
        ("start_seconds", *start_seconds != new.start_seconds),
        ("start_retries", *start_retries != new.start_retries),
        ("exit_codes", *exit_codes != new.exit_codes),
        ("stop", *stop != new.stop),
        ("log", *log != new.log),
        ("when", *when != new.when),
        ("while", *follows != new.follows),
        ("health", *checks != new.checks && channels(checks) == channels(&new.checks)),
        ("timeout", *timeout != new.timeout),
        ("reload", *reload != new.reload),
        ("autostart", *autostart != new.autostart),
        ("app", *app != new.app),
        ("place", *place != new.place),
        ("instances", *instance_of != new.instance_of),
        ("secrets", *secrets != new.secrets),
        ("advertise", *advertise != new.advertise),
    ]);
    let change = match (anew.is_empty(), live.is_empty()) {
        (false, _) => Change::Restart,
        (true, false) => Change::Live,
        (true, true) => Change::Unchanged,
    };
    JobChange { job: name.clone(), change, keys: anew.into_iter().chain(live).collect() }
}

/// Descriptors and sockets by which a job tells about itself, and what it is told about them.
fn channels(checks: &[Check]) -> Vec<(Option<u32>, Option<Duration>)> {
    let channel = |check: &Check| match &check.probe {
        Probe::Notify => Some((None, check.watchdog)),
        Probe::Fd(fd) => Some((Some(*fd), None)),
        Probe::Exec(_) | Probe::Http(_) | Probe::Tcp(_) => None,
    };
    checks.iter().filter_map(channel).collect()
}

fn named(keys: &[(&str, bool)]) -> Vec<String> {
    keys.iter().filter(|(_, differs)| *differs).map(|(key, _)| (*key).to_owned()).collect()
}
