//! Where nodes of the version before live: all projects of a user in the same directories.

use super::{Presence, UserEnv};
use crate::args::{Cli, Command};
use clap::Parser;
use mainstay_wire::run_dir::{self, RunFile};
use std::{
    ffi::OsString,
    fs,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

/// The one run directory that a user had.
#[derive(Debug)]
pub(crate) struct Former<'a> {
    run_dir: &'a Path,
}

impl Former<'_> {
    pub(crate) fn new(run_dir: &Path) -> Former<'_> {
        Former { run_dir }
    }

    /// The process that keeps a node there, if it is known to be of this project.
    pub(crate) fn keeper_of(&self, project: &Path) -> Option<u32> {
        let run = self.running()?;
        (project_of_process(run.pid)? == project).then_some(run.pid)
    }

    /// Whether what is there may be of this project: it is not known to be of another one.
    pub(crate) fn may_be_of(&self, project: &Path) -> bool {
        let Some(run) = self.running() else { return true };
        project_of_process(run.pid).is_none_or(|its| its == project)
    }

    fn running(&self) -> Option<RunFile> {
        let running = Presence::of(self.run_dir) == Some(Presence::Running);
        RunFile::read(self.run_dir).filter(|_| running)
    }
}

/// The project of the node in a run directory.
pub(crate) fn project_in(run_dir: &Path) -> Option<PathBuf> {
    run_dir::project_of(run_dir).or_else(|| project_of_process(RunFile::read(run_dir)?.pid))
}

/// By what it was started with, and where: a run did not write that down.
fn project_of_process(pid: u32) -> Option<PathBuf> {
    let arguments = arguments(pid)?;
    let Command::Run(args) = Cli::try_parse_from(arguments).ok()?.command else { return None };
    let cwd = fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
    let variables = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = variables.split(|byte| *byte == 0);
    let config = variables.find_map(|it| it.strip_prefix(b"MAINSTAY_CONFIG="));
    let config = config.map(|path| PathBuf::from(OsString::from_vec(path.to_vec())));
    Some(UserEnv { cwd, config, ..UserEnv::default() }.project_of(&args.run))
}

/// The words that a process was started with.
pub(super) fn arguments(pid: u32) -> Option<Vec<OsString>> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = line.strip_suffix(b"\0")?.split(|byte| *byte == 0);
    Some(words.map(|word| OsString::from_vec(word.to_vec())).collect())
}
