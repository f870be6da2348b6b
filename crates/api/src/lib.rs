//! The HTTP API of a node: `/v1` as JSON and server-sent events.
//!
//! Thin on purpose: a route turns a request into a question to the agent and its answer into JSON.
//! Errors are problem documents (RFC 9457). No client can hold memory: connections are capped,
//! bodies are capped and timed, and readers of events have a cursor instead of a queue.
#![forbid(unsafe_code)]

mod accept;
mod apps;
mod body;
mod connection;
mod crowd;
mod door;
mod environ;
mod events;
mod frames;
mod goal;
mod guard;
mod jobs;
mod log;
pub mod logs;
mod metrics;
mod node;
mod openapi;
mod outside;
mod patient;
mod pilot;
mod problem;
mod pursuit;
mod remote;
mod socket_file;
mod table;
mod telemetry;

pub use accept::serve;
pub use log::line as log_line;

use axum::Router;
use door::Doors;
use frames::Frames;
use mainstay_agent::Handle;
use outside::{Open, Requests};
use problem::Problem;
use std::sync::Arc;
use tokio::sync::watch;

/// What every route can reach.
#[derive(Debug, Clone)]
struct Reach {
    handle: Handle,
    /// Becomes true when the run is over.
    ending: watch::Receiver<bool>,
    doors: Doors,
    /// What is open besides this API.
    open: Arc<Open>,
    requests: Arc<Requests>,
    frames: Arc<Frames>,
}

impl Reach {
    fn new(handle: Handle, ending: watch::Receiver<bool>) -> Reach {
        let doors = Doors::default();
        let frames = Frames::new(handle.events().clone());
        Reach { handle, ending, doors, open: Arc::default(), requests: Arc::default(), frames }
    }
}

fn routes(reach: Reach) -> Router {
    pilot::among(table::router())
        .fallback(async || Problem::no_such_route())
        .method_not_allowed_fallback(async || Problem::wrong_method())
        .with_state(reach)
}
