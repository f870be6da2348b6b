//! Commands about jobs, and what they have left to read.

pub(crate) mod app;
pub(crate) mod control;
pub(crate) mod events;
pub(crate) mod logs;
pub(crate) mod status;
pub(crate) mod why;
