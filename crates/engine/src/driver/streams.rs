//! Connections on which a peer passes on requests to the API of this node.

use mainstay_core::name::Name;
use mainstay_net::BoxedStream;
use tokio::sync::mpsc;

/// More wait for nobody: they are refused.
pub(crate) const WAITING: usize = 64;

/// A peer that wants to ask the API.
pub struct ApiStream {
    /// As its certificate says.
    pub from: Name,
    /// What is spoken on it is HTTP.
    pub stream: BoxedStream,
}

impl std::fmt::Debug for ApiStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiStream").field("from", &self.from).finish_non_exhaustive()
    }
}

/// Where they come out.
#[derive(Debug)]
pub struct ApiStreams(pub(crate) mpsc::Receiver<ApiStream>);

impl ApiStreams {
    /// The next one. May be dropped at any time. `None`: the engine is gone.
    pub async fn next(&mut self) -> Option<ApiStream> {
        self.0.recv().await
    }
}
