//! Routes that concern a job, or all instances of one.

use crate::{
    AppState,
    extract::{Body, Nothing, PathName, Query},
    problem::Problem,
    routes::v1::node::figures,
    wait::{Answer, Goal, Subject, WaitQuery},
};
use axum::{Json, extract::State};
use mainstay_core::{name::Name, node::Request, plan, signal::Signal};
use serde::Deserialize;
use serde_json::json;

pub(crate) async fn one(
    State(state): State<AppState>,
    PathName(name): PathName,
    Query(Nothing {}): Query<Nothing>,
) -> Answer {
    let subject = Subject::of_job(&state, &name).await?;
    let figures = figures(&state.handle).await?;
    let mut jobs = subject.jobs(&state).await?;
    for job in &mut jobs {
        job.log = figures.as_ref().and_then(|figures| figures.logs.get(&job.name).copied());
    }
    subject.answer(jobs)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StartBody {
    args: Option<Vec<String>>,
    #[serde(default)]
    now: bool,
}

pub(crate) async fn start(
    State(state): State<AppState>,
    PathName(name): PathName,
    Query(wait): Query<WaitQuery>,
    Body(StartBody { args, now }): Body<StartBody>,
) -> Answer {
    fit(args.as_deref())?;
    let request = |job| Request::Start { job, args: args.clone(), now };
    let subject = Subject::of_job(&state, &name).await?;
    subject.ask_and_wait(&state, request, Goal::Up { beyond: 0 }, &wait).await
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RestartBody {
    args: Option<Vec<String>>,
}

pub(crate) async fn restart(
    State(state): State<AppState>,
    PathName(name): PathName,
    Query(wait): Query<WaitQuery>,
    Body(RestartBody { args }): Body<RestartBody>,
) -> Answer {
    fit(args.as_deref())?;
    let request = |job| Request::Restart { job, args: args.clone() };
    Subject::of_job(&state, &name).await?.ask_and_wait(&state, request, Goal::Anew, &wait).await
}

fn fit(args: Option<&[String]>) -> Result<(), Problem> {
    if args.iter().copied().flatten().any(|word| word.contains('\0')) {
        let detail = "an argument holds a NUL character: no program can be given one";
        return Err(Problem::bad_request(detail));
    }
    Ok(())
}

/// Routes whose body is empty and that wait for a goal.
macro_rules! waiting {
    ($($route:ident $request:ident $goal:expr;)*) => {$(
        pub(crate) async fn $route(
            State(state): State<AppState>,
            PathName(name): PathName,
            Query(wait): Query<WaitQuery>,
            Body(Nothing {}): Body<Nothing>,
        ) -> Answer {
            let request = |job: Name| Request::$request { job };
            Subject::of_job(&state, &name).await?.ask_and_wait(&state, request, $goal, &wait).await
        }
    )*};
}

waiting! {
    stop Stop Goal::Down;
    kill Kill Goal::Down;
    disable Disable Goal::Down;
    enable Enable Goal::Begun;
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignalBody {
    signal: Signal,
    to: Option<plan::Reach>,
}

pub(crate) async fn signal(
    State(state): State<AppState>,
    PathName(name): PathName,
    Query(Nothing {}): Query<Nothing>,
    Body(SignalBody { signal, to }): Body<SignalBody>,
) -> Answer {
    let to = to.unwrap_or(plan::Reach::Leader);
    let subject = Subject::of_job(&state, &name).await?;
    subject.ask(&state, |job| Request::Signal { job, signal, to }).await
}

/// Its own way to reload ends when it likes: taken is done.
pub(crate) async fn reload(
    State(state): State<AppState>,
    PathName(name): PathName,
    Query(wait): Query<WaitQuery>,
    Body(Nothing {}): Body<Nothing>,
) -> Answer {
    wait.patience()?;
    let subject = Subject::of_job(&state, &name).await?;
    subject.ask(&state, |job| Request::Reload { job }).await
}

pub(crate) async fn why(
    State(state): State<AppState>,
    PathName(name): PathName,
    Query(Nothing {}): Query<Nothing>,
) -> Answer {
    let subject = Subject::of_job(&state, &name).await?;
    let mut answers = Vec::new();
    for job in subject.jobs(&state).await? {
        answers.extend(state.handle.why(job.name.as_str()).await?);
    }
    match subject {
        Subject::Instances(name, _) => Ok(Json(json!({ "instances_of": name, "jobs": answers }))),
        Subject::Job(_) | Subject::App(_) => {
            Ok(Json(json!(answers.pop().ok_or_else(|| Problem::no_such_job(&name))?)))
        }
    }
}
