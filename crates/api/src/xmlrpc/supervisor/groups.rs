//! Groups and the names of processes in them: `name`, `group:name`, `group:*`.

use crate::xmlrpc::fault::{Code, Fault};
use mainstay_core::plan::JobPlan;
use mainstay_wire::api::JobStatus;

/// What a name stands for.
#[derive(Debug, PartialEq)]
pub(crate) enum Named<'a> {
    Process(&'a JobStatus),
    Group(&'a str),
}

/// The group of a job: its app, else the name that instances share, else its own.
pub(crate) fn group(job: &JobStatus) -> &str {
    let instances = job.instance_of.as_ref().map(|name| name.as_str());
    job.app.as_deref().or(instances).unwrap_or(job.name.as_str())
}

/// As [`group`], of a job in the configuration.
pub(super) fn planned_group(job: &JobPlan) -> &str {
    let of = job.app.as_ref().or(job.instance_of.as_ref());
    of.unwrap_or(&job.name).as_str()
}

/// As `supervisorctl` writes it.
pub(super) fn namespec(job: &JobStatus) -> String {
    match group(job) {
        group if group == job.name.as_str() => group.to_owned(),
        group => format!("{group}:{}", job.name),
    }
}

/// Those of a group, in the order of the configuration.
pub(super) fn of_group<'a>(jobs: &'a [JobStatus], name: &str) -> Result<Vec<&'a JobStatus>, Fault> {
    let found: Vec<&JobStatus> = jobs.iter().filter(|job| group(job) == name).collect();
    match found.is_empty() {
        true => Err(Fault::about(Code::BadName, name)),
        false => Ok(found),
    }
}

pub(super) fn named<'a>(jobs: &'a [JobStatus], name: &'a str) -> Result<Named<'a>, Fault> {
    let bad = || Fault::about(Code::BadName, name);
    let (of, process) = name.split_once(':').unwrap_or((name, name));
    if matches!(process, "" | "*") {
        let known = jobs.iter().any(|job| group(job) == of);
        return known.then_some(Named::Group(of)).ok_or_else(bad);
    }
    let found = jobs.iter().find(|job| group(job) == of && job.name.as_str() == process);
    found.map(Named::Process).ok_or_else(bad)
}

/// A process, not a group.
pub(crate) fn process<'a>(jobs: &'a [JobStatus], name: &'a str) -> Result<&'a JobStatus, Fault> {
    match named(jobs, name)? {
        Named::Process(job) => Ok(job),
        Named::Group(_) => Err(Fault::about(Code::BadName, name)),
    }
}
