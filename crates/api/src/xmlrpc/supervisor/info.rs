//! How a process is, in Supervisor's words.

use super::{Supervisor, groups, program};
use crate::xmlrpc::{fault::Fault, value::XmlValue};
use jiff::{Timestamp, tz::TimeZone};
use mainstay_core::{
    exit::Exit,
    job::{Desired, Phase},
    plan::{FileFormat, JobPlan, Plan, Stderr},
};
use mainstay_wire::api::JobStatus;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

const ENOENT: i32 = 2;
const EACCES: i32 = 13;

impl Supervisor {
    pub(super) async fn info(&self, jobs: &[JobStatus], name: &str) -> Result<XmlValue, Fault> {
        let job = groups::process(jobs, name)?;
        let plan = self.job_plan(&job.name).await?;
        Ok(self.process(job, plan.as_deref(), Timestamp::now()))
    }

    /// In the order of their names.
    pub(super) async fn all_info(&self, jobs: &[JobStatus]) -> Result<XmlValue, Fault> {
        let Plan { jobs: plans, .. } = self.state.handle.plan().await?;
        let plans: BTreeMap<&str, &Arc<JobPlan>> =
            plans.iter().map(|plan| (plan.name.as_str(), plan)).collect();
        let mut sorted: Vec<&JobStatus> = jobs.iter().collect();
        sorted.sort_by(|a, b| (groups::group(a), &a.name).cmp(&(groups::group(b), &b.name)));
        let now = Timestamp::now();
        let one = |job: &&JobStatus| {
            let plan = plans.get(job.name.as_str()).map(|plan| plan.as_ref());
            self.process(job, plan, now)
        };
        Ok(XmlValue::Array(sorted.iter().map(one).collect()))
    }

    /// As [`Supervisor::all_info`], with what Supvisors adds to it.
    pub(crate) async fn all_local_info(&self, jobs: &[JobStatus]) -> Result<Vec<XmlValue>, Fault> {
        let plan = self.state.handle.plan().await?;
        let mut sorted: Vec<&JobStatus> = jobs.iter().collect();
        sorted.sort_by(|a, b| (groups::group(a), &a.name).cmp(&(groups::group(b), &b.name)));
        let now = Timestamp::now();
        let one = |job: &JobStatus| {
            let planned = plan.job(job.name.as_str());
            let whole = self.process(job, planned, now);
            local(whole, job, planned)
        };
        Ok(sorted.into_iter().map(one).collect())
    }

    fn process(&self, job: &JobStatus, plan: Option<&JobPlan>, now: Timestamp) -> XmlValue {
        let times = Times::of(job, plan, now);
        let spawn_error = spawn_error(job, plan);
        let (code, word) = state_word(job.state);
        let (stdout, stderr) = plan.map(|plan| self.log_files(plan)).unwrap_or_default();
        let description = describe(job, &times, &spawn_error);
        XmlValue::pairs([
            ("name", XmlValue::text(job.name.as_str())),
            ("group", XmlValue::text(groups::group(job))),
            ("start", XmlValue::int(times.start)),
            ("stop", XmlValue::int(times.stop)),
            ("now", XmlValue::int(times.now)),
            ("state", XmlValue::Int(code)),
            ("statename", XmlValue::text(word)),
            ("spawnerr", XmlValue::Text(spawn_error)),
            ("exitstatus", XmlValue::int(exit_status(job))),
            ("logfile", XmlValue::text(stdout.as_str())),
            ("stdout_logfile", XmlValue::Text(stdout)),
            ("stderr_logfile", XmlValue::Text(stderr)),
            ("pid", XmlValue::int(i64::from(job.pid.unwrap_or(0)))),
            ("description", XmlValue::Text(description)),
        ])
    }

    /// The files of a job for stdout and stderr; empty: it has none.
    pub(super) fn log_files(&self, plan: &JobPlan) -> (String, String) {
        if plan.log.file == FileFormat::None {
            return (String::new(), String::new());
        }
        let file = self.logs().join(plan.name.as_str()).join("current").display().to_string();
        match plan.stderr {
            Stderr::Separate => (file.clone(), file),
            Stderr::Joined | Stderr::Inherit => (file, String::new()),
        }
    }
}

/// What Supvisors wants to know of a process of its own node.
fn local(info: XmlValue, job: &JobStatus, plan: Option<&JobPlan>) -> XmlValue {
    let XmlValue::Struct(mut members) = info else { return info };
    let seconds = |time: Duration| XmlValue::int(i64::try_from(time.as_secs()).unwrap_or(i64::MAX));
    let program = job.instance_of.as_ref().unwrap_or(&job.name);
    let number = job.name.as_str().strip_prefix(program.as_str());
    let number = number.and_then(|it| it.trim_start_matches('-').parse::<i64>().ok());
    let failed = job.state == Phase::Fatal || (job.state == Phase::Exited && !job.ended_well());
    let more = [
        ("expected", XmlValue::Bool(!failed)),
        ("extra_args", XmlValue::Text(job.args.join(" "))),
        ("disabled", XmlValue::Bool(job.desired == Desired::Disabled)),
        ("program_name", XmlValue::text(program.as_str())),
        ("process_index", XmlValue::int(number.map_or(0, |number| number - 1))),
        ("startsecs", seconds(plan.map_or(Duration::ZERO, |plan| plan.start_seconds))),
        ("stopwaitsecs", seconds(plan.map_or(Duration::ZERO, |plan| plan.stop.timeout))),
        ("has_stdout", XmlValue::Bool(plan.is_some_and(|it| it.log.file != FileFormat::None))),
        ("has_stderr", XmlValue::Bool(plan.is_some_and(|it| it.stderr == Stderr::Separate))),
    ];
    members.extend(more.map(|(name, value)| (name.to_owned(), value)));
    XmlValue::Struct(members)
}

/// In seconds since the epoch; 0: never.
struct Times {
    start: i64,
    stop: i64,
    now: i64,
}

impl Times {
    /// One that runs has been in its state since `start_seconds` after its start. When one that
    /// does not run was started is not known any more: then it is the time of its end.
    fn of(job: &JobStatus, plan: Option<&JobPlan>, now: Timestamp) -> Times {
        let now = now.as_second();
        let since = job.since.parse::<Timestamp>().map_or(0, Timestamp::as_second);
        let young = plan.map_or(Duration::ZERO, |plan| plan.start_seconds);
        let young = i64::try_from(young.as_secs()).unwrap_or(0);
        let (start, stop) = match job.state {
            _ if job.incarnation == 0 => (0, 0),
            Phase::Running => (since - young, 0),
            Phase::Starting => (since, 0),
            Phase::Stopping => (since, 0),
            Phase::Backoff | Phase::Stopped | Phase::Exited | Phase::Fatal | Phase::Unknown => {
                (since, since)
            }
        };
        Times { start, stop, now }
    }
}

/// A state as Supervisor numbers and calls it.
pub(crate) fn state_word(phase: Phase) -> (i32, &'static str) {
    match phase {
        Phase::Stopped => (0, "STOPPED"),
        Phase::Starting => (10, "STARTING"),
        Phase::Running => (20, "RUNNING"),
        Phase::Backoff => (30, "BACKOFF"),
        Phase::Stopping => (40, "STOPPING"),
        Phase::Exited => (100, "EXITED"),
        Phase::Fatal => (200, "FATAL"),
        Phase::Unknown => (1000, "UNKNOWN"),
    }
}

/// Of a run that has ended as such: one that was too short, or runs, has none.
fn exit_status(job: &JobStatus) -> i64 {
    match (job.state, &job.exit) {
        (Phase::Stopped | Phase::Exited, Some(Exit::Code { code })) => i64::from(*code),
        (Phase::Stopped | Phase::Exited, Some(Exit::Signal { .. })) => -1,
        _ => 0,
    }
}

fn spawn_error(job: &JobStatus, plan: Option<&JobPlan>) -> String {
    if !matches!(job.state, Phase::Backoff | Phase::Fatal) {
        return String::new();
    }
    let program = plan.and_then(|plan| plan.exec.first()).map_or("", String::as_str);
    match &job.exit {
        None => String::new(),
        Some(Exit::Error { errno: ENOENT, .. }) => program::not_found(program),
        Some(Exit::Error { errno: EACCES, .. }) => program::not_executable(program),
        Some(Exit::Error { error, .. }) => error.clone(),
        Some(_) if plan.is_some_and(|plan| !plan.start_seconds.is_zero()) => {
            "Exited too quickly (process log may have details)".to_owned()
        }
        Some(exit @ (Exit::Code { .. } | Exit::Signal { .. })) => exit.to_string(),
    }
}

fn describe(job: &JobStatus, times: &Times, spawn_error: &str) -> String {
    match job.state {
        Phase::Running => {
            let pid = job.pid.unwrap_or(0);
            format!("pid {pid}, uptime {}", uptime(times.now - times.start))
        }
        Phase::Backoff | Phase::Fatal if spawn_error.is_empty() => {
            format!("unknown error (try \"tail {}\")", job.name)
        }
        Phase::Backoff | Phase::Fatal => spawn_error.to_owned(),
        Phase::Stopped | Phase::Exited if times.start == 0 => "Not started".to_owned(),
        Phase::Stopped | Phase::Exited => local_time(times.stop),
        Phase::Starting | Phase::Stopping | Phase::Unknown => String::new(),
    }
}

/// `1 day, 2:03:04`
fn uptime(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let clock = format!("{}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60);
    match days {
        0 => clock,
        1 => format!("1 day, {clock}"),
        days => format!("{days} days, {clock}"),
    }
}

/// `Nov 16 07:41 PM`
fn local_time(seconds: i64) -> String {
    let time = Timestamp::from_second(seconds).unwrap_or_default();
    time.to_zoned(TimeZone::system()).strftime("%b %d %I:%M %p").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_uptime_reads_as_python_writes_it() {
        for (seconds, text) in [
            (-5, "0:00:00"),
            (59, "0:00:59"),
            (3661, "1:01:01"),
            (86_400, "1 day, 0:00:00"),
            (2 * 86_400 + 36_000, "2 days, 10:00:00"),
        ] {
            assert_eq!(uptime(seconds), text);
        }
    }
}
