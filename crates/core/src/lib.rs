//! The decisions of Mainstay, and nothing else: no I/O, no clock, no randomness, no threads.
//!
//! Each machine is a struct with one entry, `step(now, input) -> Outcome`. The same state and the
//! same input always give the same outcome, so every decision can be tested as a dialogue,
//! journaled, and taken up again by the next agent.
#![forbid(unsafe_code)]

pub mod app;
pub mod clock;
pub mod discovery;
pub mod environ;
pub mod event;
pub mod exit;
pub mod explain;
pub mod fleet;
pub mod interface;
pub mod job;
pub mod name;
pub mod node;
pub mod plan;
pub mod record;
pub mod rollout;
pub mod signal;
pub mod task;
pub mod text;
pub mod tls;
