//! The agent and the link to it: what it orders, and what it has to be told until it knows.

pub(crate) mod agent;
pub(crate) mod log_gaps;
pub(crate) mod node;
