//! Routes that concern an app: its jobs, started and stopped together.

use crate::{
    RouterState,
    extract::{Body, Nothing, PathName, Query},
    passing::{Hop, Question, pass_on},
    placed,
    problem::Problem,
    wait::{Subject, WaitQuery},
};
use axum::{Json, extract::State};
use mainstay_config::nearest;
use mainstay_core::{
    fleet::RequestAnswer,
    name::Name,
    node::{Refusal, Request},
};
use mainstay_net::percent::segment;
use mainstay_wire::api::{
    AppDetail, AppJobs, AppList, AppRestartRequest, Goal, Selection, StartPlan,
};
use serde_json::json;

pub(crate) async fn all(
    State(state): State<RouterState>,
    Query(Nothing {}): Query<Nothing>,
) -> Result<Json<AppList>, Problem> {
    Ok(Json(AppList { apps: state.handle.apps().await? }))
}

pub(crate) async fn one(
    State(state): State<RouterState>,
    PathName(name): PathName,
    Query(Nothing {}): Query<Nothing>,
) -> Result<Json<AppDetail>, Problem> {
    match state.handle.app(&name).await? {
        Some(app) => Ok(Json(app)),
        None => Err(no_such_app(&state, name).await?),
    }
}

/// What a start would do.
pub(crate) async fn plan(
    State(state): State<RouterState>,
    PathName(name): PathName,
    Query(Nothing {}): Query<Nothing>,
) -> Result<Json<StartPlan>, Problem> {
    let Ok(app) = Name::new(&name) else { return Err(no_such_app(&state, name).await?) };
    match state.handle.plan_start(&app).await? {
        Ok(plan) => Ok(Json(plan)),
        Err(RequestAnswer::NoSuchApp) => Err(no_such_app(&state, name).await?),
        Err(refused) => Err(placed::refusal(refused, (name, String::new()))),
    }
}

/// With the name that may have been meant.
async fn no_such_app(state: &RouterState, name: String) -> Result<Problem, Problem> {
    let apps = state.handle.apps().await?;
    let near = nearest(&name, apps.iter().map(|app| app.name.as_str()));
    Ok(match near {
        Some(near) => {
            Problem::not_found(format!("there is no app '{name}': did you mean '{near}'?"))
        }
        None => Refusal::NoSuchApp(name).into(),
    })
}

macro_rules! waiting {
    ($($route:ident $request:ident $goal:expr;)*) => {$(
        pub(crate) async fn $route(
            State(state): State<RouterState>,
            hop: Hop,
            PathName(name): PathName,
            Query(wait): Query<WaitQuery>,
            Body(Nothing {}): Body<Nothing>,
        ) -> Result<Json<AppJobs>, Problem> {
            let app = Name::new(&name).map_err(|_| Refusal::NoSuchApp(name))?;
            let question = |path| {
                let (verb, query) = (stringify!($route), wait.passed_on());
                Question::post(format!("{path}/{verb}?{query}"), &json!({}))
            };
            if let Some(answer) = elsewhere(&state, hop, &app, question).await? {
                return Ok(Json(answer));
            }
            let subject = Subject::of_app(&app);
            let requests = subject.each(|app: Name| Request::$request { app });
            let jobs = subject.ask_and_wait(&state, requests, $goal, &wait).await?;
            Ok(Json(AppJobs { app, jobs }))
        }
    )*};
}

waiting! {
    start StartApp Goal::Started { beyond: 0 };
    stop StopApp Goal::Down;
}

/// What only other nodes know is asked of one that does, which waits for all of it; `None`: this one
/// does.
async fn elsewhere(
    state: &RouterState,
    hop: Hop,
    app: &Name,
    question: impl Fn(String) -> Question,
) -> Result<Option<AppJobs>, Problem> {
    if !state.handle.jobs(Selection::OfApp(app.clone())).await?.is_empty() {
        return Ok(None);
    }
    let Some(fleet) = state.handle.fleet().await? else { return Ok(None) };
    let mut jobs = fleet.jobs.iter().filter(|job| job.app == *app);
    let Some(node) = jobs.find_map(|job| job.known_by.first()) else { return Ok(None) };
    let question = question(format!("/v1/apps/{}", segment(app.as_str())));
    Ok(Some(pass_on(state, hop, node, question).await?.read::<AppJobs>().await?))
}

pub(crate) async fn restart(
    State(state): State<RouterState>,
    hop: Hop,
    PathName(name): PathName,
    Query(wait): Query<WaitQuery>,
    Body(AppRestartRequest { wave }): Body<AppRestartRequest>,
) -> Result<Json<AppJobs>, Problem> {
    if wave == Some(0) {
        return Err(Problem::bad_request("a wave of no job at all never ends: use 1 or more"));
    }
    let app = Name::new(&name).map_err(|_| Refusal::NoSuchApp(name))?;
    let question = |path| {
        let body = json!(AppRestartRequest { wave });
        Question::post(format!("{path}/restart?{}", wait.passed_on()), &body)
    };
    if let Some(answer) = elsewhere(&state, hop, &app, question).await? {
        return Ok(Json(answer));
    }
    let subject = Subject::of_app(&app);
    let requests = subject.each(|app: Name| Request::RestartApp { app, wave });
    let jobs = subject.ask_and_wait(&state, requests, Goal::StartedAnew, &wait).await?;
    Ok(Json(AppJobs { app, jobs }))
}
