//! Routes that concern what is rolled out.

use crate::{
    RouterState,
    extract::{Body, Nothing, PathName, Query},
    placed::Sight,
    problem::Problem,
    wait::WaitQuery,
};
use axum::{Json, extract::State};
use mainstay_config::nearest;
use mainstay_core::{explain::RolledOut, name::Name};
use mainstay_wire::api::{
    PreviewSubject, RefreshRequest, RollbackRequest, RolloutDone, RolloutFailureStatus,
    RolloutHistory, RolloutPreview, RolloutStatus, RolloutWhy,
};
use serde::Deserialize;
use std::time::Duration;
use tokio::time::{Instant, timeout};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProfileQuery {
    profile: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VersionQuery {
    profile: Option<String>,
    version: Option<String>,
}

async fn status(state: &RouterState) -> Result<RolloutStatus, Problem> {
    Ok(state.handle.rollout().await??)
}

/// The profile of this name.
fn profile(status: &RolloutStatus, name: &str) -> Result<Name, Problem> {
    let known = || status.profiles.iter().map(|it| it.name.as_str());
    match status.profiles.iter().find(|it| it.name.as_str() == name) {
        Some(profile) => Ok(profile.name.clone()),
        None => Err(Problem::not_found(match nearest(name, known()) {
            Some(near) => format!("there is no profile '{name}': did you mean '{near}'?"),
            None => format!("there is no profile '{name}'"),
        })),
    }
}

async fn named(state: &RouterState, name: Option<&String>) -> Result<Option<Name>, Problem> {
    match name {
        None => Ok(None),
        Some(name) => profile(&status(state).await?, name).map(Some),
    }
}

pub(crate) async fn show(
    State(state): State<RouterState>,
    Query(Nothing {}): Query<Nothing>,
) -> Result<Json<RolloutStatus>, Problem> {
    status(&state).await.map(Json)
}

pub(crate) async fn plan(
    State(state): State<RouterState>,
    Query(ProfileQuery { profile }): Query<ProfileQuery>,
) -> Result<Json<RolloutPreview>, Problem> {
    let subject = PreviewSubject::Sources(named(&state, profile.as_ref()).await?);
    Ok(Json(state.handle.preview_rollout(subject).await??))
}

pub(crate) async fn diff(
    State(state): State<RouterState>,
    Query(VersionQuery { profile, version }): Query<VersionQuery>,
) -> Result<Json<RolloutPreview>, Problem> {
    let subject = match (named(&state, profile.as_ref()).await?, version) {
        (Some(profile), version) => PreviewSubject::Version { profile, version },
        (None, None) => PreviewSubject::Applied,
        (None, Some(_)) => {
            return Err(Problem::bad_request("a version is one of a profile: name that as well"));
        }
    };
    Ok(Json(state.handle.preview_rollout(subject).await??))
}

pub(crate) async fn history(
    State(state): State<RouterState>,
    Query(ProfileQuery { profile: name }): Query<ProfileQuery>,
) -> Result<Json<RolloutHistory>, Problem> {
    let status = status(&state).await?;
    let only = name.map(|name| profile(&status, &name)).transpose()?;
    let mut profiles = status.history();
    profiles.retain(|it| only.as_ref().is_none_or(|only| it.profile == *only));
    Ok(Json(RolloutHistory { profiles }))
}

pub(crate) async fn why(
    State(state): State<RouterState>,
    PathName(name): PathName,
    Query(Nothing {}): Query<Nothing>,
) -> Result<Json<RolloutWhy>, Problem> {
    let nothing = || {
        let detail = format!("there is no '{name}': ask for profile., template. or service.NAME");
        Problem::not_found(detail)
    };
    let subject = RolledOut::parse(&name).ok_or_else(nothing)?;
    let lines = state.handle.why_rolled_out(subject).await??.ok_or_else(nothing)?;
    Ok(Json(RolloutWhy { subject: name, lines }))
}

pub(crate) async fn refresh(
    State(state): State<RouterState>,
    Query(wait): Query<WaitQuery>,
    Body(RefreshRequest { profile, force }): Body<RefreshRequest>,
) -> Result<Json<RolloutDone>, Problem> {
    let (patience, before) = (wait.patience()?, status(&state).await?);
    known(&before, profile.as_ref())?;
    state.handle.refresh_rollout(profile.clone(), force).await??;
    // What was pending is tried again: what is pending afterwards has failed again.
    done(&state, patience, &before, profile.as_ref(), |_| true).await
}

pub(crate) async fn rollback(
    State(state): State<RouterState>,
    Query(wait): Query<WaitQuery>,
    Body(RollbackRequest { profile, version, force }): Body<RollbackRequest>,
) -> Result<Json<RolloutDone>, Problem> {
    let (patience, before) = (wait.patience()?, status(&state).await?);
    known(&before, Some(&profile))?;
    let earlier = before.failure.as_ref().map(|it| it.number);
    state.handle.roll_back(profile.clone(), version, force).await??;
    let is_new = |failure: &RolloutFailureStatus| Some(failure.number) != earlier;
    done(&state, patience, &before, Some(&profile), is_new).await
}

fn known(status: &RolloutStatus, name: Option<&Name>) -> Result<(), Problem> {
    name.map_or(Ok(()), |name| profile(status, name.as_str()).map(drop))
}

pub(crate) async fn pause(
    State(state): State<RouterState>,
    Query(Nothing {}): Query<Nothing>,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<RolloutStatus>, Problem> {
    state.handle.pause_rollout().await??;
    status(&state).await.map(Json)
}

pub(crate) async fn resume(
    State(state): State<RouterState>,
    Query(Nothing {}): Query<Nothing>,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<RolloutStatus>, Problem> {
    state.handle.resume_rollout().await??;
    status(&state).await.map(Json)
}

/// Waits until nothing is under way any more, here and in the fleet, and tells what came of it.
async fn done(
    state: &RouterState,
    patience: Duration,
    before: &RolloutStatus,
    profile: Option<&Name>,
    is_ours: impl Fn(&RolloutFailureStatus) -> bool,
) -> Result<Json<RolloutDone>, Problem> {
    if patience.is_zero() {
        let rollout = status(state).await?;
        return Ok(Json(RolloutDone { applied: Vec::new(), rollout }));
    }
    let mut changes = state.handle.rollout_changes();
    // What other nodes answer changes nothing here.
    let mut sight = Sight::new(state, Instant::now() + patience);
    let settled = async {
        loop {
            changes.borrow_and_update();
            let status = sight.look_at(status(state)).await?;
            if status.is_settled(profile) {
                return Ok::<RolloutStatus, Problem>(status);
            }
            tokio::select! {
                heard = changes.changed() => heard.map_err(|_| mainstay_wire::api::Gone)?,
                () = sight.changed(None) => {}
            }
        }
    };
    let Ok(rollout) = timeout(patience, settled).await else {
        let seconds = patience.as_secs_f64();
        let detail = format!("it is not done within {seconds} seconds, and goes on");
        return Err(Problem::overdue(detail));
    };
    let rollout = rollout?;
    if let Some(failure) = rollout.wave_failure_since(before, profile) {
        return Err(Problem::conflict(failure));
    }
    match rollout.failure.as_ref().filter(|it| is_ours(it)) {
        Some(failure) => Err(Problem::conflict(failure.told())),
        None => Ok(Json(RolloutDone { applied: rollout.applied_since(before), rollout })),
    }
}
