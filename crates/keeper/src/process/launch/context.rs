//! What holds for everything that is started in a run: its environment, its limits, its cgroup.

use super::c_path;
use crate::event_loop::reserve::DescriptorTable;
use mainstay_core::name::Name;
use mainstay_sys::{
    cgroup, cookie,
    spawn::{self, Program, Window},
};
use mainstay_wire::link::Exec;
use rustix::fs::{Mode, OFlags};
use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    io,
    os::fd::OwnedFd,
};

/// What holds for everything that is started in this run.
#[derive(Debug)]
pub(crate) struct RunContext {
    pub(crate) run: String,
    /// The environment that the keeper was started with.
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) ignored: Vec<i32>,
    pub(crate) nofile: Option<(u64, u64)>,
    pub(crate) cgroup: Option<cgroup::Root>,
    pub(crate) null: OwnedFd,
    /// How children get their descriptors.
    pub(crate) window: Window,
}

impl RunContext {
    pub(crate) fn new(
        run: String,
        cgroup: Option<cgroup::Root>,
        window: impl FnOnce(u64) -> Window,
    ) -> io::Result<RunContext> {
        let nofile = spawn::raise_nofile();
        Ok(RunContext {
            run,
            env: environment(),
            ignored: mainstay_sys::signal::ignored(),
            nofile,
            window: window(most_descriptors(nofile)),
            cgroup,
            null: rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?,
        })
    }

    /// Our own table of descriptors, whose limit was raised as far as it goes.
    pub(crate) fn table(&self) -> DescriptorTable {
        DescriptorTable::new(most_descriptors(self.nofile))
    }

    /// The program of a job or task, without its descriptors.
    pub(crate) fn program(
        &self,
        exec: &Exec,
        job: Option<&Name>,
        more: &[(String, String)],
    ) -> io::Result<Program> {
        let mut env: BTreeMap<&OsStr, &OsStr> = BTreeMap::new();
        for (name, value) in &self.env {
            env.insert(name, value);
        }
        for name in &exec.unset {
            env.remove(OsStr::new(name));
        }
        for (name, value) in exec.env.iter().chain(more) {
            env.insert(name.as_ref(), value.as_ref());
        }
        env.insert(cookie::RUN.as_ref(), self.run.as_ref());
        if let Some(job) = job {
            env.insert(cookie::JOB.as_ref(), job.as_str().as_ref());
        }
        let argv: Vec<&OsStr> = exec.argv.iter().map(OsStr::new).collect();
        let mut program = Program::new(&argv, &env.into_iter().collect::<Vec<_>>())?;
        program.cwd = exec.cwd.as_deref().map(c_path).transpose()?;
        program.identity = exec.identity.as_ref().map(|id| (id.uid, id.gid, id.groups.clone()));
        program.umask = exec.umask;
        program.nice = exec.nice;
        program.original_nofile = self.nofile;
        program.ignored.clone_from(&self.ignored);
        Ok(program)
    }
}

/// How many descriptors we may have, now that the limit was raised as far as it goes.
pub(crate) fn most_descriptors(nofile: Option<(u64, u64)>) -> u64 {
    nofile.map_or(u64::MAX, |(_, hard)| hard)
}

/// Not what we tell ourselves over an upgrade, and not what was meant for us as a service.
fn environment() -> Vec<(OsString, OsString)> {
    const OURS: [&str; 10] = [
        crate::upgrade::VARIABLE,
        cookie::RUN,
        cookie::JOB,
        cookie::TASK,
        "NOTIFY_SOCKET",
        "LISTEN_FDS",
        "LISTEN_PID",
        "LISTEN_FDNAMES",
        "WATCHDOG_USEC",
        "WATCHDOG_PID",
    ];
    std::env::vars_os().filter(|(name, _)| !OURS.iter().any(|ours| name == ours)).collect()
}
