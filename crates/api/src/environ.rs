//! The environment of whatever is started from now on, as users change it.
//!
//! Values may be secrets: they are shown to whoever may use the unix socket, who could read them
//! out of /proc as well, and to nobody else.

use crate::{
    Reach,
    body::{Asked, Body},
    node::Nothing,
    problem::Problem,
};
use axum::{Extension, Json, Router, extract::State};
use mainstay_core::{environ::Environ, node::Request};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The request came over the network.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FromAfar;

/// Routes that know that they are asked over the network.
pub(crate) fn from_afar(routes: Router) -> Router {
    routes.layer(Extension(FromAfar))
}

/// Names and values that were changed; `null`: taken away.
pub(crate) async fn show(
    State(reach): State<Reach>,
    afar: Option<Extension<FromAfar>>,
    Asked(Nothing {}): Asked<Nothing>,
) -> Result<Json<Environ>, Problem> {
    if afar.is_some() {
        return Err(Problem::forbidden(
            "values may be secrets: they are shown at the node's own socket only",
        ));
    }
    Ok(Json(reach.handle.environ().await?))
}

pub(crate) async fn change(
    State(reach): State<Reach>,
    Asked(Nothing {}): Asked<Nothing>,
    Body(changes): Body<BTreeMap<String, Option<String>>>,
) -> Result<Json<Value>, Problem> {
    let changed: Vec<String> = changes.keys().cloned().collect();
    reach.handle.request(Request::Environ { changes }).await??;
    Ok(Json(json!({ "changed": changed })))
}
