//! The model of the HTTP API: what is sent and what is answered, as types.
//!
//! The agent makes these values, the routes send them, the command reads them. The schemas of
//! `/v1/openapi.json` are derived from the types, so that a field cannot be in one and not in the
//! other. What never leaves the process (measures, goals, errors) stands here as well: whoever reads
//! the API has to know nothing of the agent.
//!
//! ```text
//!  core's state ──agent──► NodeStatus, JobStatus, Changes, Why ──api──► JSON ──► mainstay, others
//!                          StartRequest, SignalRequest, …      ◄──api── JSON ◄──
//! ```

mod app;
mod error;
mod event;
mod fleet;
mod goal;
mod job;
mod measures;
mod node;
mod problem;
mod question;
mod reload;
mod request;
mod rollout;
mod rollout_request;
mod schema;

pub use app::*;
pub use error::*;
pub use event::*;
pub use fleet::*;
pub use goal::*;
pub use job::*;
pub use measures::*;
pub use node::*;
pub use problem::*;
pub use question::*;
pub use reload::*;
pub use request::*;
pub use rollout::*;
pub use rollout_request::*;
