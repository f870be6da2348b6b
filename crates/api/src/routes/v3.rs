//! `/v3/*`: the control socket of ContainerPilot 3.
//!
//! | request | answer |
//! |---|---|
//! | POST /v3/environ {NAME: text or null} | 200; 400 a name that cannot be one; 422 not such an object |
//! | POST /v3/metric {name: number} | 200; 400 unknown or not a number; 422 not an object |
//! | POST /v3/reload | 200; 422 and the diagnostics, 409 without its listeners: nothing has changed |
//! | POST /v3/maintenance/enable, disable | 200 |
//! | /v3/ping | 200 |
//!
//! An answer that says nothing is a line end. Another method is 405, another path 404. Where
//! ContainerPilot's words and deeds differ, its words hold: `docs/telemetry.md` names each case.

use crate::{RouterState, extract, problem::Problem};
use axum::{
    Router,
    extract::{Request, State},
    http::{Method, StatusCode},
    response::{IntoResponse, Response},
    routing::any,
};
use mainstay_core::node;
use serde_json::{Map, Value};
use std::{collections::BTreeMap, time::Duration};

const PATHS: [&str; 6] = [
    "/v3/environ",
    "/v3/metric",
    "/v3/reload",
    "/v3/maintenance/enable",
    "/v3/maintenance/disable",
    "/v3/ping",
];

/// For a socket of its own: nothing else can be asked there.
pub(crate) fn routes(state: RouterState) -> Router {
    Router::new().fallback(answer).with_state(state)
}

/// Among other routes.
pub(crate) fn among(router: Router<RouterState>) -> Router<RouterState> {
    router.route("/v3/{*path}", any(answer))
}

async fn answer(State(state): State<RouterState>, request: Request) -> Response {
    let Some(path) = PATHS.into_iter().find(|path| *path == request.uri().path()) else {
        return (StatusCode::NOT_FOUND, "404 page not found\n").into_response();
    };
    let answer = match path {
        "/v3/ping" => Ok(()),
        _ if request.method() != Method::POST => {
            Err(No(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed".to_owned()))
        }
        path => done(&state, path, request).await,
    };
    let response = match answer {
        Ok(()) => "\n".into_response(),
        Err(No(code, text)) => (code, text.trim_end().to_owned() + "\n").into_response(),
    };
    state.requests.note(path, response.status().as_u16());
    response
}

/// Not done, and why.
struct No(StatusCode, String);

impl From<Problem> for No {
    fn from(problem: Problem) -> No {
        let (code, text) = problem.into_parts();
        No(code, text)
    }
}

async fn done(state: &RouterState, path: &str, request: Request) -> Result<(), No> {
    match path {
        "/v3/environ" => environ(state, object(request).await?).await,
        "/v3/metric" => metric(state, object(request).await?),
        "/v3/reload" => reload(state).await,
        path => {
            let on = path.ends_with("/enable");
            let request = node::Request::Maintenance { on };
            state.handle.request(request).await.map_err(Problem::from)?.map_err(Problem::from)?;
            Ok(())
        }
    }
}

fn unfit(text: impl ToString) -> No {
    No(StatusCode::UNPROCESSABLE_ENTITY, text.to_string())
}

async fn object(request: Request) -> Result<Map<String, Value>, No> {
    let bytes = extract::bytes(request).await?;
    serde_json::from_slice(&bytes).map_err(|error| unfit(format!("not a JSON object: {error}")))
}

async fn environ(state: &RouterState, object: Map<String, Value>) -> Result<(), No> {
    let text = |(name, value): (String, Value)| match value {
        Value::Null => Ok((name, None)),
        Value::String(text) => Ok((name, Some(text))),
        _ => Err(unfit(format!("the value of {name} is neither a string nor null"))),
    };
    let changes = object.into_iter().map(text).collect::<Result<BTreeMap<_, _>, No>>()?;
    let request = node::Request::Environ { changes };
    Ok(state
        .handle
        .request(request)
        .await
        .map_err(Problem::from)?
        .map_err(Problem::from)
        .map(drop)?)
}

/// Numbers, also as text: ContainerPilot's own command sends them so.
fn metric(state: &RouterState, object: Map<String, Value>) -> Result<(), No> {
    let bad = |text: String| No(StatusCode::BAD_REQUEST, text);
    let number = |(name, value): (String, Value)| {
        let number = match &value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        number
            .map(|number| (name.clone(), number))
            .ok_or_else(|| bad(format!("the value of '{name}' is not a number")))
    };
    let values = object.into_iter().map(number).collect::<Result<BTreeMap<_, _>, No>>()?;
    state.handle.user_metrics().feed(&values).map_err(|error| bad(error.to_string()))
}

async fn reload(state: &RouterState) -> Result<(), No> {
    state.handle.reload(&state.listeners, Duration::ZERO).await.map_err(Problem::from)?;
    Ok(())
}
