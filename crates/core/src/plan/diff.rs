//! What lies between two plans: which jobs are new, gone, or other than they were, and whether a
//! job has to be started anew for that.
//!
//! Every key of a job is in the table below, once: a key that is added to [`JobPlan`] does not
//! compile until somebody has decided what a reload does with it.

use super::{Check, JobPlan, Plan, Probe};
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
    /// Keys of the node.
    pub node: Vec<String>,
    /// Keys of the API.
    pub api: Vec<String>,
    /// The order of apps, or what is done about them.
    pub apps: bool,
    /// What is asked of service discovery.
    pub watches: bool,
    /// Where it is asked.
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
    let (a, b) = (&old.node, &new.node);
    let node = [
        ("name", a.name != b.name),
        ("stop_timeout", a.stop_timeout != b.stop_timeout),
        ("exit", a.exit != b.exit),
        ("log_level", a.log_level != b.log_level),
        ("machine", a.machine != b.machine),
        ("telemetry", old.telemetry != new.telemetry),
        ("containerpilot", old.containerpilot != new.containerpilot),
        ("log", old.log != new.log),
        ("fleet", old.fleet != new.fleet),
    ];
    let (a, b) = (&old.api, &new.api);
    let api = [
        ("listen", a.listen != b.listen),
        ("token_file", a.token_file != b.token_file),
        ("tls", a.tls != b.tls),
        ("insecure", a.insecure != b.insecure),
        ("socket_group", a.socket_group != b.socket_group),
        ("xmlrpc", a.xmlrpc != b.xmlrpc),
    ];
    let node = NodeDiff {
        node: named(&node),
        api: named(&api),
        apps: old.apps != new.apps,
        watches: old.watches != new.watches,
        discovery: old.discovery != new.discovery,
    };
    PlanDiff { node, jobs }
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
