//! Routes that concern the node as a whole.

use crate::{
    RouterState,
    extract::{Body, Nothing, Query},
    listeners::optional::Which,
    placed,
    problem::Problem,
    wait::WaitQuery,
};
use axum::{
    Json,
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    response::IntoResponse,
};
use mainstay_agent::Handle;
use mainstay_core::node::Request;
use mainstay_pool::COMPUTE;
use mainstay_wire::{
    api::{
        Changes, KeeperStatus, MaintenanceRequest, NodeStateAnswer, NodeStatus, ShutdownRequest,
        UpgradeRequest,
    },
    link::Figures,
};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;

/// The keeper has more important things to do than to count: without its figures by then,
/// an answer goes without them.
const FIGURES: Duration = Duration::from_millis(250);
/// A refused upgrade is known by then.
const UPGRADE: Duration = Duration::from_secs(30);

pub(crate) async fn status(
    State(state): State<RouterState>,
    Query(Nothing {}): Query<Nothing>,
) -> Result<impl IntoResponse, Problem> {
    let figures = figures(&state.handle).await?;
    let status = state.handle.status().await?;
    let encode = move || serde_json::to_vec(&complete(&state, status, figures));
    // With many jobs it takes its time, and many may ask.
    let encoded = COMPUTE.run(encode).await?;
    let encoded = encoded.map_err(|error| Problem::broken(error.to_string()))?;
    Ok(([(CONTENT_TYPE, "application/json")], encoded))
}

/// The agent's status with what the API and the keeper know.
fn complete(state: &RouterState, status: Arc<NodeStatus>, figures: Option<Figures>) -> NodeStatus {
    let mut status = Arc::unwrap_or_clone(status);
    status.telemetry = state.listening.of(Which::Telemetry);
    status.containerpilot = state.listening.of(Which::ContainerPilot);
    let xmlrpc = [Which::XmlRpc, Which::XmlRpcSocket];
    status.xmlrpc = xmlrpc.into_iter().filter_map(|which| state.listening.of(which)).collect();
    if let Some(figures) = figures {
        for job in &mut status.jobs {
            job.log = figures.logs.get(&job.name).copied();
        }
        status.strays = Some(figures.strays);
        status.keeper = Some(KeeperStatus {
            version: figures.version,
            pid: figures.pid,
            forward_dropped: figures.forward_dropped,
        });
    }
    status
}

/// `None`: not in time.
pub(crate) async fn figures(handle: &Handle) -> Result<Option<Figures>, Problem> {
    match timeout(FIGURES, handle.figures()).await {
        Ok(figures) => Ok(Some(figures?)),
        Err(_) => Ok(None),
    }
}

pub(crate) async fn shutdown(
    State(state): State<RouterState>,
    Query(wait): Query<WaitQuery>,
    Body(ShutdownRequest { drain }): Body<ShutdownRequest>,
) -> Result<(StatusCode, Json<NodeStateAnswer>), Problem> {
    if drain {
        placed::hand_over_and_end(&state, wait.patience()?).await?;
    } else {
        state.handle.request(Request::Shutdown).await??;
    }
    Ok((StatusCode::ACCEPTED, Json(NodeStateAnswer::Stopping)))
}

pub(crate) async fn maintenance(
    State(state): State<RouterState>,
    Query(Nothing {}): Query<Nothing>,
    Body(MaintenanceRequest { on }): Body<MaintenanceRequest>,
) -> Result<Json<NodeStateAnswer>, Problem> {
    state.handle.request(Request::Maintenance { on }).await??;
    Ok(Json(state.handle.status().await?.state.into()))
}

/// What a reload would do.
pub(crate) async fn plan(
    State(state): State<RouterState>,
    Query(Nothing {}): Query<Nothing>,
) -> Result<Json<Changes>, Problem> {
    Ok(Json(state.handle.preview().await?))
}

/// Does it.
pub(crate) async fn reload(
    State(state): State<RouterState>,
    Query(wait): Query<WaitQuery>,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<Changes>, Problem> {
    Ok(Json(state.handle.reload(&state.listeners, wait.patience()?).await?))
}

/// An upgrade that succeeds replaces the agent and with it this connection: the event `upgraded`
/// says so. What can be answered here is why it was refused.
pub(crate) async fn upgrade(
    State(state): State<RouterState>,
    Query(Nothing {}): Query<Nothing>,
    Body(UpgradeRequest { binary }): Body<UpgradeRequest>,
) -> Result<(StatusCode, Json<NodeStateAnswer>), Problem> {
    match timeout(UPGRADE, state.handle.upgrade(binary)).await {
        Ok(error) => Err(Problem::conflict(format!("not upgraded: {}", error?))),
        Err(_) => Ok((StatusCode::ACCEPTED, Json(NodeStateAnswer::Upgrading))),
    }
}
