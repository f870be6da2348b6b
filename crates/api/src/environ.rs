//! The environment of whatever is started from now on, as users change it.

use crate::{
    Reach,
    body::{Asked, Body},
    node::Nothing,
    problem::Problem,
};
use axum::{Json, extract::State};
use mainstay_core::{environ::Environ, node::Request};
use std::collections::BTreeMap;

/// Names and values that were changed; `null`: taken away.
pub(crate) async fn show(
    State(reach): State<Reach>,
    Asked(Nothing {}): Asked<Nothing>,
) -> Result<Json<Environ>, Problem> {
    Ok(Json(reach.asker.environ().await?))
}

pub(crate) async fn change(
    State(reach): State<Reach>,
    Asked(Nothing {}): Asked<Nothing>,
    Body(changes): Body<BTreeMap<String, Option<String>>>,
) -> Result<Json<Environ>, Problem> {
    reach.asker.request(Request::Environ { changes }).await??;
    Ok(Json(reach.asker.environ().await?))
}
