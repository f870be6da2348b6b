//! The first and the last steps of a run.

use crate::{
    RunOptions,
    error::KeeperError,
    keeper::{Keeper, Role},
    link::{
        node::{Node, Resources},
        starter::Starter,
    },
    output::{Output, OutputState},
    process::launch::{RunContext, most_descriptors},
    run::{
        DirError,
        dirs::{self, RunDir},
        sweep,
        terminal::ForegroundTerminal,
    },
};
use mainstay_sys::{
    cgroup,
    disk::Disk,
    fd, heap, latency, memory,
    offload::{self, Offload},
    signal::Signals,
    spawn::{self, Window},
    sweep::{DeadRun, Swept},
};
use std::{
    ffi::OsString,
    io,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    time::Duration,
};

/// A disk that takes longer for its first answer has stopped answering.
const FIRST_ANSWER: Duration = Duration::from_secs(10);
/// With fewer there is none left for a job.
const ENOUGH_DESCRIPTORS: u64 = 64;
/// Set, nothing is put into cgroups: a job's tree is then its process group.
const NO_CGROUP: &str = "MAINSTAY_NO_CGROUP";

pub(crate) fn run(options: RunOptions, starter: Option<OwnedFd>) -> Result<i32, KeeperError> {
    heap::leave_out_of_children();
    latency::ask_for_short_slices();
    let (parent, run_dir) = (options.run_parent.clone(), options.run_dir.clone());
    let dir = answered(&options.run_dir, move || RunDir::lock_in(parent.as_deref(), &run_dir))??;
    let shown = dir.path().display().to_string();
    // What a run that was killed left behind, before anything of ours is there.
    let swept: Vec<Swept> = sweep::dead_run(dir.path()).iter().flat_map(DeadRun::kill).collect();
    dir.clean().map_err(KeeperError::doing(format!("prepare the run directory {shown}")))?;
    fd::close_all_on_exec();
    let signals = Signals::block_all().map_err(KeeperError::doing("take signals"))?;
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    let run = crate::run_id().map_err(KeeperError::doing("choose a run id"))?;

    let cgroup = make_cgroup(&run);
    let root = cgroup.as_ref().map(|root| root.path().to_owned());
    dir.write_run_file(&dirs::run_file(&run, root))
        .map_err(KeeperError::doing(format!("write in the run directory {shown}")))?;

    let (wanted, instead) = (options.state_dir.clone(), dir.path().to_owned());
    let found = answered(&options.state_dir, move || state_dir(&wanted, &instead))?;
    let (state_dir, state_lock, warning) = found?;
    // The logs can be read without it, only less easily.
    let _ = dir.remember_state_dir(&state_dir);
    if let Some(project) = &options.project {
        let _ = dir.remember_project(project);
    }
    let keeper = || -> std::io::Result<Keeper> {
        let disks = (Disk::of(dir.path())?, Disk::of_users()?);
        let mut context = RunContext::new(run, cgroup, Window::open, disks)?;
        // Its stderr is read by who started it, until it has.
        context.lends_stderr = starter.is_none();
        let state_files = dirs::state_files(dir.path())?;
        let resources = Resources {
            api: dirs::listen(&dir.path().join("mainstay.sock"), 0o600)?,
            socket: dirs::listen(&dir.path().join("keeper.sock"), 0o600)?,
            state_lock,
            exe: crate::own_executable()?,
            output: Output::start(state_dir.join("logs"), OutputState::default())?,
            opener: Offload::start("opener")?,
            dir,
        };
        let mut node = Node::new(resources, state_dir, options);
        node.starter = starter.map(Starter::new);
        node.terminal = ForegroundTerminal::of_process(&context.ignored);
        Keeper::new(context, signals, state_files, Role::Node(Box::new(node)))
    };
    let mut keeper = keeper().map_err(KeeperError::doing(format!("start in {shown}")))?;
    for swept in &swept {
        keeper.log(sweep::line(swept));
    }
    if let Some(warning) = warning {
        keeper.log(warning);
    }
    let most = most_descriptors(keeper.context.nofile);
    if most < ENOUGH_DESCRIPTORS {
        keeper.log(format!(
            "only {most} files may be open here: jobs may not start, and an upgrade be refused; at \
             least {ENOUGH_DESCRIPTORS} are needed, and ten for each job (ulimit -n, LimitNOFILE=)"
        ));
    }
    keeper.start_agent();
    keep(keeper)
}

/// Keeps until the run ends; the exit code.
pub(crate) fn keep(mut keeper: Keeper) -> Result<i32, KeeperError> {
    let code = keeper.run();
    let next = NextRun::after(&keeper);
    let code = close(keeper, code);
    match next {
        None => Ok(code),
        // It comes back only if that failed.
        Some(next) => {
            Err(KeeperError::doing("begin a new run")(next.map_or_else(|it| it, NextRun::begin)))
        }
    }
}

/// The run that begins in the place of this one: the same binary, called in the same way, in the
/// same process.
struct NextRun {
    exe: OwnedFd,
    oom_score: Option<i32>,
    nofile: Option<(u64, u64)>,
}

impl NextRun {
    fn after(keeper: &Keeper) -> Option<io::Result<NextRun>> {
        let Role::Node(node) = &keeper.role else { return None };
        let (oom_score, nofile) = (keeper.context.oom_score, keeper.context.nofile);
        node.begins_anew
            .then(|| Ok(NextRun { exe: node.resources.exe.try_clone()?, oom_score, nofile }))
    }

    fn begin(self) -> io::Error {
        // Both as they were for us: the next one sees to them itself.
        self.oom_score.map(memory::set_oom_score);
        self.nofile.into_iter().for_each(spawn::restore_nofile);
        let argv: Vec<OsString> = std::env::args_os().collect();
        spawn::become_descriptor(self.exe.as_fd(), &argv, &crate::upgrade::environment())
    }
}

fn close(mut keeper: Keeper, code: i32) -> i32 {
    keeper.kill_spare();
    let Keeper { role, context, .. } = keeper;
    if let Role::Node(node) = role {
        if let Some(root) = context.cgroup {
            root.leave();
        }
        // Last of all: whoever waits for the end of the run watches these.
        let run_dir = node.resources.dir.path().to_owned();
        let _ = context.disk.run(move || {
            dirs::remove_files(&run_dir);
            Ok(())
        });
    }
    code
}

fn make_cgroup(run: &str) -> Option<cgroup::Root> {
    if std::env::var_os(NO_CGROUP).is_some_and(|value| !value.is_empty()) {
        return None;
    }
    cgroup::Root::create(&cgroup::own()?, run).ok()
}

/// Where logs go, held against another node; and a warning if that is not where they should go.
fn state_dir(
    wanted: &Path,
    run_dir: &Path,
) -> Result<(PathBuf, Option<OwnedFd>, Option<String>), DirError> {
    let Err(error) = dirs::usable(wanted) else {
        let (real, lock) = dirs::lock_state(wanted)?;
        return Ok((real, Some(lock), None));
    };
    let shown = wanted.display();
    let warning = format!(
        "the state directory {shown} cannot be used ({error}): logs are kept in the run directory and do not outlive it; choose another with --state-dir"
    );
    Ok((run_dir.to_owned(), None, Some(warning)))
}

/// What a directory has to say, unless its disk does not answer.
fn answered<T: Send + 'static>(
    dir: &Path,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, KeeperError> {
    let silent = || KeeperError::Silent { dir: dir.display().to_string() };
    offload::within(FIRST_ANSWER, work).ok_or_else(silent)
}
