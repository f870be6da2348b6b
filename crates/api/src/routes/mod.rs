//! What can be asked: `/v1`, and `/v3` for those who speak as ContainerPilot does.

pub(crate) mod v1;
pub(crate) mod v3;

use crate::{RouterState, problem::Problem};
use axum::Router;

/// Every route of the node's own socket.
pub(crate) fn all(state: RouterState) -> Router {
    v3::among(v1::router())
        .fallback(async || Problem::no_such_route())
        .method_not_allowed_fallback(async || Problem::wrong_method())
        .with_state(state)
}
