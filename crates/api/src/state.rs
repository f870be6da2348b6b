//! The state of the router: what every route can use.

use crate::{
    listeners::{optional::ListenerStates, tcp::ApiListeners},
    passing::Passing,
    sse::EncodedEvents,
    telemetry::requests::Requests,
};
use mainstay_agent::Handle;
use std::sync::Arc;
use tokio::sync::watch;

#[derive(Debug, Clone)]
pub(crate) struct RouterState {
    pub(crate) handle: Handle,
    /// Becomes true when the run is over.
    pub(crate) ending: watch::Receiver<bool>,
    pub(crate) listeners: ApiListeners,
    /// How the listeners besides this API stand.
    pub(crate) listening: Arc<ListenerStates>,
    pub(crate) requests: Arc<Requests>,
    pub(crate) events: Arc<EncodedEvents>,
    /// What is passed on to other nodes.
    pub(crate) passing: Passing,
}

impl RouterState {
    pub(crate) fn new(handle: Handle, ending: watch::Receiver<bool>) -> RouterState {
        let listeners = ApiListeners::default();
        let events = EncodedEvents::new(handle.events().clone());
        RouterState {
            handle,
            ending,
            listeners,
            listening: Arc::default(),
            requests: Arc::default(),
            events,
            passing: Passing::default(),
        }
    }
}
