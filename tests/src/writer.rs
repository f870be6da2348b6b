//! What the program `mainstay-test-writer` writes, and how it ends: known to it and to whoever
//! checks its log.
//!
//! It writes lines `RUN NUMBER`, numbered from 1, in bursts with a pause in the middle of a line, and
//! notes in a file beside how many it has written. `RUN` counts its starts. One that crashes ends
//! after a number of lines with an exit code that follow from its name and `RUN`.

use crate::Random;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Lines before it is noted how many there are.
pub const BURST: u64 = 10;

/// What a run that crashes writes before it does.
#[must_use]
pub fn lines(job: &str, run: u64) -> u64 {
    BURST * dice(job, run).within(5..40)
}

/// What a run that crashes ends with.
#[must_use]
pub fn code(job: &str, run: u64) -> i32 {
    let mut dice = dice(job, run);
    dice.draw();
    i32::try_from(dice.within(1..120)).expect("small")
}

fn dice(job: &str, run: u64) -> Random {
    let name = job.bytes().fold(run, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    Random::new(name)
}

/// Where one job's writer keeps its notes.
#[derive(Debug, Clone)]
pub struct Notes {
    dir: PathBuf,
    job: String,
}

impl Notes {
    #[must_use]
    pub fn new(dir: &Path, job: &str) -> Notes {
        Notes { dir: dir.to_owned(), job: job.to_owned() }
    }

    /// Held by the run that lives.
    #[must_use]
    pub fn lock(&self) -> PathBuf {
        self.dir.join(format!("{}.lock", self.job))
    }

    #[must_use]
    pub fn runs_file(&self) -> PathBuf {
        self.dir.join(format!("{}.runs", self.job))
    }

    #[must_use]
    pub fn written_file(&self, run: u64) -> PathBuf {
        self.dir.join(format!("{}.{run}", self.job))
    }

    /// Written by a run that found another one alive.
    #[must_use]
    pub fn alarm(&self) -> PathBuf {
        self.dir.join(format!("{}.twice", self.job))
    }

    /// How often it was started.
    #[must_use]
    pub fn runs(&self) -> u64 {
        number(&self.runs_file())
    }

    /// How many lines a run has written at least; at most a burst more.
    #[must_use]
    pub fn written(&self, run: u64) -> u64 {
        number(&self.written_file(run))
    }
}

fn number(path: &Path) -> u64 {
    fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}
