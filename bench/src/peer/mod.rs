//! The supervisors side by side: how each is set up with n jobs, started, and asked to end.

pub(crate) mod floor;
pub(crate) mod horust;
pub(crate) mod mainstay;
pub(crate) mod pm2;
pub(crate) mod runit;
pub(crate) mod s6;
pub(crate) mod supervisord;

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Pid;

use crate::failure::{Doing, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Who {
    Mainstay,
    S6,
    Runit,
    Supervisord,
    Pm2,
    Horust,
    Supvisors,
    Floor,
}

impl Who {
    pub(crate) const ALL: [Who; 8] = [
        Who::Mainstay,
        Who::S6,
        Who::Runit,
        Who::Supervisord,
        Who::Pm2,
        Who::Horust,
        Who::Supvisors,
        Who::Floor,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Who::Mainstay => "mainstay",
            Who::S6 => "s6",
            Who::Runit => "runit",
            Who::Supervisord => "supervisord",
            Who::Pm2 => "pm2",
            Who::Horust => "horust",
            Who::Supvisors => "supvisors",
            Who::Floor => "floor",
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Where a peer works: in memory what lives as long as its run, as /run is, and on disk its logs.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub run: PathBuf,
    pub state: PathBuf,
}

impl Place {
    pub(crate) fn make(run: PathBuf, state: PathBuf) -> Result<Place> {
        for dir in [&run, &state] {
            fs::create_dir_all(dir).doing(format_args!("make {}", dir.display()))?;
        }
        Ok(Place { run, state })
    }

    pub(crate) fn remove(&self) {
        for dir in [&self.run, &self.state] {
            let _removed_again_at_the_end = fs::remove_dir_all(dir);
        }
    }
}

/// What a peer is to run.
#[derive(Debug, Clone)]
pub(crate) struct Work {
    pub jobs: usize,
    /// The job: a copy of `sleep` under a name of its own.
    pub job: PathBuf,
    /// One more job that writes for ever; its output goes into a rotated log.
    pub talker: Option<Vec<String>>,
}

impl Work {
    /// The names of the jobs, each with its command.
    pub(crate) fn commands(&self) -> impl Iterator<Item = (String, Vec<String>)> + '_ {
        let sleep = vec![self.job.display().to_string(), "1000000".to_owned()];
        (1..=self.jobs).map(move |number| (format!("job{number}"), sleep.clone()))
    }
}

pub(crate) trait Peer {
    fn who(&self) -> Who;

    /// Writes whatever it needs to know; not part of any measurement.
    fn prepare(&self, place: &Place, work: &Work) -> Result<()>;

    /// The command that brings everything up.
    fn launch(&self, place: &Place, work: &Work) -> Command;

    /// Asks for the end of everything, and does not wait for it.
    fn stop(&self, root: Pid) -> Result<()>;
}

/// The program of this name, where there is one.
pub(crate) fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|program| program.is_file())
}

pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).doing(format_args!("make {}", parent.display()))?;
    }
    fs::write(path, text).doing(format_args!("write {}", path.display()))
}

/// A run script as s6 and runit want it.
pub(crate) fn write_script(path: &Path, command: &str) -> Result<()> {
    write(path, &format!("#!/bin/sh\nexec {command}\n"))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .doing(format_args!("make {} executable", path.display()))
}
