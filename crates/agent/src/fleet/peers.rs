//! The other nodes, for the API: how this one sees them, connections to them, and theirs to this one.

use super::FleetRoom;
use mainstay_core::{fleet::PeerState, name::Name};
use mainstay_engine::{ApiStream, ApiStreams, Engine};
use mainstay_net::BoxedStream;
use std::{collections::BTreeMap, io, sync::Arc};
use tokio::sync::{Mutex, watch};

/// The other nodes by name, as this one sees them.
pub(crate) type PeerStates = BTreeMap<Name, PeerState>;

#[derive(Debug)]
pub(crate) struct FleetPeers {
    me: Name,
    engine: Arc<Engine>,
    streams: Mutex<ApiStreams>,
    states: watch::Receiver<PeerStates>,
    changes: watch::Receiver<u64>,
}

impl FleetPeers {
    pub(super) fn new(
        me: Name,
        engine: Arc<Engine>,
        streams: ApiStreams,
        room: &FleetRoom,
    ) -> FleetPeers {
        let (states, changes) = (room.states.subscribe(), room.changes.subscribe());
        FleetPeers { me, engine, streams: Mutex::new(streams), states, changes }
    }

    pub(crate) fn me(&self) -> &Name {
        &self.me
    }

    pub(crate) fn states(&self) -> watch::Receiver<PeerStates> {
        self.states.clone()
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.clone()
    }

    pub(crate) async fn connect(&self, node: &Name) -> io::Result<BoxedStream> {
        self.engine.connect(node).await
    }

    /// The next that a peer opens. May be dropped at any time.
    pub(crate) async fn next_stream(&self) -> Option<(Name, BoxedStream)> {
        let ApiStream { from, stream } = self.streams.lock().await.next().await?;
        Some((from, stream))
    }
}
