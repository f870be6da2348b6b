//! Routes that concern the fleet of the node.

use crate::{
    RouterState,
    extract::{Body, Nothing, PathName, Query},
    placed,
    problem::Problem,
    wait::{WaitQuery, no_such_job},
};
use axum::{Json, extract::State};
use mainstay_core::{fleet::FleetRequest, name::Name, node::Refusal};
use mainstay_wire::api::{
    ConciliateRequest, Conflicts, FleetStatus, MoveRequest, NodeRequest, PATIENCE,
};
use std::collections::BTreeSet;

async fn fleet(state: &RouterState) -> Result<FleetStatus, Problem> {
    state.handle.fleet().await?.ok_or_else(Problem::no_fleet)
}

pub(crate) async fn show(
    State(state): State<RouterState>,
    Query(Nothing {}): Query<Nothing>,
) -> Result<Json<FleetStatus>, Problem> {
    fleet(&state).await.map(Json)
}

/// Routes that end every run of the fleet, and may have another one follow.
macro_rules! ending {
    ($($route:ident $again:literal;)*) => {$(
        pub(crate) async fn $route(
            State(state): State<RouterState>,
            Query(Nothing {}): Query<Nothing>,
            Body(Nothing {}): Body<Nothing>,
        ) -> Result<Json<FleetStatus>, Problem> {
            fleet(&state).await?;
            placed::ask(&state, FleetRequest::EndFleet { again: $again }, PATIENCE).await?;
            fleet(&state).await.map(Json)
        }
    )*};
}

ending! {
    shutdown false;
    restart true;
}

/// Routes that name a node and ask the master for something.
macro_rules! of_node {
    ($($route:ident $request:expr;)*) => {$(
        pub(crate) async fn $route(
            State(state): State<RouterState>,
            Query(Nothing {}): Query<Nothing>,
            Body(NodeRequest { node }): Body<NodeRequest>,
        ) -> Result<Json<FleetStatus>, Problem> {
            fleet(&state).await?;
            placed::ask(&state, $request(node), PATIENCE).await?;
            fleet(&state).await.map(Json)
        }
    )*};
}

of_node! {
    drain |node| FleetRequest::Drain { node, on: true };
    undrain |node| FleetRequest::Drain { node, on: false };
    readmit |node| FleetRequest::Readmit { node };
}

pub(crate) async fn move_app(
    State(state): State<RouterState>,
    PathName(name): PathName,
    Query(wait): Query<WaitQuery>,
    Body(MoveRequest { to }): Body<MoveRequest>,
) -> Result<Json<FleetStatus>, Problem> {
    let app = Name::new(&name).map_err(|_| Refusal::NoSuchApp(name))?;
    let before = fleet(&state).await?;
    let jobs = before.jobs.iter().filter(|job| job.app == app && job.home().is_some());
    let jobs = jobs.map(|job| job.job.clone()).collect();
    let request = FleetRequest::MoveApp { app, to: to.clone() };
    move_and_wait(&state, request, &jobs, &to, &wait).await
}

pub(crate) async fn move_job(
    State(state): State<RouterState>,
    PathName(name): PathName,
    Query(wait): Query<WaitQuery>,
    Body(MoveRequest { to }): Body<MoveRequest>,
) -> Result<Json<FleetStatus>, Problem> {
    let job = Name::new(&name).map_err(|_| Refusal::NoSuchJob(name))?;
    fleet(&state).await?;
    let jobs = BTreeSet::from([job.clone()]);
    let request = FleetRequest::MoveJob { job, to: to.clone() };
    move_and_wait(&state, request, &jobs, &to, &wait).await
}

async fn move_and_wait(
    state: &RouterState,
    request: FleetRequest,
    jobs: &BTreeSet<Name>,
    to: &Name,
    wait: &WaitQuery,
) -> Result<Json<FleetStatus>, Problem> {
    let patience = wait.patience()?;
    placed::ask(state, request, patience).await?;
    placed::wait_for_home(state, jobs, to, patience).await?;
    fleet(state).await.map(Json)
}

pub(crate) async fn conflicts(
    State(state): State<RouterState>,
    Query(Nothing {}): Query<Nothing>,
) -> Result<Json<Conflicts>, Problem> {
    Ok(Json(in_conflict(fleet(&state).await?)))
}

/// Answered when the master has begun it: with `user` nothing follows by itself.
pub(crate) async fn conciliate(
    State(state): State<RouterState>,
    Query(Nothing {}): Query<Nothing>,
    Body(ConciliateRequest { job, rule }): Body<ConciliateRequest>,
) -> Result<Json<Conflicts>, Problem> {
    let known = fleet(&state).await?;
    if let Some(job) = job.as_ref().filter(|job| known.job(job.as_str()).is_none()) {
        return Err(no_such_job(&state, job.as_str()).await?);
    }
    placed::ask(&state, FleetRequest::Conciliate { job, rule }, PATIENCE).await?;
    Ok(Json(in_conflict(fleet(&state).await?)))
}

fn in_conflict(fleet: FleetStatus) -> Conflicts {
    Conflicts { conflicts: fleet.jobs.into_iter().filter(|job| job.conflict).collect() }
}
