//! What a keeper that was killed has left: found by its directory, killed, and told.

use crate::{
    error::KeeperError,
    run::{
        dirs::{self, RunDir},
        hold,
    },
};
use mainstay_sys::{
    cgroup, clock, proc,
    sweep::{DeadRun, Leader, Swept},
};
use mainstay_wire::{
    run_dir::{self, NamedRun},
    state::{ContainerState, ContainerStatus},
};
use std::{fmt, path::Path};

/// What was found in a directory.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// The run that had not ended by itself, if there was one.
    pub run: Option<String>,
    pub killed: Vec<Swept>,
}

/// Why a directory is not swept.
#[derive(Debug)]
pub struct SweepError(KeeperError);

impl fmt::Display for SweepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for SweepError {}

/// Kills what is left of the last run or `hold` in a directory, unless that goes on.
///
/// # Errors
/// It goes on, or the directory is not ours.
pub fn sweep(dir: &Path) -> Result<Sweep, SweepError> {
    let swept = if dirs::is_run_dir(dir) { sweep_run(dir) } else { sweep_held(dir) };
    swept.map_err(SweepError)
}

fn sweep_run(dir: &Path) -> Result<Sweep, KeeperError> {
    let dir = RunDir::lock(dir)?;
    let swept = kill(dead_run(dir.path()));
    dirs::remove_files(dir.path());
    Ok(swept)
}

fn sweep_held(dir: &Path) -> Result<Sweep, KeeperError> {
    let (dir, _lock) = hold::lock(dir)?;
    Ok(kill(dead_hold(&dir)))
}

fn kill(dead: Option<DeadRun>) -> Sweep {
    let killed = dead.as_ref().map(DeadRun::kill).unwrap_or_default();
    Sweep { run: dead.map(|dead| dead.run), killed }
}

/// What is left of the last run in this directory, if that was killed.
pub(super) fn dead_run(run_dir: &Path) -> Option<DeadRun> {
    let NamedRun { run, boot, cgroup } = NamedRun::read(run_dir)?;
    // Of another boot the numbers would be somebody else's.
    let leaders = boot.iter().flat_map(|_| run_dir::leaders(run_dir));
    let leaders = leaders.map(|(pid, begun_by)| Leader { pid, begun_by }).collect();
    let boot = boot.unwrap_or_else(proc::boot_id);
    let cgroup = cgroup.or_else(|| cgroup::find(&run));
    let alive_at = run_dir::last_written(run_dir).map_or(0, clock::boottime_at);
    Some(DeadRun { run, boot, cgroup, leaders, alive_at })
}

/// What is left of the last `hold` in this directory, if that was killed. Somebody else's state
/// file tells nothing.
pub(super) fn dead_hold(dir: &Path) -> Option<DeadRun> {
    let (text, written) = dirs::read_own(&dir.join("state"))?;
    let state: ContainerState = serde_json::from_slice(&text).ok()?;
    let held = state.held.filter(|_| state.status == ContainerStatus::Up)?;
    let leader = state.pid.zip(state.started);
    Some(DeadRun {
        run: held.run,
        boot: held.boot,
        cgroup: None,
        leaders: leader.map(|(pid, begun_by)| Leader { pid, begun_by }).into_iter().collect(),
        alive_at: clock::boottime_at(written),
    })
}

/// A line about one of them.
pub(super) fn line(swept: &Swept) -> String {
    let Swept { pid, command, found } = swept;
    format!("killed {pid}, left by an earlier run (known by its {}): {command}", found.word())
}
