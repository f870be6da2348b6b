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

pub use event::{EventGap, EventView, GapDetail, StreamedEvent};
pub use job::{
    Announcement, AppJobs, CheckStatus, JobAnswer, JobInstances, JobStatus, LogLine, Waiting, Why,
    WhyAnswer, WhyInstances,
};
pub use node::{
    DiscoveryStatus, EnvironChanged, KeeperStatus, ListenerStatus, MetricsTaken, NodeStateAnswer,
    NodeStatus, WatchStatus,
};
pub use problem::ProblemDocument;
pub use reload::{Change, Changes};
pub use request::{
    EnvironVariables, MaintenanceRequest, MetricValues, RestartRequest, SignalRequest,
    StartRequest, UpgradeRequest,
};
