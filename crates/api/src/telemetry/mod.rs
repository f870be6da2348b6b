//! Telemetry: `/metrics`, `/status` and `/healthz`, for whoever asks; nothing can be changed here,
//! and nothing shown is a secret.
//!
//! The loop of the agent gives a plain copy of its counts; everything else (the keeper's figures,
//! /proc, the text) is gathered outside of it, and the text is made on a thread of its own.

mod exposition;
mod families;
mod fleet;
mod process;
pub(crate) mod requests;
mod rollout;

use crate::{RouterState, routes::v1::node::figures};
use axum::{
    Json, Router,
    extract::{Query, Request, State},
    http::{
        HeaderMap, StatusCode, Uri,
        header::{ACCEPT, ALLOW, CONTENT_TYPE},
    },
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::{MethodRouter, get},
};
use exposition::ExpositionFormat;
use families::Gathered;
use mainstay_core::{job::Health, node::NodePhase};
use mainstay_pool::COMPUTE;
use mainstay_wire::api::JobMeasures;
use process::Processes;
use serde::Deserialize;
use serde_json::{Value, json};

pub(crate) fn routes(state: RouterState) -> Router {
    Router::new()
        .route("/metrics", only_get(get(metrics)))
        .route("/status", only_get(get(status)))
        .route("/healthz", only_get(get(healthz)))
        .fallback(async || (StatusCode::NOT_FOUND, "try /metrics, /status or /healthz\n"))
        .layer(from_fn_with_state(state.clone(), counted))
        .with_state(state)
}

async fn counted(State(state): State<RouterState>, request: Request, next: Next) -> Response {
    let path = match request.uri().path() {
        "/metrics" => "/metrics",
        "/status" => "/status",
        "/healthz" => "/healthz",
        _ => "other",
    };
    let response = next.run(request).await;
    state.requests.note(path, response.status().as_u16());
    response
}

fn only_get(route: MethodRouter<RouterState>) -> MethodRouter<RouterState> {
    route.fallback(async || {
        (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, "GET, HEAD")], "Method Not Allowed\n")
    })
}

async fn metrics(State(state): State<RouterState>, headers: HeaderMap) -> Response {
    let format =
        ExpositionFormat::wanted(headers.get(ACCEPT).and_then(|value| value.to_str().ok()));
    let figures = figures(&state.handle).await.unwrap_or_default();
    let Ok(measures) = state.handle.measures().await else { return gone() };
    let Ok(fleet) = state.handle.fleet().await else { return gone() };
    // Most nodes roll out nothing.
    let Ok(rollout) = state.handle.rollout().await.map(Result::ok) else { return gone() };
    let requests = state.requests.clone();
    let custom = state.handle.user_metrics().clone();
    let text = COMPUTE.run(move || {
        let processes = Processes::look();
        let (custom, requests) = (custom.read(), requests.all());
        let gathered = Gathered { measures, figures, processes, fleet, rollout, custom, requests };
        families::text(&gathered, format)
    });
    match text.await {
        Ok(text) => ([(CONTENT_TYPE, format.content_type())], text).into_response(),
        Err(unserved) => (StatusCode::SERVICE_UNAVAILABLE, format!("{unserved}\n")).into_response(),
    }
}

fn gone() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "the agent is ending\n").into_response()
}

/// In the shape that ContainerPilot has: an empty list is `null`.
async fn status(State(state): State<RouterState>) -> Response {
    let Ok(measures) = state.handle.measures().await else { return gone() };
    let maintenance = measures.phase == NodePhase::Maintenance;
    let word = |job: &JobMeasures| match job.health {
        _ if maintenance => "maintenance",
        _ if job.awaits_pass => "unknown",
        Health::Unknown => "unknown",
        Health::Healthy => "healthy",
        Health::Unhealthy => "unhealthy",
    };
    let (mut jobs, mut services) = (Vec::new(), Vec::new());
    for job in &measures.jobs {
        match &job.advertised {
            None => jobs.push(json!({ "Name": job.name, "Status": word(job) })),
            Some((address, port)) => services.push(json!({
                "Name": job.name, "Address": address, "Port": port, "Status": word(job),
            })),
        }
    }
    let watches = measures.watches.into_iter().map(|watch| json!(watch.name)).collect();
    Json(json!({
        "Version": env!("CARGO_PKG_VERSION"),
        "Jobs": or_null(jobs),
        "Services": or_null(services),
        "Watches": or_null(watches),
    }))
    .into_response()
}

fn or_null(list: Vec<Value>) -> Value {
    if list.is_empty() { Value::Null } else { Value::Array(list) }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Healthz {
    job: Option<String>,
}

/// 200 while the node runs and every job (or the one that is asked about) is as desired, which an
/// unhealthy one is not.
async fn healthz(State(state): State<RouterState>, uri: Uri) -> Response {
    let Ok(Query(Healthz { job })) = Query::try_from_uri(&uri) else {
        return (StatusCode::BAD_REQUEST, "ask for /healthz or /healthz?job=NAME\n")
            .into_response();
    };
    let Ok(measures) = state.handle.measures().await else { return gone() };
    let asked = |it: &&JobMeasures| job.as_ref().is_none_or(|job| it.name.as_str() == job);
    let jobs: Vec<&JobMeasures> = measures.jobs.iter().filter(asked).collect();
    if let (Some(_), true) = (&job, jobs.is_empty()) {
        return (StatusCode::NOT_FOUND, Json(json!({ "error": "there is no such job" })))
            .into_response();
    }
    let failing: Vec<Value> = jobs
        .iter()
        .filter(|job| !job.as_desired)
        .map(|job| json!({ "name": job.name, "state": job.phase, "health": job.health }))
        .collect();
    let runs = match measures.phase {
        NodePhase::Running | NodePhase::Maintenance => true,
        NodePhase::Starting | NodePhase::Stopping => false,
    };
    let ok = runs && failing.is_empty();
    let code = if ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let body = json!({ "ok": ok, "state": measures.phase, "jobs": failing });
    (code, Json(body)).into_response()
}
