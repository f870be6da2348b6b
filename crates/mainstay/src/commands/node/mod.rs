//! Commands about the node as a whole.

pub(crate) mod agent;
pub(crate) mod detach;
pub(crate) mod environ;
pub(crate) mod held;
pub(crate) mod maintenance;
pub(crate) mod metric;
pub(crate) mod ps;
pub(crate) mod run;
pub(crate) mod shutdown;
pub(crate) mod sweep;
pub(crate) mod upgrade;
