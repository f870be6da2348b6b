//! What keeper, agent and command say to each other: link frames, server-sent events, state files;
//! the model of the API, and how the logs that the keeper writes are read.
#![forbid(unsafe_code)]

#[cfg(feature = "api")]
pub mod api;
pub mod format;
pub mod frame;
pub mod link;
#[cfg(feature = "logs")]
pub mod logs;
pub mod run_dir;
pub mod sse;
pub mod stamp;
pub mod state;
pub mod task;
mod variants;
