//! What a process needs before it is cloned: sockets, program, cgroup.

use super::{LaunchError, RunContext, c_path, doing};
use crate::{
    process::{job::Job, listen_sockets},
    run::dirs,
};
use mainstay_core::plan::Stdin;
use mainstay_sys::{
    cgroup::{self, Group},
    run_files,
    spawn::{Program, Resource},
};
use mainstay_wire::link::{Identity, Spawn};
use rustix::net::SocketType;
use std::{io, os::fd::OwnedFd, path::Path};

/// A program that can be cloned.
pub(super) struct Prepared {
    pub(super) program: Program,
    pub(super) group: Option<Group>,
    /// By which it is cloned into its group.
    pub(super) group_fd: Option<OwnedFd>,
    /// Limits that nobody enforces here.
    pub(super) unenforced: Vec<String>,
}

pub(super) fn prepare(
    context: &RunContext,
    job: &mut Job,
    spawn: &Spawn,
    notify_path: &Path,
) -> Result<Prepared, LaunchError> {
    listen_sockets::hold(&mut job.sockets, &spawn.sockets, &context.user_disks)
        .map_err(|(what, error)| LaunchError { doing: what, error })?;
    if spawn.notify && job.notify.is_none() {
        let (path, identity) = (notify_path.to_owned(), spawn.exec.identity.clone());
        let bound = context.disk.run(move || bind_notify(&path, identity.as_ref()));
        let bound = bound.map_err(doing("make its notify socket"))?;
        job.notify = Some(bound);
    }
    let program = program(context, spawn, notify_path)?;
    let (group, group_fd, unenforced) = open_group(context, spawn, job.spawns > 1);
    Ok(Prepared { program, group, group_fd, unenforced })
}

fn program(
    context: &RunContext,
    spawn: &Spawn,
    notify_path: &Path,
) -> Result<Program, LaunchError> {
    let told = protocol_env(spawn, notify_path);
    let mut program = context
        .program(&spawn.exec, Some(&spawn.job), &told)
        .map_err(doing("prepare its command"))?;
    if !spawn.sockets.is_empty() {
        program.tell_listen_pid();
    }
    program.session = spawn.session;
    program.terminal = spawn.tty;
    program.stdin = match &spawn.stdin {
        Stdin::Null | Stdin::Inherit | Stdin::Open => None,
        Stdin::File(path) => Some(c_path(path).map_err(doing("name its input"))?),
    };
    for (name, limit) in &spawn.limits.rlimits {
        if name == "nofile" {
            program.original_nofile = None;
        }
        program.rlimits.extend(Resource::named(name).map(|resource| (resource, *limit)));
    }
    Ok(program)
}

/// The variables by which a process learns of its notify socket, watchdog and listening sockets.
fn protocol_env(spawn: &Spawn, notify_path: &Path) -> Vec<(String, String)> {
    let mut env = Vec::new();
    if spawn.notify {
        env.push(("NOTIFY_SOCKET".to_owned(), notify_path.display().to_string()));
    }
    if let Some(every) = spawn.watchdog_us {
        // Without WATCHDOG_PID: whoever of its tree finds it may speak for the job.
        env.push(("WATCHDOG_USEC".to_owned(), every.to_string()));
    }
    if !spawn.sockets.is_empty() {
        let names: Vec<&str> = spawn.sockets.iter().map(|socket| socket.name.as_str()).collect();
        env.push(("LISTEN_FDS".to_owned(), names.len().to_string()));
        env.push(("LISTEN_FDNAMES".to_owned(), names.join(":")));
    }
    env
}

/// The job's cgroup with its limits, and which of them nobody enforces.
fn open_group(
    context: &RunContext,
    spawn: &Spawn,
    again: bool,
) -> (Option<Group>, Option<OwnedFd>, Vec<String>) {
    let wanted = cgroup::Limits {
        memory: spawn.limits.memory,
        cpus: spawn.limits.cpus,
        pids: spawn.limits.pids,
    };
    let names = [
        ("memory", wanted.memory.is_some()),
        ("cpus", wanted.cpus.is_some()),
        ("pids", wanted.pids.is_some()),
    ];
    let any = names.iter().any(|(_, given)| *given);
    let opened =
        context.cgroup.as_ref().and_then(|root| root.open_job(spawn.job.as_str(), again).ok());
    match opened {
        Some((group, fd)) => {
            let unenforced =
                if any || spawn.incarnation > 1 { group.limit(&wanted) } else { Vec::new() };
            (Some(group), fd, unenforced.into_iter().map(str::to_owned).collect())
        }
        None => {
            let given = names.into_iter().filter(|(_, given)| *given);
            (None, None, given.map(|(name, _)| name.to_owned()).collect())
        }
    }
}

fn bind_notify(path: &Path, identity: Option<&Identity>) -> io::Result<OwnedFd> {
    let socket = dirs::bind(path, SocketType::DGRAM)?;
    rustix::net::sockopt::set_socket_passcred(&socket, true)?;
    run_files::set_mode(path, 0o600)?;
    if let Some(identity) = identity {
        run_files::set_owner(path, identity.uid, identity.gid)?;
    }
    Ok(socket)
}
