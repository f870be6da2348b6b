//! Routes that concern an app: its jobs, started and stopped together.

use crate::{
    Reach,
    body::{Asked, Body},
    goal::{Goal, Progress},
    jobs::Wait,
    node::Nothing,
    problem::Problem,
};
use axum::{
    Json,
    extract::{Path, State},
};
use mainstay_agent::view::JobStatus;
use mainstay_core::{
    name::Name,
    node::{Refusal, Request},
};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

type Answer = Result<Json<Value>, Problem>;

pub(crate) async fn start(
    State(reach): State<Reach>,
    Path(app): Path<String>,
    Asked(wait): Asked<Wait>,
    Body(Nothing {}): Body<Nothing>,
) -> Answer {
    let app = known(&app)?;
    pursue(&reach, &app, Request::StartApp { app: app.clone() }, &wait, Goal::Up { beyond: 0 })
        .await
}

pub(crate) async fn restart(
    State(reach): State<Reach>,
    Path(app): Path<String>,
    Asked(wait): Asked<Wait>,
    Body(Nothing {}): Body<Nothing>,
) -> Answer {
    let app = known(&app)?;
    pursue(&reach, &app, Request::RestartApp { app: app.clone() }, &wait, Goal::Up { beyond: 0 })
        .await
}

pub(crate) async fn stop(
    State(reach): State<Reach>,
    Path(app): Path<String>,
    Asked(wait): Asked<Wait>,
    Body(Nothing {}): Body<Nothing>,
) -> Answer {
    let app = known(&app)?;
    pursue(&reach, &app, Request::StopApp { app: app.clone() }, &wait, Goal::Down).await
}

fn known(app: &str) -> Result<Name, Problem> {
    Name::new(app).map_err(|_| Refusal::NoSuchApp(app.to_owned()).into())
}

async fn jobs_of(reach: &Reach, app: &Name) -> Result<Vec<JobStatus>, Problem> {
    let jobs = reach.asker.status().await?.jobs.into_iter();
    Ok(jobs.filter(|job| job.app.as_deref() == Some(app.as_str())).collect())
}

/// Makes a request and waits until every job of the app has got there, one cannot, or time is over.
async fn pursue(reach: &Reach, app: &Name, request: Request, wait: &Wait, goal: Goal) -> Answer {
    let patience = wait.patience()?;
    let deadline = Instant::now() + patience;
    let mut changes = reach.asker.events().subscribe();
    let before = jobs_of(reach, app).await?;
    let restarts = matches!(request, Request::RestartApp { .. });
    reach.asker.request(request).await??;
    loop {
        changes.mark_unchanged();
        let jobs = jobs_of(reach, app).await?;
        let progress = |job: &JobStatus| {
            let earlier = before.iter().find(|earlier| earlier.name == job.name);
            let goal = match goal {
                Goal::Up { .. } if restarts => {
                    Goal::Up { beyond: earlier.map_or(0, |earlier| earlier.incarnation) }
                }
                goal => goal,
            };
            goal.progress(job)
        };
        let failed = jobs.iter().find(|job| progress(job) == Progress::Failed);
        if let Some(job) = failed.filter(|_| !patience.is_zero()) {
            return Err(Problem::conflict(crate::jobs::why_failed(job)).about(job.clone()));
        }
        let waiting = jobs.iter().find(|job| progress(job) == Progress::Waiting);
        let Some(slow) = waiting.filter(|_| !patience.is_zero()) else {
            return Ok(Json(json!({ "app": app, "jobs": jobs })));
        };
        if timeout_at(deadline, changes.changed()).await.is_err() {
            let detail = format!(
                "{} of {app} has not got there after {patience:?}; the request stands and goes on",
                slow.name
            );
            return Err(Problem::time_over(detail).about(slow.clone()));
        }
    }
}
