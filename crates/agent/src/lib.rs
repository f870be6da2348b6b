//! The agent: runs one node. It feeds `core` with what happens and carries out what `core` decides.
//!
//! ```text
//!  keeper ──link──► input ─► Node::step ─► journal ─► publish ─► acknowledge ─► commands ──link──► keeper
//!  API ───asks───►                                     │
//!  timers ───────►                                     └─► ring of events ─► API
//! ```
//!
//! Nothing in the loop waits, and nothing in it decides. Each arrow after the journal may be the
//! last thing an agent does: the next one reads plan and journal, hears from the keeper what it
//! holds, and goes on without repeating or losing an event.
#![forbid(unsafe_code)]

mod agent;
mod applied;
mod archive;
mod ask;
mod boot;
mod carry;
mod clock;
mod crash;
mod cron;
mod custom;
mod disabled;
pub mod discovery;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod hear;
mod histogram;
mod identity;
mod journal;
mod lane;
mod link;
mod meter;
mod options;
mod outside;
mod owed;
mod probe;
mod replace;
mod ring;
mod role;
mod ruled;
mod secret;
mod surroundings;
mod taken;
mod timers;
mod trace;
pub mod view;
mod why;

pub use agent::{Agent, End};
pub use applied::state_dir as applied_state_dir;
pub use ask::{Accepted, Asker, Dirs, Gone, Selection};
pub use boot::{BootError, boot};
pub use crash::{Crash, Crashed, Point};
pub use custom::{Custom, Reading, Unfed};
pub use histogram::Histogram;
pub use link::{Link, LinkError};
pub use meter::{CheckMeasures, Exits, JobMeasures, Measures, Seen, WatchMeasures};
pub use options::{Loaded, Options, Source, context};
pub use outside::Outside;
pub use ring::{Batch, Ring};
pub use role::role;

/// Whether this binary could go on with what the agent of a running node has written down.
///
/// # Errors
/// What it cannot read, and why.
pub fn check(run_dir: &std::path::Path) -> Result<(), String> {
    applied::check(run_dir)?;
    journal::check(run_dir)
}
