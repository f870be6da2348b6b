//! The half that has sockets and threads: it carries, and decides nothing.
//!
//! ```text
//!  agent ── commands ─► peers thread ── digests, addresses ─► mesh thread ── UDP
//!        ◄─ events ────  (TCP, TLS)  ◄─ members, digests ────
//! ```
//!
//! The mesh has a thread of its own: whatever keeps the agent or the peers busy delays no probe.

pub(crate) mod addresses;
pub(crate) mod connection;
pub(crate) mod mesh_thread;
pub(crate) mod peer_thread;
mod sockets;
pub(crate) mod streams;

pub(crate) use sockets::Sockets;

use crate::mesh::{DropCounts, Reached};
use mainstay_core::{clock::Mono, name::Name};
use std::{
    collections::BTreeSet,
    net::SocketAddr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

/// Time since the start of the engine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock(Instant::now())
    }

    pub(crate) fn now(self) -> Mono {
        Mono(0).after(self.0.elapsed())
    }

    pub(crate) fn instant(self, at: Mono) -> Instant {
        self.0 + at.since(Mono(0))
    }
}

/// How the engine is, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineStatus {
    /// Where this node is reached.
    pub address: SocketAddr,
    pub members: Vec<Reached>,
    /// Those with a connection.
    pub connected: BTreeSet<Name>,
    /// Datagrams that were not taken.
    pub drops: DropCounts,
    /// Connections that were refused: of another fleet, key or version.
    pub refused_connections: u64,
}

/// The status, as the threads write it.
#[derive(Debug)]
pub(crate) struct SharedStatus(Mutex<EngineStatus>);

impl SharedStatus {
    pub(crate) fn new(address: SocketAddr) -> SharedStatus {
        SharedStatus(Mutex::new(EngineStatus {
            address,
            members: Vec::new(),
            connected: BTreeSet::new(),
            drops: DropCounts::default(),
            refused_connections: 0,
        }))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, EngineStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
