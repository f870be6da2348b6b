//! `metrics.json` in the run directory: what users have measured so far in this run.

use super::value::Value;
use mainstay_sys::state_dir::{Durability, StateDir};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

const NAME: &str = "metrics.json";

#[derive(Debug)]
pub(super) struct File {
    run_dir: PathBuf,
    run: String,
    failure_told: AtomicBool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Content<V> {
    run: String,
    values: V,
}

impl File {
    pub(super) fn new(run_dir: &Path, run: &str) -> File {
        let run_dir = run_dir.to_owned();
        File { run_dir, run: run.to_owned(), failure_told: AtomicBool::new(false) }
    }

    fn path(&self) -> PathBuf {
        self.run_dir.join(NAME)
    }

    /// Empty: there is none of this run.
    pub(super) fn read(&self) -> BTreeMap<String, Value> {
        let bytes = match fs::read(self.path()) {
            Ok(bytes) => bytes,
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    tracing::warn!("what users measured is lost: {error}");
                }
                return BTreeMap::new();
            }
        };
        match serde_json::from_slice::<Content<BTreeMap<String, Value>>>(&bytes) {
            Ok(content) if content.run == self.run => content.values,
            Ok(_) => BTreeMap::new(),
            Err(error) => {
                tracing::warn!("what users measured is lost, metrics.json cannot be read: {error}");
                BTreeMap::new()
            }
        }
    }

    pub(super) fn write(&self, values: &BTreeMap<String, Value>) {
        let written = serde_json::to_vec(&Content { run: self.run.clone(), values })
            .map_err(io::Error::from)
            .and_then(|bytes| {
                StateDir::open(&self.run_dir, Durability::Process)?.replace(NAME, 0o600, &bytes)
            });
        match written {
            Ok(_) => self.failure_told.store(false, Ordering::Relaxed),
            Err(error) if !self.failure_told.swap(true, Ordering::Relaxed) => {
                tracing::error!(
                    "cannot write {}: {error}; what users measure will not outlive this agent",
                    self.path().display()
                );
            }
            Err(_) => {}
        }
    }
}
