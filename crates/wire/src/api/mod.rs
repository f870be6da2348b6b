//! The model of the HTTP API: what is sent and what is answered, as types.
//!
//! The agent makes these values, the routes send them, the command reads them. The schemas of
//! `/v1/openapi.json` are derived from the types, so that a field cannot be in one and not in the
//! other.
//!
//! ```text
//!  core's state ──agent──► NodeStatus, JobStatus, Changes, Why ──api──► JSON ──► mainstay, others
//!                          StartRequest, SignalRequest, …      ◄──api── JSON ◄──
//! ```

mod event;
mod job;
mod node;
mod problem;
mod reload;
mod request;
mod schema;

pub use event::*;
pub use job::*;
pub use node::*;
pub use problem::*;
pub use reload::*;
pub use request::*;
