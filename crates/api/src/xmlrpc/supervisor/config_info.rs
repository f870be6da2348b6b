//! What the configuration says of each process, in the words of Supervisor's options.

use super::{Supervisor, groups::planned_group, regroup::has_group};
use crate::xmlrpc::{fault::Fault, value::XmlValue};
use mainstay_core::plan::{JobPlan, Plan, Stderr};
use mainstay_pool::USERS;
use std::{sync::Arc, time::Duration};

/// Supervisor's own, for all that says nothing else.
const PRIORITY: i32 = 999;

impl Supervisor {
    /// Of the configuration that was read last, by name.
    pub(super) async fn config_info(&self) -> Result<XmlValue, Fault> {
        let (in_force, read) = self.plans().await?;
        let mut jobs = read.jobs.clone();
        jobs.sort_by(|a, b| a.name.cmp(&b.name));
        let supervisor = self.clone();
        // Users are looked up.
        let told = USERS.run(move || {
            let in_use = |job: &JobPlan| has_group(&in_force, planned_group(job));
            let one = |job: &Arc<JobPlan>| supervisor.configured(job, &read, in_use(job));
            jobs.iter().map(one).collect()
        });
        Ok(XmlValue::Array(told.await?))
    }

    fn configured(&self, job: &JobPlan, plan: &Plan, in_use: bool) -> XmlValue {
        let (stdout, stderr) = self.log_files(job);
        let seconds = |time: Duration| XmlValue::int(i64::try_from(time.as_secs()).unwrap_or(0));
        let size = || XmlValue::int(i64::try_from(job.log.keep.size).unwrap_or(i64::MAX));
        let backups = || XmlValue::int(i64::from(job.log.keep.files));
        let codes = job.exit_codes.iter().map(|code| XmlValue::Int(*code)).collect();
        let no = || XmlValue::Bool(false);
        XmlValue::pairs([
            ("autostart", XmlValue::Bool(starts_by_itself(job, plan))),
            ("directory", or_none(job.cwd.as_ref().map(|path| path.display().to_string()))),
            ("uid", uid(job)),
            ("command", XmlValue::Text(command(&job.exec))),
            ("exitcodes", XmlValue::Array(codes)),
            ("group", XmlValue::text(planned_group(job))),
            ("group_prio", XmlValue::Int(PRIORITY)),
            ("inuse", XmlValue::Bool(in_use)),
            // SIGKILL always goes to the whole tree.
            ("killasgroup", XmlValue::Bool(true)),
            ("name", XmlValue::text(job.name.as_str())),
            ("process_prio", XmlValue::Int(PRIORITY)),
            ("redirect_stderr", XmlValue::Bool(job.stderr == Stderr::Joined)),
            ("startretries", XmlValue::int(i64::from(job.start_retries.unwrap_or(0)))),
            ("startsecs", seconds(job.start_seconds)),
            ("stdout_capture_maxbytes", XmlValue::Int(0)),
            ("stdout_events_enabled", no()),
            ("stdout_logfile", or_none(Some(stdout).filter(|it| !it.is_empty()))),
            ("stdout_logfile_backups", backups()),
            ("stdout_logfile_maxbytes", size()),
            ("stdout_syslog", no()),
            ("stopsignal", XmlValue::Int(job.stop.signal.number())),
            ("stopwaitsecs", seconds(job.stop.timeout)),
            ("stderr_capture_maxbytes", XmlValue::Int(0)),
            ("stderr_events_enabled", no()),
            ("stderr_logfile", or_none(Some(stderr).filter(|it| !it.is_empty()))),
            ("stderr_logfile_backups", backups()),
            ("stderr_logfile_maxbytes", size()),
            ("stderr_syslog", no()),
            ("serverurl", or_none(None)),
        ])
    }
}

fn or_none(text: Option<String>) -> XmlValue {
    XmlValue::Text(text.unwrap_or_else(|| "none".to_owned()))
}

fn uid(job: &JobPlan) -> XmlValue {
    let user = job.user.as_deref().map(mainstay_sys::user::lookup_user);
    match user.and_then(Result::ok).flatten() {
        Some(user) => XmlValue::int(i64::from(user.uid)),
        None => or_none(None),
    }
}

pub(super) fn starts_by_itself(job: &JobPlan, plan: &Plan) -> bool {
    match plan.app_of(job) {
        Some(app) => app.start_sequence > 0 && job.place.start_sequence > 0,
        None => job.autostart,
    }
}

/// As a shell would have to be told.
fn command(exec: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    let quoted = |word: &String| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    exec.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_written_so_that_a_shell_takes_it_apart_again() {
        let words = ["sh", "-c", "echo 'a b' >&2", ""].map(str::to_owned);
        assert_eq!(command(&words), "sh -c 'echo '\\''a b'\\'' >&2' ''");
    }
}
