//! What keeper, agent and command say to each other: link frames, server-sent events, state files.
#![forbid(unsafe_code)]

pub mod frame;
pub mod link;
pub mod sse;
pub mod stamp;
pub mod state;
