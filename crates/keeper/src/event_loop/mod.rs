//! What the main thread sleeps on: descriptors and deadlines; and the descriptors kept in reserve.

pub(crate) mod deadline;
pub(crate) mod poller;
pub(crate) mod reserve;
