//! The environment of whatever is started from now on, as users change it.
//!
//! Values may be secrets: they are shown to whoever may use the unix socket, who could read them
//! out of /proc as well, and to nobody else.

use crate::{
    RouterState,
    extract::{Body, Nothing, Query},
    problem::Problem,
};
use axum::{Extension, Json, Router, extract::State};
use mainstay_core::node::Request;
use mainstay_wire::api::{EnvironChanged, EnvironVariables};

/// The request came over the network.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FromAfar;

/// Routes that know that they are asked over the network.
pub(crate) fn from_afar(routes: Router) -> Router {
    routes.layer(Extension(FromAfar))
}

/// Names and values that were changed; `null`: taken away.
pub(crate) async fn show(
    State(state): State<RouterState>,
    afar: Option<Extension<FromAfar>>,
    Query(Nothing {}): Query<Nothing>,
) -> Result<Json<EnvironVariables>, Problem> {
    if afar.is_some() {
        return Err(Problem::forbidden(
            "values may be secrets: they are shown at the node's own socket only",
        ));
    }
    Ok(Json(EnvironVariables::from(&state.handle.environ().await?)))
}

pub(crate) async fn change(
    State(state): State<RouterState>,
    Query(Nothing {}): Query<Nothing>,
    Body(EnvironVariables(changes)): Body<EnvironVariables>,
) -> Result<Json<EnvironChanged>, Problem> {
    let changed = changes.keys().cloned().collect();
    state.handle.request(Request::Environ { changes }).await??;
    Ok(Json(EnvironChanged { changed }))
}
