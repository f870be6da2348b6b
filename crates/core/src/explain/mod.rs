//! Every sentence about why something is as it is: text for people, made of types.
//!
//! `status` (what a job waits for), `why`, the last words of a run that ends with 70, `plan`,
//! `reload` and a request that has not led where it should all take their words from here, so that
//! one cause is told in one way.
//!
//! ```text
//!  Blocker ──► Waiting { source, event, reason }     status
//!     │  └───► "db healthy, which can never come: …" plan, exit 70
//!     └── Cause, Cause, … ──► "…: …"                 (why it never comes)
//!  Node, Calendar ──► five lines                     why
//!  Rollout, Node, Calendar ──► five lines            why profile.NAME
//! ```

mod placement;
mod reload;
mod request;
mod rollout;
mod waves;
mod why;

pub use reload::{effect, moved_by};
pub use request::{failed, hopeless, reload_failed, reload_too_slow, too_slow, waits};
pub use rollout::{LINES, RolledOut, why_rolled_out};
pub use waves::in_waves;
pub use why::{Calendar, why};

use crate::{
    app::{AppFailure, RestReason},
    fleet::CopyState,
    job::{Job, LAST_EVENT, Phase},
    name::Name,
    node::{Blocker, Cause, LeftAtRest, StuckJob, StuckWhy},
    plan::Condition,
};
use std::time::Duration;

/// One thing that a job waits for, as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// A job, `watch.NAME`, `global`, `interval`, `cron`, `app.NAME` (its sequence in it), or `user`.
    pub source: String,
    pub event: String,
    /// Why it can never happen any more, if so.
    pub reason: Option<String>,
}

/// What keeps this job from running.
#[must_use]
pub fn waiting(job: &Name, blocker: &Blocker) -> Waiting {
    let waiting =
        |source: &str, event: String| Waiting { source: source.to_owned(), event, reason: None };
    match blocker {
        Blocker::Sequence { app, sequence } => {
            waiting(&format!("app.{app}"), format!("sequence {sequence}"))
        }
        Blocker::Disabled => {
            let reason = Some(cause(&Cause::Disabled(job.clone())));
            Waiting { reason, ..waiting("user", "enable".to_owned()) }
        }
        Blocker::Backoff { .. } => waiting(job.as_str(), "backoff".to_owned()),
        Blocker::Hook { job } => waiting(job.as_str(), LAST_EVENT.to_string()),
        Blocker::Condition { condition, never } => Waiting {
            source: condition.source.to_string(),
            event: condition.event.to_string(),
            reason: never.as_deref().map(causes),
        },
        Blocker::Restart { job } => waiting(job.as_str(), "restart".to_owned()),
        Blocker::Interval { every, .. } => waiting("interval", format!("{every:?}")),
        Blocker::Cron { cron } => waiting("cron", cron.expression.clone()),
    }
}

/// `db healthy`, and why it never comes.
#[must_use]
pub fn blocker(job: &Name, blocker: &Blocker) -> String {
    awaited(&waiting(job, blocker))
}

fn awaited(Waiting { source, event, reason }: &Waiting) -> String {
    format!("{source} {event}{}", reason.as_deref().map(never_comes).unwrap_or_default())
}

fn never_comes(reason: &str) -> String {
    format!(", which can never come: {reason}")
}

/// From the nearest to the one that somebody has to look at.
fn causes(causes: &[Cause]) -> String {
    causes.iter().map(cause).collect::<Vec<_>>().join(": ")
}

fn cause(cause: &Cause) -> String {
    match cause {
        Cause::NoSuchJob(job) => format!("there is no job '{job}'"),
        Cause::NotSaid(Condition { source, event }) => format!("{source} does not say {event}"),
        Cause::LeftAtRest { job, rest } => format!("{job} rests: {}", left_at_rest(rest)),
        Cause::Disabled(job) => format!("{job} is disabled"),
        Cause::GivenUp { job, exit: Some(exit) } => format!("{job} was given up, {exit}"),
        Cause::GivenUp { job, exit: None } => format!("{job} was given up before it could start"),
        Cause::Ended { job, exit: Some(exit) } => format!("{job} has ended, {exit}"),
        Cause::Ended { job, exit: None } => format!("{job} has ended"),
        Cause::NeverStarts { job, waits_for: Some(condition) } => {
            format!("{job} can never start, it waits for {}", self::condition(condition))
        }
        Cause::NeverStarts { job, waits_for: None } => format!("{job} can never start"),
        Cause::AndSoOn => "and so on".to_owned(),
    }
}

/// What is wrong with an app, given the jobs that something is wrong with.
#[must_use]
pub fn app_failure(app: &Name, failed: &[(Name, AppFailure)]) -> Option<String> {
    let word = match failed.iter().map(|(_, failure)| *failure).max()? {
        AppFailure::None => return None,
        AppFailure::Minor => "minor",
        AppFailure::Major => "major",
    };
    let jobs: Vec<&str> = failed.iter().map(|(job, _)| job.as_str()).collect();
    Some(format!("its app {app} has a {word} failure: {}", jobs.join(", ")))
}

fn left_at_rest(LeftAtRest { app, reason }: &LeftAtRest) -> String {
    match reason {
        RestReason::NotReached => format!("its app {app} has not come to it"),
        RestReason::StartAborted => format!("the start of its app {app} was aborted"),
        RestReason::AppFailed => format!("its app {app} was stopped, because a job of it failed"),
    }
}

/// Why nothing could progress any more: the line of one job that could not.
#[must_use]
pub fn stuck(StuckJob { job, has_run, why }: &StuckJob) -> String {
    let verdict = if *has_run { "can run no more" } else { "never ran" };
    let waited = |all: Vec<String>| format!("it waited for {}", all.join(" and "));
    let why = match why {
        StuckWhy::LeftAtRest(rest) => left_at_rest(rest),
        StuckWhy::GivenUp(missing) => waited(missing.iter().map(condition).collect()),
        StuckWhy::Blocked(blockers) => waited(blockers.iter().map(|it| blocker(job, it)).collect()),
    };
    format!("{job} {verdict}: {why}")
}

fn condition(Condition { source, event }: &Condition) -> String {
    format!("{source} {event}")
}

/// `, exit code 1`; nothing before the first run has ended.
fn how_it_ended(job: &Job) -> String {
    job.last_exit().map_or_else(String::new, |exit| format!(", {exit}"))
}

/// The state of a copy, as it is written everywhere.
#[must_use]
pub fn copy_word(state: CopyState) -> &'static str {
    match state {
        CopyState::Stopped => "STOPPED",
        CopyState::Waiting => "WAITING",
        CopyState::Starting => "STARTING",
        CopyState::Running => "RUNNING",
        CopyState::Backoff => "BACKOFF",
        CopyState::Stopping => "STOPPING",
        CopyState::Exited { .. } => "EXITED",
        CopyState::Fatal => "FATAL",
    }
}

/// A phase as it is written everywhere.
#[must_use]
pub fn word(phase: Phase) -> String {
    format!("{phase:?}").to_uppercase()
}

/// `0.3s`, `12s`, `2m5s`, `1h10m`
fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..10 if time.subsec_millis() >= 100 => format!("{:.1}s", time.as_secs_f64()),
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{}s", seconds / 60, seconds % 60),
        _ => format!("{}h{}m", seconds / 3600, seconds / 60 % 60),
    }
}
