//! What holds for everything that is started in a run: its environment, its limits, its cgroup.

use super::c_path;
use crate::event_loop::reserve::DescriptorTable;
use mainstay_core::{name::Name, text::bytes};
use mainstay_sys::{
    cgroup, cookie,
    disk::Disk,
    memory, nonblocking,
    spawn::{self, Program, Window},
};
use mainstay_wire::link::Exec;
use std::{
    borrow::Cow,
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
    /// How soon jobs go when memory runs out, where that is not as it is for us.
    pub(crate) oom_score: Option<i32>,
    pub(crate) cgroup: Option<cgroup::Root>,
    pub(crate) null: OwnedFd,
    /// Jobs may have our stderr.
    pub(crate) lends_stderr: bool,
    /// How children get their descriptors.
    pub(crate) window: Window,
    /// That of the run directory.
    pub(crate) disk: Disk,
    /// Those of the sockets that jobs listen on.
    pub(crate) user_disks: Disk,
}

impl RunContext {
    pub(crate) fn new(
        run: String,
        cgroup: Option<cgroup::Root>,
        window: impl FnOnce(u64) -> Window,
        (disk, user_disks): (Disk, Disk),
    ) -> io::Result<RunContext> {
        let nofile = spawn::raise_nofile();
        Ok(RunContext {
            run,
            env: environment(),
            ignored: mainstay_sys::signal::ignored(),
            nofile,
            oom_score: go_last(),
            window: window(most_descriptors(nofile)),
            cgroup,
            null: nonblocking::null()?,
            lends_stderr: true,
            disk,
            user_disks,
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
        let mut env: BTreeMap<Cow<'_, OsStr>, Cow<'_, OsStr>> = BTreeMap::new();
        for (name, value) in &self.env {
            env.insert(name.into(), value.into());
        }
        for name in &exec.unset {
            env.remove(&bytes::to_os(name));
        }
        let own = [(cookie::RUN, self.run.as_str())];
        let own = own.into_iter().chain(job.map(|job| (cookie::JOB, job.as_str())));
        let given =
            exec.env.iter().chain(more).map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in given.chain(own) {
            env.insert(bytes::to_os(name), bytes::to_os(value));
        }
        let env: Vec<_> = env.into_iter().collect();
        let argv: Vec<_> = exec.argv.iter().map(|word| bytes::to_os(word)).collect();
        let mut program = Program::new(&argv, &env)?;
        program.cwd = exec.cwd.as_deref().map(c_path).transpose()?;
        program.identity = exec.identity.as_ref().map(|id| (id.uid, id.gid, id.groups.clone()));
        program.umask = exec.umask;
        program.nice = exec.nice;
        program.original_nofile = self.nofile;
        program.oom_score = self.oom_score;
        program.ignored.clone_from(&self.ignored);
        Ok(program)
    }
}

/// When memory runs out the kernel takes others before a keeper and its agent, if it may be told so.
const LAST_TO_GO: i32 = -900;

/// Tells the kernel; how it was before, if that was something else.
pub(crate) fn go_last() -> Option<i32> {
    let before = memory::oom_score().filter(|score| *score > LAST_TO_GO)?;
    memory::set_oom_score(LAST_TO_GO).then_some(before)
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
