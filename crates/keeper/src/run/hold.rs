//! `mainstay hold`: one command, its control socket and its state file, and nothing else.
#![expect(clippy::disallowed_methods, reason = "before the loop: nothing is kept yet")]

use crate::{
    HoldOptions,
    error::KeeperError,
    keeper::{Hold, Keeper, Role},
    process::{
        incarnation,
        job::Process,
        launch::{self, Capture, LaunchError, RunContext},
    },
    run::sweep,
};
use mainstay_core::{
    name::Name,
    plan::{Limits, Log, SignalTarget, Stderr, Stdin},
    signal::Signal,
};
use mainstay_sys::{
    clock,
    disk::Disk,
    nonblocking, proc,
    signal::Signals,
    spawn::Window,
    state_dir::{Durability, StateDir},
    sweep::DeadRun,
};
use mainstay_wire::{
    link::{ControlRequest, Exec, LiveSettings, Spawn},
    state::HeldRun,
};
use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

pub(crate) fn hold(options: &HoldOptions) -> Result<i32, KeeperError> {
    let (dir, lock) = lock(&options.dir)?;
    // What one that was killed has left, before its state is replaced.
    for swept in sweep::dead_hold(&dir).iter().flat_map(DeadRun::kill) {
        nonblocking::tell_stderr(&format!("mainstay: {}", sweep::line(&swept)));
    }
    mainstay_sys::fd::close_all_on_exec();
    let signals = Signals::block_all().map_err(KeeperError::doing("take signals"))?;
    // Orphans of the command come to us: they are its tree.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    let run = crate::run_id().map_err(KeeperError::doing("choose a run id"))?;
    let disks = (Disk::waited_for(), Disk::waited_for());
    let context = RunContext::new(run, None, |_| Window::none(), disks)
        .map_err(KeeperError::doing("prepare"))?;
    // Somebody wants to find it there after a power cut.
    let state_files = StateDir::open(&dir, Durability::Machine)
        .map(Arc::new)
        .map_err(KeeperError::doing(format!("open the directory {}", dir.display())))?;
    let role = Role::Hold(Hold { stopping: false, ending: None });
    let mut keeper =
        Keeper::new(context, signals, state_files, role).map_err(KeeperError::doing("prepare"))?;
    keeper.hold(options, &dir);
    let code = keeper.run();
    drop(lock);
    Ok(code)
}

/// The directory, by its real path, and held against another `hold`.
pub(super) fn lock(dir: &Path) -> Result<(PathBuf, File), KeeperError> {
    let real = dir
        .canonicalize()
        .map_err(KeeperError::doing(format!("use the directory {}", dir.display())))?;
    let lock = File::open(&real)
        .map_err(KeeperError::doing(format!("open the directory {}", real.display())))?;
    match lock.try_lock() {
        Ok(()) => Ok((real, lock)),
        Err(_) => Err(KeeperError::Held { dir: real.display().to_string() }),
    }
}

impl Keeper {
    fn hold(&mut self, options: &HoldOptions, dir: &Path) {
        let name = Name::new("held").expect("a valid name");
        let id = self.job_id(&name, dir.to_owned());
        let spawn = Spawn {
            job: name,
            incarnation: 1,
            exec: Exec { argv: options.command.clone(), ..Exec::default() },
            limits: Limits::default(),
            sockets: Vec::new(),
            notify: false,
            watchdog_us: None,
            ready_fd: None,
            stderr: Stderr::Joined,
            session: true,
            stdin: Stdin::Null,
            tty: false,
            settings: LiveSettings {
                main: true,
                log: Log::default(),
                stop_signal: Signal::TERM,
                stop_to: SignalTarget::Leader,
                stop_timeout_ms: u64::try_from(options.stop_timeout.as_millis())
                    .unwrap_or(u64::MAX),
            },
            fence_at: None,
        };
        let Keeper { jobs, state_files, context, state_trouble, .. } = self;
        let Some(job) = jobs.get_mut(&id) else { return };
        (job.highest, job.spawns) = (1, 1);
        job.held = Some(HeldRun { run: context.run.clone(), boot: proc::boot_id() });
        incarnation::prepare_files(job, state_files, &context.disk, Path::new(incarnation::STATE));
        if let Some(error) = &job.state_error {
            nonblocking::tell_stderr(&format!("mainstay: {error}"));
            *state_trouble = Some(clock::boottime());
        }
        let launched: Result<Process, LaunchError> =
            launch::launch(context, job, &spawn, Path::new(""), Capture::Inherit);
        self.launched(id, launched);
    }

    /// The first signal stops, the next one kills.
    pub(crate) fn hold_signalled(&mut self) {
        let Role::Hold(role) = &mut self.role else { return };
        let request = if std::mem::replace(&mut role.stopping, true) {
            ControlRequest::Kill
        } else {
            ControlRequest::Stop
        };
        for (id, incarnation) in self.running() {
            self.execute_request(id, incarnation, request);
        }
    }
}
