//! Commands about the fleet of a node.

pub(crate) mod conflicts;
mod key;
pub(crate) mod status;
