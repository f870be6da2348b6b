//! The agent: runs one node. It feeds `core` with what happens and carries out what `core` decides.
//!
//! ```text
//!  keeper ──link──► input ─► Node::step ─► journal ─► publish ─► acknowledge ─► commands ──link──► keeper
//!  API ───calls──►                                     │
//!  timers ───────►                                     └─► event log ─► API
//! ```
//!
//! Nothing in the loop waits, and nothing in it decides. Each arrow after the journal may be the
//! last thing an agent does: the next one reads plan and journal, hears from the keeper what it
//! holds, and goes on without repeating or losing an event.
#![forbid(unsafe_code)]

mod agent;
mod boot;
mod checks;
mod crash;
pub mod discovery;
mod effects;
mod event_log;
mod fleet;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod handle;
mod inputs;
mod journal;
mod metrics;
mod reload;
mod role;
mod rollout;
mod trace;
mod view;
mod wait;

use inputs::clock;

pub use agent::{Agent, End};
pub use boot::{BootError, boot};
pub use crash::{Crash, Crashed, Point};
pub use effects::disabled::inherit_disabled;
pub use event_log::{Batch, EventLog};
pub use handle::Handle;
pub use inputs::link::{Link, LinkError};
pub use journal::{Unreadable, plan_file::state_dir as applied_state_dir};
pub use mainstay_rollout::renderer::Renderer;
pub use metrics::user_metrics::UserMetrics;
pub use reload::{PrepareListeners, options::Options};
pub use role::role;
pub use wait::Wait;

/// Whether this binary could go on with what the agent of a running node has written down.
///
/// # Errors
/// What it cannot read, and why.
pub fn check(run_dir: &std::path::Path) -> Result<(), Unreadable> {
    journal::plan_file::check(run_dir)?;
    journal::check(run_dir)
}
