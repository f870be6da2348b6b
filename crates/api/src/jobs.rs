//! Routes that concern one job.

use crate::{
    Reach,
    body::{Asked, Body},
    goal::{self, Goal, Progress},
    node::{Nothing, figures},
    problem::Problem,
};
use axum::{
    Json,
    extract::{Path, State},
};
use mainstay_agent::{
    Accepted,
    view::{JobStatus, Why},
};
use mainstay_core::{name::Name, node::Request, plan, signal::Signal};
use serde::Deserialize;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

type Answer = Result<Json<JobStatus>, Problem>;

pub(crate) async fn one(
    State(reach): State<Reach>,
    Path(name): Path<String>,
    Asked(Nothing {}): Asked<Nothing>,
) -> Answer {
    let figures = figures(&reach.asker).await?;
    let mut job = current(&reach, &name).await?;
    job.log = figures.and_then(|figures| figures.logs.get(&job.name).copied());
    Ok(Json(job))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wait {
    wait: Option<String>,
}

impl Wait {
    pub(crate) fn patience(&self) -> Result<Duration, Problem> {
        match &self.wait {
            Some(text) => mainstay_config::duration(text).map_err(Problem::bad_request),
            None => Ok(goal::PATIENCE),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StartBody {
    args: Option<Vec<String>>,
    #[serde(default)]
    now: bool,
}

pub(crate) async fn start(
    State(reach): State<Reach>,
    Path(name): Path<String>,
    Asked(wait): Asked<Wait>,
    Body(StartBody { args, now }): Body<StartBody>,
) -> Answer {
    let request = Request::Start { job: known(&name)?, args, now };
    pursue(&reach, &name, request, wait, |_| Goal::Up { beyond: 0 }).await
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RestartBody {
    args: Option<Vec<String>>,
}

pub(crate) async fn restart(
    State(reach): State<Reach>,
    Path(name): Path<String>,
    Asked(wait): Asked<Wait>,
    Body(RestartBody { args }): Body<RestartBody>,
) -> Answer {
    let request = Request::Restart { job: known(&name)?, args };
    let goal = |accepted: &Accepted| Goal::Up { beyond: accepted.before };
    pursue(&reach, &name, request, wait, goal).await
}

pub(crate) async fn stop(
    State(reach): State<Reach>,
    Path(name): Path<String>,
    Asked(wait): Asked<Wait>,
    Body(Nothing {}): Body<Nothing>,
) -> Answer {
    let request = Request::Stop { job: known(&name)? };
    pursue(&reach, &name, request, wait, |_| Goal::Down).await
}

pub(crate) async fn kill(
    State(reach): State<Reach>,
    Path(name): Path<String>,
    Asked(wait): Asked<Wait>,
    Body(Nothing {}): Body<Nothing>,
) -> Answer {
    let request = Request::Kill { job: known(&name)? };
    pursue(&reach, &name, request, wait, |_| Goal::Down).await
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignalBody {
    signal: Signal,
    to: Option<plan::Reach>,
}

pub(crate) async fn signal(
    State(reach): State<Reach>,
    Path(name): Path<String>,
    Asked(Nothing {}): Asked<Nothing>,
    Body(SignalBody { signal, to }): Body<SignalBody>,
) -> Answer {
    let to = to.unwrap_or(plan::Reach::Leader);
    done(&reach, &name, Request::Signal { job: known(&name)?, signal, to }).await
}

pub(crate) async fn reload(
    State(reach): State<Reach>,
    Path(name): Path<String>,
    Asked(Nothing {}): Asked<Nothing>,
    Body(Nothing {}): Body<Nothing>,
) -> Answer {
    done(&reach, &name, Request::Reload { job: known(&name)? }).await
}

pub(crate) async fn enable(
    State(reach): State<Reach>,
    Path(name): Path<String>,
    Asked(Nothing {}): Asked<Nothing>,
    Body(Nothing {}): Body<Nothing>,
) -> Answer {
    done(&reach, &name, Request::Enable { job: known(&name)? }).await
}

pub(crate) async fn disable(
    State(reach): State<Reach>,
    Path(name): Path<String>,
    Asked(Nothing {}): Asked<Nothing>,
    Body(Nothing {}): Body<Nothing>,
) -> Answer {
    done(&reach, &name, Request::Disable { job: known(&name)? }).await
}

pub(crate) async fn why(
    State(reach): State<Reach>,
    Path(name): Path<String>,
    Asked(Nothing {}): Asked<Nothing>,
) -> Result<Json<Why>, Problem> {
    Ok(Json(reach.asker.why(&name).await?.ok_or_else(|| Problem::no_such_job(&name))?))
}

async fn done(reach: &Reach, name: &str, request: Request) -> Answer {
    reach.asker.request(request).await??;
    Ok(Json(current(reach, name).await?))
}

fn known(name: &str) -> Result<Name, Problem> {
    Name::new(name).map_err(|_| Problem::no_such_job(name))
}

async fn current(reach: &Reach, name: &str) -> Result<JobStatus, Problem> {
    reach.asker.job(name).await?.ok_or_else(|| Problem::no_such_job(name))
}

/// Makes a request and waits until its goal is reached, can no longer be, or time is over.
async fn pursue(
    reach: &Reach,
    name: &str,
    request: Request,
    wait: Wait,
    goal: impl FnOnce(&Accepted) -> Goal,
) -> Answer {
    let patience = wait.patience()?;
    let deadline = Instant::now() + patience;
    let mut changes = reach.asker.events().subscribe();
    let accepted = reach.asker.request(request).await??;
    let goal = goal(&accepted);
    loop {
        changes.mark_unchanged();
        let job = current(reach, name).await?;
        match goal.progress(&job) {
            Progress::Reached => return Ok(Json(job)),
            Progress::Waiting if patience.is_zero() => return Ok(Json(job)),
            Progress::Failed => return Err(Problem::conflict(why_failed(&job)).about(job)),
            Progress::Waiting => {}
        }
        if let (Goal::Up { .. }, Some(why)) = (goal, hopeless(&job)) {
            return Err(Problem::conflict(why).about(job));
        }
        if timeout_at(deadline, changes.changed()).await.is_err() {
            let waits = job.waiting.first().map_or_else(String::new, |first| {
                format!(", waiting for {} {} (`mainstay why {name}`)", first.source, first.event)
            });
            let detail = format!(
                "{name} is still {} after {patience:?}{waits}; the request stands and goes on",
                word(&job)
            );
            return Err(Problem::time_over(detail).about(job));
        }
    }
}

/// What it waits for can never come.
fn hopeless(job: &JobStatus) -> Option<String> {
    let waiting = job.waiting.iter().find(|one| one.reason.is_some())?;
    let (source, event) = (&waiting.source, &waiting.event);
    let reason = waiting.reason.as_deref().unwrap_or_default();
    let name = &job.name;
    Some(format!(
        "{name} waits for {source} {event}, which can never come: {reason}; \
         `mainstay start {name} --now` does not wait"
    ))
}

pub(crate) fn why_failed(job: &JobStatus) -> String {
    let exit = job.exit.as_ref().map_or_else(String::new, |exit| format!(": {exit}"));
    format!("{} is {}{exit}", job.name, word(job))
}

fn word(job: &JobStatus) -> String {
    format!("{:?}", job.state).to_uppercase()
}
