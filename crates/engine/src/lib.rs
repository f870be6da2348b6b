//! What a fleet stands on: the mesh, an engine without any server.
//!
//! An engine is a pair. One half knows neither sockets nor clocks nor threads: [`mesh`] says who can
//! be reached, `peers` what is said to whom. The other half, `driver`, has two threads and carries
//! what they want. [`Engine`] is the handle: commands of core go in, events come out
//! (`mainstay_core::fleet::engine`).
#![forbid(unsafe_code)]

mod config;
mod driver;
mod engine;
mod events;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod mesh;
mod next;
mod peers;

pub use config::{MeshConfig, Roster};
pub use driver::{
    EngineStatus,
    streams::{ApiStream, ApiStreams},
};
pub use engine::{Engine, EngineError};
pub use events::EngineEvents;
pub use mesh::{FleetKeys, KeyError, Versions};
pub use peers::CertificateMaking;
