//! Whole fleets in virtual time, from one seed.
//!
//! ```text
//!  Script (faults and requests, from a seed) ─► FleetWorld ─► Observation ─► invariants
//!                                                 │  nodes: core::fleet::Fleet, jobs, what is on disk
//!                                                 │  mesh:  who hears whom, who is master
//!                                                 └─ net:   delay, loss, repetition, cuts
//! ```
//!
//! A script can be read and played again: `MAINSTAY_FLEET_SEED=n cargo test -p mainstay-sim --test
//! fleet one_seed -- --nocapture`.

mod fault;
pub mod history;
pub mod invariants;
mod mesh;
mod net;
pub mod observation;
pub mod scenario;
mod script;
mod sim_node;
mod world;

pub use fault::{Fault, Written};
pub use history::History;
pub use observation::Observation;
pub use script::{Script, Step};
pub use sim_node::Dialect;
pub use world::FleetWorld;
