//! The agent and the link to it: what it orders, and what it has to be told until it knows.

pub(crate) mod agent;
mod agent_process;
pub(crate) mod log_gaps;
mod messages;
pub(crate) mod node;
pub(crate) mod service_manager;
pub(crate) mod spare;
pub(crate) mod starter;
pub(crate) mod succession;
