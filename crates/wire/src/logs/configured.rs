//! The jobs of a configuration, among all that have ever written: those of the plan that is in force.

use crate::run_dir::{self, PLAN_FILE};
use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

#[derive(Debug)]
pub struct ConfiguredJobs {
    run_dir: PathBuf,
    /// The file that they were last read from: another plan is another file.
    seen: Option<u64>,
    /// `None`: nobody knows them, so that all may be meant.
    names: Option<BTreeSet<String>>,
}

impl ConfiguredJobs {
    /// Those of the node in a run directory; `at_rest`: as long as none is there.
    #[must_use]
    pub fn new(run_dir: &Path, at_rest: Option<BTreeSet<String>>) -> ConfiguredJobs {
        ConfiguredJobs { run_dir: run_dir.to_owned(), seen: None, names: at_rest }
    }

    pub(super) fn retain(&mut self, jobs: &mut Vec<String>) {
        self.look();
        jobs.retain(|job| self.names.as_ref().is_none_or(|names| names.contains(job)));
    }

    fn look(&mut self) {
        let file = fs::metadata(self.run_dir.join(PLAN_FILE)).ok().map(|it| it.ino());
        if file.is_some() && file != self.seen {
            self.seen = file;
            self.names = run_dir::applied_jobs(&self.run_dir).or_else(|| self.names.take());
        }
    }
}
