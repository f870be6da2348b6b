//! The state of the router: what every route can use.

use crate::{
    door::Doors,
    outside::{Open, Requests},
    sse::EncodedEvents,
};
use mainstay_agent::Handle;
use std::sync::Arc;
use tokio::sync::watch;

#[derive(Debug, Clone)]
pub(crate) struct AppState {
    pub(crate) handle: Handle,
    /// Becomes true when the run is over.
    pub(crate) ending: watch::Receiver<bool>,
    pub(crate) doors: Doors,
    /// What is open besides this API.
    pub(crate) open: Arc<Open>,
    pub(crate) requests: Arc<Requests>,
    pub(crate) events: Arc<EncodedEvents>,
}

impl AppState {
    pub(crate) fn new(handle: Handle, ending: watch::Receiver<bool>) -> AppState {
        let doors = Doors::default();
        let events = EncodedEvents::new(handle.events().clone());
        AppState { handle, ending, doors, open: Arc::default(), requests: Arc::default(), events }
    }
}
