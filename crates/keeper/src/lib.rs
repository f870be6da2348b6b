//! The keeper: the small process that is the parent of every process Mainstay starts.
//!
//! It forks, reaps, captures output, serves control sockets, holds listening sockets, enforces the
//! deadlines it was given and replaces a dead agent. It decides nothing: `docs/inside/keeper.md` has its
//! promises and what it does about each fault.
#![forbid(unsafe_code)]

mod control;
mod error;
mod event_loop;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod keeper;
mod link;
mod output;
mod process;
mod run;
mod upgrade;

pub use run::sweep::{Sweep, SweepError, sweep};
pub use upgrade::TakeOverError;

use error::KeeperError;

use serde::{Deserialize, Serialize};
use std::{
    ffi::OsString,
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    time::Duration,
};

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What `mainstay run` needs to become the keeper.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunOptions {
    #[serde(with = "upgrade::os_text")]
    pub run_dir: PathBuf,
    #[serde(with = "upgrade::os_text")]
    pub state_dir: PathBuf,
    /// What holds the run directories of all nodes of the user, if this is one of them: whoever
    /// could write there could replace it.
    #[serde(default, with = "upgrade::os_text::option")]
    pub run_parent: Option<PathBuf>,
    /// The directory of the configuration.
    #[serde(default, with = "upgrade::os_text::option")]
    pub project: Option<PathBuf>,
    /// Arguments of the agent role, without argv[0].
    #[serde(with = "upgrade::os_text::list")]
    pub agent_args: Vec<OsString>,
}

/// Becomes the keeper; returns the exit code of the run. Must be called before any thread exists.
/// `starter`: a socket to who has started it to leave it behind, and waits until startup is said.
#[must_use]
pub fn run(options: RunOptions, starter: Option<OwnedFd>) -> i32 {
    complain(run::start::run(options, starter))
}

/// In a process that a keeper became by an upgrade: goes on being the keeper, and returns the exit
/// code of the run. Must be called first of all, before arguments are looked at.
#[must_use]
pub fn take_over() -> Option<i32> {
    let keeper = upgrade::take_over()?;
    Some(complain(keeper.map_err(KeeperError::from).and_then(run::start::keep)))
}

/// In a process that a keeper became by an upgrade, and that cannot go on as one: becomes the old
/// binary again, which says so. Returns, with the reason, only if that failed.
#[must_use]
pub fn give_back(why: &str) -> TakeOverError {
    upgrade::give_back(why)
}

/// In a process that is to become an agent when it is needed: waits for that. Returns an exit code
/// if it never is; `None`: this process is something else. Must be called before arguments are
/// looked at.
#[must_use]
pub fn spare() -> Option<i32> {
    link::spare::spare()
}

#[derive(Debug, Clone)]
pub struct HoldOptions {
    pub dir: PathBuf,
    pub stop_timeout: Duration,
    /// Bytes as `core::text::bytes` writes them.
    pub command: Vec<String>,
}

/// Holds one command without an agent; returns its exit code.
#[must_use]
pub fn hold(options: HoldOptions) -> i32 {
    complain(run::hold::hold(&options))
}

/// The role `__check`: can this binary take over what the running keeper would hand it?
///
/// # Errors
/// What it cannot read, and why.
pub fn check() -> Result<(), TakeOverError> {
    upgrade::check()
}

#[expect(clippy::disallowed_macros, reason = "the loop has not begun, or is over")]
fn complain(code: Result<i32, KeeperError>) -> i32 {
    code.unwrap_or_else(|error| {
        eprintln!("mainstay: {error}");
        1
    })
}

/// Identifies a run: 16 hex digits.
fn run_id() -> io::Result<String> {
    let mut bytes = [0u8; 8];
    rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn own_executable() -> io::Result<OwnedFd> {
    open_executable(Path::new("/proc/self/exe"))
}

/// Opened above the numbers that a child gives to what it inherits: they are taken before it is
/// executed.
fn open_executable(path: &Path) -> io::Result<OwnedFd> {
    let fd = mainstay_sys::nonblocking::open_file(path)?;
    let above = i32::try_from(mainstay_sys::spawn::MAX_DESCRIPTORS).unwrap_or(i32::MAX);
    // Not to be had where only few descriptors are allowed.
    Ok(rustix::io::fcntl_dupfd_cloexec(&fd, above).unwrap_or(fd))
}
