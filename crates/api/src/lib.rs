//! The HTTP API of a node: `/v1` as JSON and server-sent events.
//!
//! Thin on purpose: a route turns a request into a question to the agent and its answer into JSON.
//! Errors are problem documents (RFC 9457). No client can hold memory: connections are capped,
//! bodies are capped and timed, and readers of events have a cursor instead of a queue.
#![forbid(unsafe_code)]

mod accept;
mod body;
mod events;
mod goal;
mod jobs;
mod node;
mod problem;

pub use accept::serve;

use axum::{
    Router,
    routing::{get, post},
};
use mainstay_agent::Asker;
use problem::Problem;
use tokio::sync::watch;

/// What every route can reach.
#[derive(Debug, Clone)]
struct Reach {
    asker: Asker,
    /// Becomes true when the run is over.
    ending: watch::Receiver<bool>,
}

fn routes(asker: Asker, ending: watch::Receiver<bool>) -> Router {
    Router::new()
        .route("/v1/status", get(node::status))
        .route("/v1/shutdown", post(node::shutdown))
        .route("/v1/upgrade", post(node::upgrade))
        .route("/v1/events", get(events::stream))
        .route("/v1/jobs/{job}", get(jobs::one))
        .route("/v1/jobs/{job}/start", post(jobs::start))
        .route("/v1/jobs/{job}/stop", post(jobs::stop))
        .route("/v1/jobs/{job}/restart", post(jobs::restart))
        .route("/v1/jobs/{job}/kill", post(jobs::kill))
        .route("/v1/jobs/{job}/signal", post(jobs::signal))
        .fallback(async || Problem::no_such_route())
        .method_not_allowed_fallback(async || Problem::wrong_method())
        .with_state(Reach { asker, ending })
}
