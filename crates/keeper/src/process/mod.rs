//! Processes: how they are started, what belongs to them, how they end.
//!
//! ```text
//!  Spawn ──► launch ──► job::Process (incarnation) ──► stop ──► exit record
//!  RunTask ─► run_task ─► task::Task ────────────────────────► outcome
//! ```

pub(crate) mod dead;
pub(crate) mod exec_error;
pub(crate) mod incarnation;
pub(crate) mod job;
pub(crate) mod launch;
pub(crate) mod listen_sockets;
pub(crate) mod notify;
pub(crate) mod orphans;
pub(crate) mod outcomes;
mod remembered;
mod run_task;
mod stop;
pub(crate) mod task;
mod terminal;
pub(crate) mod tree;
