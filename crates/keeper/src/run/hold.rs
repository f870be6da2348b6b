//! `mainstay hold`: one command, its control socket and its state file, and nothing else.

use crate::{
    HoldOptions,
    error::KeeperError,
    keeper::{Hold, Keeper, Role},
    process::{
        incarnation,
        job::Process,
        launch::{self, Capture, LaunchError, RunContext},
    },
};
use mainstay_core::{
    name::Name,
    plan::{Limits, Log, SignalTarget, Stderr, Stdin},
    signal::Signal,
};
use mainstay_sys::{
    signal::Signals,
    spawn::Window,
    state_dir::{Durability, StateDir},
};
use mainstay_wire::link::{ControlRequest, Exec, LiveSettings, Spawn};
use std::path::Path;

pub(crate) fn hold(options: &HoldOptions) -> Result<i32, KeeperError> {
    let dir = options
        .dir
        .canonicalize()
        .map_err(KeeperError::doing(format!("use the directory {}", options.dir.display())))?;
    let lock = std::fs::File::open(&dir)
        .map_err(KeeperError::doing(format!("open the directory {}", dir.display())))?;
    if lock.try_lock().is_err() {
        return Err(KeeperError::Held { dir: dir.display().to_string() });
    }
    mainstay_sys::fd::close_all_on_exec();
    let signals = Signals::block_all().map_err(KeeperError::doing("take signals"))?;
    // Orphans of the command come to us: they are its tree.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    let run = crate::run_id().map_err(KeeperError::doing("choose a run id"))?;
    let context =
        RunContext::new(run, None, |_| Window::none()).map_err(KeeperError::doing("prepare"))?;
    // Somebody wants to find it there after a power cut.
    let state_files = StateDir::open(&dir, Durability::Machine)
        .map_err(KeeperError::doing(format!("open the directory {}", dir.display())))?;
    let role = Role::Hold(Hold { stopping: false });
    let mut keeper =
        Keeper::new(context, signals, state_files, role).map_err(KeeperError::doing("prepare"))?;
    keeper.hold(options, &dir);
    let code = keeper.run();
    drop(lock);
    Ok(code)
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
        let Keeper { jobs, state_files, .. } = self;
        let Some(job) = jobs.get_mut(&id) else { return };
        (job.highest, job.spawns) = (1, 1);
        incarnation::prepare_files(job, state_files, Path::new(incarnation::STATE));
        let launched: Result<Process, LaunchError> =
            launch::launch(&self.context, job, &spawn, Path::new(""), Capture::Inherit);
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
