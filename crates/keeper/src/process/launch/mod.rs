//! From a [`Spawn`] to a cloned process, in three steps:
//!
//! ```text
//!  prepare      its sockets, its program, its cgroup       what may take memory or be refused
//!  descriptors  pipes or a terminal, stdin, sockets        what the child inherits
//!  clone        one system call; then it is a Process
//! ```
//!
//! The job's old files have been replaced before; nothing is held after a failure.

mod context;
mod descriptors;
mod prepare;

pub(crate) use context::{RunContext, go_last, most_descriptors};
pub(crate) use descriptors::Capture;

use crate::process::{
    exec_error::ExecContext,
    job::{Job, Phase, Process, StopRule},
    tree::Tree,
};
use descriptors::Endpoints;
use mainstay_core::exit::Asked;
use mainstay_sys::{cgroup::Group, spawn::IntoCgroup};
use mainstay_wire::link::Spawn;
use prepare::Prepared;
use rustix::pipe::PipeFlags;
use std::{
    collections::BTreeMap,
    ffi::CString,
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
};

/// What was being done when it failed, and why.
#[derive(Debug)]
pub(crate) struct LaunchError {
    pub(crate) doing: String,
    pub(crate) error: io::Error,
}

fn doing(what: impl std::fmt::Display) -> impl FnOnce(io::Error) -> LaunchError {
    let doing = what.to_string();
    move |error| LaunchError { doing, error }
}

pub(crate) fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
}

/// A pipe whose reading end belongs to us.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&read, true)?;
    Ok((read, write))
}

/// Starts the process.
pub(crate) fn launch(
    context: &RunContext,
    job: &mut Job,
    spawn: &Spawn,
    notify_path: &Path,
    capture: Capture<'_>,
) -> Result<Process, LaunchError> {
    let prepared = prepare::prepare(context, job, spawn, notify_path)?;
    let endpoints = Endpoints::open(context, spawn, &capture)?;
    let (process, endpoints) = clone(context, job, spawn, prepared, endpoints)?;
    Ok(Process { streams: endpoints.capture(spawn, process.pid, capture), ..process })
}

/// The process as it is right after the clone; its output is not read yet.
fn clone(
    context: &RunContext,
    job: &Job,
    spawn: &Spawn,
    prepared: Prepared,
    mut endpoints: Endpoints,
) -> Result<(Process, Endpoints), LaunchError> {
    let Prepared { program, group, group_fd, unenforced } = prepared;
    let into = match (&group, &group_fd) {
        (Some(group), Some(fd)) => Some(IntoCgroup {
            group: fd.as_fd(),
            procs: c_path(&group.procs_file()).map_err(doing("name its cgroup"))?,
        }),
        _ => None,
    };
    let descriptors = endpoints.descriptors(context, spawn, &job.sockets)?;
    let oom_before = group.as_ref().map_or(0, Group::oom_kills);
    let cloned = context
        .window
        .spawn(&program, &descriptors, into.as_ref())
        .map_err(doing("clone a process for it"))?;
    let process = Process {
        incarnation: spawn.incarnation,
        pid: cloned.pid,
        main: spawn.settings.main,
        tree: Tree::new(group.filter(|_| cloned.in_group)),
        unenforced,
        phase: Phase::Execing { failure: cloned.failure },
        asked: Asked::None,
        fenced: false,
        fence_at: spawn.fence_at,
        stop: StopRule::of(&spawn.settings),
        log: Some(spawn.settings.log.clone()),
        streams: Vec::new(),
        oom_before,
        notified: BTreeMap::new(),
        ready: endpoints.take_ready(),
        exec_context: ExecContext::new(&spawn.exec, &program),
    };
    Ok((process, endpoints))
}
