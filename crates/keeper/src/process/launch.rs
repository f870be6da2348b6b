//! From a [`Spawn`] to a cloned process: everything between the decision and the clone.

use crate::{
    event_loop::reserve::DescriptorTable,
    output::{Channel, Output, Owner, Stream, WriteEnd},
    process::{
        exec_error::ExecContext,
        job::{Job, Phase, Process, StopRule},
        listen_sockets, terminal,
        tree::{COOKIE_JOB, COOKIE_RUN, COOKIE_TASK, Tree},
    },
    run::dirs,
};
use mainstay_core::{
    exit::Asked,
    name::Name,
    plan::{Stderr, Stdin},
};
use mainstay_sys::{
    cgroup::{self, Group},
    spawn::{self, Descriptors, Into, Program, Resource},
};
use mainstay_wire::link::{Exec, Spawn};
use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
    net::SocketType,
    pipe::PipeFlags,
};
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

/// What holds for everything that is started in this run.
#[derive(Debug)]
pub(crate) struct RunContext {
    pub(crate) run: String,
    /// The environment that the keeper was started with.
    pub(crate) env: Vec<(String, String)>,
    pub(crate) ignored: Vec<i32>,
    pub(crate) nofile: Option<(u64, u64)>,
    pub(crate) cgroup: Option<cgroup::Root>,
    pub(crate) null: OwnedFd,
}

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

impl RunContext {
    pub(crate) fn new(run: String, cgroup: Option<cgroup::Root>) -> io::Result<RunContext> {
        Ok(RunContext {
            run,
            env: environment(),
            ignored: mainstay_sys::signal::ignored(),
            nofile: spawn::raise_nofile(),
            cgroup,
            null: rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?,
        })
    }

    /// Our own table of descriptors, whose limit was raised as far as it goes.
    pub(crate) fn table(&self) -> DescriptorTable {
        DescriptorTable::new(self.nofile.map_or(u64::MAX, |(_, hard)| hard))
    }

    /// The program of a job or task, without its descriptors.
    pub(crate) fn program(
        &self,
        exec: &Exec,
        job: &Name,
        more: &[(String, String)],
    ) -> io::Result<Program> {
        let mut env: BTreeMap<&str, &str> = BTreeMap::new();
        for (name, value) in &self.env {
            env.insert(name, value);
        }
        for name in &exec.unset {
            env.remove(name.as_str());
        }
        for (name, value) in exec.env.iter().chain(more) {
            env.insert(name, value);
        }
        env.insert(COOKIE_RUN, &self.run);
        env.insert(COOKIE_JOB, job.as_str());
        let env: Vec<(String, String)> =
            env.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let mut program = Program::new(&exec.argv, &env)?;
        program.cwd = exec.cwd.as_deref().map(c_path).transpose()?;
        program.identity = exec.identity.as_ref().map(|id| (id.uid, id.gid, id.groups.clone()));
        program.umask = exec.umask;
        program.nice = exec.nice;
        program.original_nofile = self.nofile;
        program.ignored.clone_from(&self.ignored);
        Ok(program)
    }
}

/// Not what we tell ourselves over an upgrade, and not what was meant for us as a service.
fn environment() -> Vec<(String, String)> {
    const OURS: [&str; 10] = [
        crate::upgrade::VARIABLE,
        COOKIE_RUN,
        COOKIE_JOB,
        COOKIE_TASK,
        "NOTIFY_SOCKET",
        "LISTEN_FDS",
        "LISTEN_PID",
        "LISTEN_FDNAMES",
        "WATCHDOG_USEC",
        "WATCHDOG_PID",
    ];
    std::env::vars_os()
        .map(|(name, value)| {
            (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
        })
        .filter(|(name, _)| !OURS.contains(&name.as_str()))
        .collect()
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

/// Where the output of a process goes.
pub(crate) enum Capture<'a> {
    Inherit,
    Pipes { output: &'a Output, next_key: &'a mut u64 },
}

/// Starts the process. The job's old files are replaced first; nothing is held after a failure.
pub(crate) fn launch(
    context: &RunContext,
    job: &mut Job,
    spawn: &Spawn,
    notify_path: &Path,
    capture: Capture<'_>,
) -> Result<Process, LaunchError> {
    listen_sockets::hold(&mut job.sockets, &spawn.sockets)
        .map_err(|(what, error)| LaunchError { doing: what, error })?;
    let mut more = Vec::new();
    if spawn.notify {
        if job.notify.is_none() {
            let bound = bind_notify(notify_path, spawn).map_err(doing("make its notify socket"))?;
            job.notify = Some(bound);
        }
        more.push(("NOTIFY_SOCKET".to_owned(), notify_path.display().to_string()));
    }
    if let Some(every) = spawn.watchdog_us {
        // Without WATCHDOG_PID: whoever of its tree finds it may speak for the job.
        more.push(("WATCHDOG_USEC".to_owned(), every.to_string()));
    }
    if !spawn.sockets.is_empty() {
        let names: Vec<&str> = spawn.sockets.iter().map(|socket| socket.name.as_str()).collect();
        more.push(("LISTEN_FDS".to_owned(), names.len().to_string()));
        more.push(("LISTEN_FDNAMES".to_owned(), names.join(":")));
    }
    let mut program =
        context.program(&spawn.exec, &spawn.job, &more).map_err(doing("prepare its command"))?;
    if !spawn.sockets.is_empty() {
        program.tell_listen_pid();
    }
    program.session = spawn.session;
    program.terminal = spawn.tty;
    program.stdin = match &spawn.stdin {
        Stdin::Null | Stdin::Inherit => None,
        Stdin::File(path) => Some(c_path(path).map_err(doing("name its input"))?),
    };
    for (name, limit) in &spawn.limits.rlimits {
        if name == "nofile" {
            program.original_nofile = None;
        }
        program.rlimits.extend(Resource::named(name).map(|resource| (resource, *limit)));
    }

    let (group, unenforced) = enter_group(context, spawn);
    let group_fd = group.as_ref().and_then(|group| group.open().ok());
    let into = match (&group, &group_fd) {
        (Some(group), Some(fd)) => Some(Into {
            group: fd.as_fd(),
            procs: c_path(&group.procs_file()).map_err(doing("name its cgroup"))?,
        }),
        _ => None,
    };

    let identity = spawn.exec.identity.as_ref();
    let own = |fd: &OwnedFd| {
        // So that it may open /dev/stdout anew. Not being allowed to is no reason not to start.
        if let Some(identity) = identity {
            let uid = rustix::fs::Uid::from_raw(identity.uid);
            let _ = rustix::fs::fchown(fd, Some(uid), None);
        }
    };
    let separate = spawn.stderr == Stderr::Separate;
    let mut pipes = Vec::new();
    if let (Capture::Pipes { .. }, true) = (&capture, spawn.tty) {
        let (master, slave) = terminal::open().map_err(doing("make a terminal for it"))?;
        if !context.table().has_room_for_job(&slave) {
            return Err(doing("start it and keep a few descriptors")(Errno::MFILE.into()));
        }
        own(&slave);
        pipes.push((Channel::Stdout, master, slave));
    } else if let Capture::Pipes { .. } = capture {
        for channel in
            [Channel::Stdout, Channel::Stderr].into_iter().take(if separate { 2 } else { 1 })
        {
            let (read, write) = pipe().map_err(doing("make a pipe for its output"))?;
            if !context.table().has_room_for_job(&write) {
                return Err(doing("start it and keep a few descriptors")(Errno::MFILE.into()));
            }
            own(&write);
            pipes.push((channel, read, write));
        }
    }
    let input = match spawn.stdin {
        Stdin::Null | Stdin::File(_) => context.null.as_fd(),
        Stdin::Inherit => rustix::stdio::stdin(),
    };
    let stdio =
        pipes.first().zip(pipes.last()).map(|(out, err)| [input, out.2.as_fd(), err.2.as_fd()]);
    let ready =
        spawn.ready_fd.map(|_| pipe()).transpose().map_err(doing("make its notification pipe"))?;
    let descriptors = Descriptors {
        stdio,
        extra: listen_sockets::in_order(&job.sockets, &spawn.sockets),
        placed: ready.as_ref().zip(spawn.ready_fd).map(|((_, write), at)| (write.as_fd(), at)),
    };
    if descriptors.extra.len() + 4 > spawn::MAX_DESCRIPTORS {
        return Err(doing("pass its sockets")(io::Error::from(io::ErrorKind::InvalidInput)));
    }
    let free = i32::try_from(descriptors.extra.len() + 3).unwrap_or(i32::MAX);
    if spawn.ready_fd.is_some_and(|at| at < free) {
        let what = "pass its notification descriptor: a socket or a standard stream has its number";
        return Err(doing(what)(io::Error::from(io::ErrorKind::InvalidInput)));
    }
    let oom_before = group.as_ref().map_or(0, Group::oom_kills);
    let cloned = spawn::spawn(&program, &descriptors, into.as_ref())
        .map_err(doing("clone a process for it"))?;

    let mut streams = Vec::new();
    if let Capture::Pipes { output, next_key } = capture {
        for (channel, fd, other) in pipes {
            *next_key += 1;
            streams.push(*next_key);
            let owner = Owner::Job(spawn.job.clone());
            output.open(Stream {
                key: *next_key,
                owner,
                channel,
                log: spawn.settings.log.clone(),
                fd,
                write_end: if spawn.tty { WriteEnd::Terminal(Some(other)) } else { WriteEnd::Pipe },
                partial: Vec::new(),
            });
        }
    }
    let tree = Tree::new(group.filter(|_| cloned.in_group));
    Ok(Process {
        incarnation: spawn.incarnation,
        pid: cloned.pid,
        main: spawn.settings.main,
        tree,
        unenforced,
        phase: Phase::Execing { failure: cloned.failure },
        asked: Asked::None,
        fenced: false,
        fence_at: spawn.fence_at,
        stop: StopRule::of(&spawn.settings),
        log: Some(spawn.settings.log.clone()),
        streams,
        oom_before,
        notified: BTreeMap::new(),
        ready: ready.map(|(read, _)| read),
        exec_context: ExecContext::new(&spawn.exec, &program),
    })
}

/// The job's cgroup with its limits, and which of them nobody enforces.
fn enter_group(context: &RunContext, spawn: &Spawn) -> (Option<Group>, Vec<String>) {
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
    match context.cgroup.as_ref().and_then(|root| root.job(spawn.job.as_str()).ok()) {
        Some(group) => {
            let unenforced =
                if any || spawn.incarnation > 1 { group.limit(&wanted) } else { Vec::new() };
            (Some(group), unenforced.into_iter().map(str::to_owned).collect())
        }
        None => {
            let given = names.into_iter().filter(|(_, given)| *given);
            (None, given.map(|(name, _)| name.to_owned()).collect())
        }
    }
}

fn bind_notify(path: &Path, spawn: &Spawn) -> io::Result<OwnedFd> {
    use std::os::unix::fs::PermissionsExt;
    let socket = dirs::bind(path, SocketType::DGRAM)?;
    rustix::net::sockopt::set_socket_passcred(&socket, true)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    if let Some(identity) = &spawn.exec.identity {
        std::os::unix::fs::chown(path, Some(identity.uid), Some(identity.gid))?;
    }
    Ok(socket)
}
