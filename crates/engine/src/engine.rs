//! The handle: an engine that runs beside the agent's loop.

use crate::{
    config::{MeshConfig, Roster},
    driver::{
        Clock, EngineStatus, SharedStatus, Sockets, addresses,
        connection::OwnIdentity,
        mesh_thread::MeshThread,
        peer_thread::{PeerCommand, PeerInputs, PeerParts, PeerThread},
        streams::{self, ApiStreams},
    },
    events::{EngineEvents, EventSink},
    mesh::{Mesh, MeshSettings, Seed},
    peers::{
        CertificateMaking,
        certificate::{Protocol, peer_tls},
        exchange::Exchange,
        frame::PeerKey,
    },
};
use mainstay_core::{fleet::EngineCommand, name::Name};
use mainstay_net::BoxedStream;
use mainstay_pool::own_thread;
use ring::rand::{SecureRandom, SystemRandom};
use std::{io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    runtime,
    sync::{mpsc, oneshot},
    time::timeout,
};

/// The mesh takes one datagram after the other.
const MESH_STACK: usize = 256 << 10;
/// Facts are read as deep as they are nested.
const PEERS_STACK: usize = 1 << 20;
/// A farewell takes no longer.
const LEAVE: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("cannot listen for the fleet at {at}: {source}")]
    Listen { at: SocketAddr, source: io::Error },
    #[error("the address of this node is not known: {0}")]
    Address(io::Error),
    #[error("there is no randomness to be had")]
    Random,
    #[error(transparent)]
    Certificates(#[from] CertificateMaking),
    #[error("the threads of the fleet cannot be had: {0}")]
    Threads(io::Error),
}

/// An engine under way. Dropped, it is gone as if its node had been killed.
#[derive(Debug)]
pub struct Engine {
    commands: mpsc::UnboundedSender<PeerCommand>,
    status: Arc<SharedStatus>,
    identity: OwnIdentity,
}

impl Engine {
    /// Listens, and begins to look for the others.
    ///
    /// # Errors
    /// When it cannot: nothing is under way then.
    pub async fn start(
        config: MeshConfig,
    ) -> Result<(Engine, EngineEvents, ApiStreams), EngineError> {
        let MeshConfig { fleet, me, run, listen, roster, highest_term, tick, keys, versions } =
            config;
        let tls = peer_tls(&keys, &fleet, &me)?;
        let sockets =
            Sockets::bind(listen).map_err(|source| EngineError::Listen { at: listen, source })?;
        let at = addresses::own(sockets.at, &roster, &me).await.map_err(EngineError::Address)?;
        let mut seed = Seed([0; 32]);
        SystemRandom::new().fill(&mut seed.0).map_err(|_| EngineError::Random)?;
        let clock = Clock::start();
        let status = Arc::new(SharedStatus::new(at));
        let peer = PeerKey { node: me.clone(), run: run.clone() };
        let mesh =
            Mesh::new(MeshSettings { fleet, me, run, at, tick, versions, keys, seed }, clock.now());
        let (mesh_thread, mesh, mesh_events) =
            MeshThread::new(mesh, sockets.udp, clock, status.clone())
                .map_err(EngineError::Threads)?;
        let (commands, receiver) = mpsc::unbounded_channel();
        let (api, api_streams) = mpsc::channel(streams::WAITING);
        let sink = EventSink::default();
        let events = sink.events();
        let identity = OwnIdentity { me: peer.clone(), versions, tls };
        let parts = PeerParts {
            identity: identity.clone(),
            exchange: Exchange::new(peer, tick, roster.core.clone(), highest_term),
            mesh,
            clock,
            sink,
            status: status.clone(),
            api,
        };
        let inputs = PeerInputs { listener: sockets.tcp, commands: receiver, mesh: mesh_events };
        let runtime = runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(EngineError::Threads)?;
        own_thread("mesh", MESH_STACK, || mesh_thread.run()).map_err(EngineError::Threads)?;
        own_thread("peers", PEERS_STACK, move || runtime.block_on(PeerThread::run(parts, inputs)))
            .map_err(EngineError::Threads)?;
        let engine = Engine { commands, status, identity };
        engine.set_roster(roster);
        Ok((engine, events, ApiStreams(api_streams)))
    }

    /// What core wants. Never waits.
    pub fn command(&self, command: EngineCommand) {
        let _ = self.commands.send(PeerCommand::Engine(command));
    }

    /// Other nodes, seeds or core nodes are written down.
    pub fn set_roster(&self, roster: Roster) {
        let _ = self.commands.send(PeerCommand::Roster(roster));
    }

    #[must_use]
    pub fn status(&self) -> EngineStatus {
        self.status.lock().clone()
    }

    /// This node ends, on purpose: the others hear its last facts, and then that it goes.
    pub async fn leave(&self) {
        let (told, left) = oneshot::channel();
        let _ = self.commands.send(PeerCommand::Leave(told));
        let _ = timeout(LEAVE, left).await;
    }

    /// A connection to the API of another node.
    ///
    /// # Errors
    /// When it is not there, or does not answer.
    pub async fn connect(&self, node: &Name) -> io::Result<BoxedStream> {
        let at =
            self.status.lock().members.iter().find(|it| it.member.node == *node).map(|it| it.at);
        let gone = || io::Error::new(io::ErrorKind::NotFound, format!("{node} cannot be reached"));
        let called = self.identity.call(node, None, at.ok_or_else(gone)?, Protocol::Api).await;
        Ok(Box::new(called.map_err(io::Error::other)?.stream.stream))
    }
}
