//! Commands about the fleet of a node.

pub(crate) mod conflicts;
pub(crate) mod status;
