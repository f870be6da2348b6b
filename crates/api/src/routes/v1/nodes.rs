//! `/v1/nodes/{node}/…`: any route of another node of the fleet, asked here.

use super::{environ::FromAfar, router};
use crate::{
    RouterState,
    extract::bytes,
    passing::{Hop, Question, pass_on},
    problem::Problem,
};
use axum::{
    body::Body,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use mainstay_core::name::Name;

const PREFIX: &str = "/v1/nodes/";

pub(crate) async fn pass(
    State(state): State<RouterState>,
    hop: Hop,
    request: Request,
) -> Result<Response, Problem> {
    let (node, target) = addressed(&request)?;
    match state.handle.node_name() {
        None => Err(Problem::no_fleet()),
        Some(me) if *me == node => Ok(answer_here(state, target, request).await),
        Some(_) => {
            let (method, headers) = (request.method().clone(), request.headers().clone());
            let body = bytes(request).await?;
            let question = Question::of(method, target, &headers, body);
            pass_on(&state, hop, &node, question).await?.into_response().await
        }
    }
}

/// The node, and what is asked of it.
fn addressed(request: &Request) -> Result<(Name, String), Problem> {
    let target = request.uri().path_and_query().map_or("", |it| it.as_str());
    let (node, rest) = target
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.split_once('/'))
        .ok_or_else(Problem::no_such_route)?;
    let node = Name::new(node)
        .map_err(|_| Problem::not_found(format!("no node '{node}' is known in the fleet")))?;
    match rest.starts_with("nodes/") {
        true => Err(Problem::bad_request("a request is passed on to one node, and no further")),
        false => Ok((node, format!("/v1/{rest}"))),
    }
}

/// It is this node that is meant.
async fn answer_here(state: RouterState, target: String, request: Request) -> Response {
    let Ok(uri) = target.parse() else { return Problem::no_such_route().into_response() };
    let (parts, body) = request.into_parts();
    let mut asked: Request<Body> = Request::new(body);
    *asked.method_mut() = parts.method;
    *asked.uri_mut() = uri;
    *asked.headers_mut() = parts.headers;
    if let Some(afar) = parts.extensions.get::<FromAfar>() {
        asked.extensions_mut().insert(*afar);
    }
    let routes = router()
        .fallback(async || Problem::no_such_route())
        .method_not_allowed_fallback(async || Problem::wrong_method())
        .with_state(state);
    match TowerToHyperService::new(routes).call(asked).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}
