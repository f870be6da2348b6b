//! The keeper: the small process that is the parent of every process Mainstay starts.
#![forbid(unsafe_code)]

use std::{path::PathBuf, time::Duration};

mod output;
pub mod sweep;

/// What `mainstay run` needs to become the keeper.
#[derive(Debug, Clone)]
pub struct RunOptions {
    pub run_dir: PathBuf,
    pub state_dir: PathBuf,
    /// Arguments of the agent role, without argv[0].
    pub agent_args: Vec<String>,
}

/// Becomes the keeper; returns the exit code of the run. Must be called before any thread exists.
#[must_use]
pub fn run(options: RunOptions) -> i32 {
    let _ = options;
    todo!()
}

#[derive(Debug, Clone)]
pub struct HoldOptions {
    pub dir: PathBuf,
    pub stop_timeout: Duration,
    pub command: Vec<String>,
}

/// Holds one command without an agent; returns its exit code.
#[must_use]
pub fn hold(options: HoldOptions) -> i32 {
    let _ = options;
    todo!()
}

/// The role `__check`: can this binary take over what the running keeper would hand it?
///
/// # Errors
/// What it cannot read, and why.
pub fn check() -> Result<(), String> {
    todo!()
}
