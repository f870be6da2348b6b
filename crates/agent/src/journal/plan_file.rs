//! `plan.json`: the plan in force. The next agent goes on with it, whatever the file says by then.

use crate::replace::replace;
use mainstay_core::plan::Plan;
use mainstay_wire::link::FORMAT;
use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

#[derive(Debug, Serialize, Deserialize)]
struct Applied<P> {
    format: u32,
    run: String,
    state_dir: PathBuf,
    plan: P,
}

/// How far plan.json is the plan in force. What it is not, the journal holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnDisk {
    Current,
    /// There was no time to write it yet.
    Behind,
    /// It cannot be written, and that was said.
    Failed,
}

impl OnDisk {
    /// What an attempt to write it has come to.
    pub(crate) fn after(self, written: io::Result<()>, run_dir: &Path) -> OnDisk {
        match (written, self) {
            (Ok(()), OnDisk::Failed) => {
                tracing::info!("plan.json is written now");
                OnDisk::Current
            }
            (Ok(()), OnDisk::Current | OnDisk::Behind) => OnDisk::Current,
            (Err(_), OnDisk::Failed) => OnDisk::Failed,
            (Err(error), OnDisk::Current | OnDisk::Behind) => {
                tracing::error!(
                    "cannot write {}: {error}; the journal holds the plan until it can. Free some \
                     space, it is tried again by itself",
                    path(run_dir).display()
                );
                OnDisk::Failed
            }
        }
    }
}

fn path(run_dir: &Path) -> PathBuf {
    run_dir.join("plan.json")
}

/// Readable by us alone: it may hold secrets.
pub(crate) fn write(run_dir: &Path, state_dir: &Path, run: &str, plan: &Plan) -> io::Result<()> {
    let applied =
        Applied { format: FORMAT, run: run.to_owned(), state_dir: state_dir.to_owned(), plan };
    replace(&path(run_dir), 0o600, &serde_json::to_vec(&applied)?).map(drop)
}

/// The plan of this run, if one was applied.
pub(crate) fn read(run_dir: &Path, run: &str) -> Option<Plan> {
    let bytes = fs::read(path(run_dir)).ok()?;
    let applied: Applied<Plan> = serde_json::from_slice(&bytes).ok()?;
    (applied.format == FORMAT && applied.run == run).then_some(applied.plan)
}

/// Whether this binary can read the plan of a running node.
pub(crate) fn check(run_dir: &Path) -> Result<(), String> {
    let bytes = match fs::read(path(run_dir)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("cannot read plan.json: {error}")),
    };
    match serde_json::from_slice::<Applied<Plan>>(&bytes) {
        Ok(applied) if applied.format == FORMAT => Ok(()),
        Ok(applied) => {
            Err(format!("plan.json has format {}, this binary reads {FORMAT}", applied.format))
        }
        Err(error) => Err(format!("plan.json is not what this binary expects: {error}")),
    }
}

/// The state directory of the node that runs or ran in this run directory: readable also when
/// no agent answers.
#[must_use]
pub fn state_dir(run_dir: &Path) -> Option<PathBuf> {
    let bytes = fs::read(path(run_dir)).ok()?;
    let applied: Applied<serde::de::IgnoredAny> = serde_json::from_slice(&bytes).ok()?;
    Some(applied.state_dir)
}
