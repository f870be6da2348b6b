//! The HTTP API of a node: `/v1` as JSON and server-sent events.
//!
//! Thin on purpose: a route turns a request into a question to the agent and its answer into JSON.
//! Errors are problem documents (RFC 9457). No client can hold memory: connections are capped,
//! bodies are capped and timed, and readers of events have a cursor instead of a queue.
#![forbid(unsafe_code)]

mod extract;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod listeners;
mod openapi;
mod passing;
mod placed;
mod problem;
mod routes;
mod sse;
mod state;
mod telemetry;
mod wait;
mod xmlrpc;

pub use listeners::serve;

use state::RouterState;
