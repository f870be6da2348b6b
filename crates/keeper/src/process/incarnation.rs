//! The life of an incarnation: spawned, up, ended, gone.
//!
//! ```text
//!  Spawn ─► Execing ─► Up ────────► (leader dies) ─► Clearing ─► gone: state, record
//!              └────► Failed ──────────┘   └── nobody left: straight to gone
//! ```
//!
//! The control socket belongs to the life of the job (see [`crate::control`]).

use crate::{
    event_loop::{
        deadline::Deadline,
        poller::{Interest, Source},
    },
    keeper::{Child, Keeper, Role},
    process::{
        exec_error::ExecContext,
        job::{self, Ended, Job, Phase, StopRule},
        launch::{self, Capture},
        tree::{self, Leader},
    },
};
use mainstay_core::{
    exit::{Asked, Exit},
    name::Name,
    signal::Signal,
};
use mainstay_sys::{
    cgroup::Group,
    clock,
    disk::Disk,
    reap::{self, ExitStatus},
    run_files,
    spawn::Failure,
    state_dir::StateDir,
};
use mainstay_wire::{
    link::{ExitRecord, LiveSettings, Spawn, ToAgent},
    state::ContainerState,
};
use rustix::io::Errno;
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// The file of a job's last state.
pub(crate) const STATE: &str = "state";
/// A trouble that lasts is told again after a minute.
const SAY_AGAIN: u64 = 60_000_000_000;
/// How long until a tree that does not tell is looked at again.
const RECHECK: Duration = Duration::from_millis(20);

impl Keeper {
    /// Finds the job, or makes a place for it.
    pub(crate) fn job_id(&mut self, name: &Name, dir: PathBuf) -> u64 {
        if let Some(id) = self.names.get(name) {
            return *id;
        }
        let id = self.fresh_id();
        self.names.insert(name.clone(), id);
        self.jobs.insert(id, Job::new(id, name.clone(), dir));
        id
    }

    pub(crate) fn spawn(&mut self, spawn: &Spawn) {
        let Some(node) = self.node() else { return };
        let (dir, notify) =
            (node.resources.dir.job(&spawn.job), node.resources.dir.notify(&spawn.job));
        let id = self.job_id(&spawn.job, dir);
        let Keeper { jobs, role, context, state_files, next_stream, poller, .. } = self;
        let (Some(job), crate::keeper::Role::Node(node)) = (jobs.get_mut(&id), role) else {
            return;
        };
        if spawn.incarnation <= job.highest {
            return;
        }
        if job.process.is_some() {
            let text = format!("refused to start {} again: it is still running", spawn.job);
            self.log(text);
            return;
        }
        job.forgotten = false;
        job.highest = spawn.incarnation;
        job.spawns += 1;
        let had_notify = job.notify.is_some();
        let state_name = job_state_name(&spawn.job);
        let starting = prepare_files(job, state_files, &context.disk, &state_name);
        let (restarts, listened) = (job.control.is_some(), !job.clients.is_empty());
        let capture = Capture::Pipes { output: &node.resources.output, next_key: next_stream };
        let launched = launch::launch(context, job, spawn, &notify, capture);
        if let (false, Some(socket)) = (had_notify, &job.notify) {
            let _ = poller.add(socket, Source::Notify, id, Interest::Read);
        }
        if restarts {
            self.write_state(id, &starting);
        }
        if listened {
            self.report_state(id, &starting);
        }
        self.launched(id, launched);
    }

    /// Takes over a process that has just been cloned, or records that there is none.
    pub(crate) fn launched(
        &mut self,
        id: u64,
        launched: Result<job::Process, launch::LaunchError>,
    ) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        match launched {
            Ok(process) => {
                if let Some(at) = process.fence_at {
                    self.deadlines
                        .at(at, Deadline::Fence { job: id, incarnation: process.incarnation });
                }
                if let Phase::Execing { failure } = &process.phase {
                    let _ = self.poller.add(failure, Source::Exec, id, Interest::Read);
                }
                if let Some(pipe) = &process.ready {
                    let _ = self.poller.add(pipe, Source::ReadyPipe, id, Interest::Read);
                }
                self.children.insert(process.pid, Child::Job(id));
                job.started = Some(clock::boottime());
                job.process = Some(process);
            }
            Err(launch::LaunchError { doing, error }) => {
                let errno = error.raw_os_error().unwrap_or(0);
                let error = format!("cannot {}: {error}", doing.trim_start_matches("cannot "));
                self.gone(id, Ended::new(Exit::error(error, errno), None));
            }
        }
    }

    /// Whether exec has succeeded can be read now.
    pub(crate) fn exec_ready(&mut self, id: u64) {
        let Some(process) = self.jobs.get_mut(&id).and_then(|job| job.process.as_mut()) else {
            return;
        };
        let Phase::Execing { failure } = &process.phase else { return };
        let mut bytes = [0; 16];
        let count = match rustix::io::read(failure, &mut bytes) {
            Ok(count) => count,
            Err(Errno::AGAIN | Errno::INTR) => return,
            Err(_) => 0,
        };
        self.poller.remove(failure);
        match Failure::from_bytes(&bytes[..count]) {
            None => self.up(id),
            Some(failed) => {
                let error = process.exec_context.describe(failed);
                process.phase = Phase::Failed { exit: Exit::error(error, failed.errno) };
            }
        }
    }

    fn up(&mut self, id: u64) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let Some(process) = job.process.as_mut() else { return };
        process.phase = Phase::Up;
        process.exec_context = ExecContext::default();
        let message = ToAgent::Spawned {
            job: job.name.clone(),
            incarnation: process.incarnation,
            pid: process.pid,
            tree: process.tree.kind(),
            unenforced: process.unenforced.clone(),
        };
        if let Some(state) = job.state_first() {
            self.write_state(id, &state);
            self.open_control(id);
            self.report_state(id, &state);
        }
        self.send(&message);
    }

    pub(crate) fn write_state(&mut self, id: u64, state: &ContainerState) {
        let Keeper { jobs, role, reserve, state_files, context, .. } = self;
        let Some(job) = jobs.get_mut(&id) else { return };
        let name = match role {
            Role::Node(_) => job_state_name(&job.name),
            Role::Hold(_) => PathBuf::from(STATE),
        };
        let text = format!("{}\n", state.to_json());
        let (files, file) = (state_files.clone(), name.clone());
        let write = move || files.replace(&file, 0o644, text.as_bytes()).map(drop);
        let written = reserve.with(|| context.disk.put(&name, write.clone()));
        let error = written.err().map(|error| format!("cannot write the state file: {error}"));
        job.state_error = error;
        let now = clock::boottime();
        let silent = self.state_trouble.is_none_or(|at| now.saturating_sub(at) > SAY_AGAIN);
        if job.state_error.is_some() && silent {
            self.state_trouble = Some(now);
            let text = format!("{}: {}", job.name, job.state_error.as_deref().unwrap_or_default());
            self.log(text);
        }
    }

    /// The leader is dead and not yet reaped: its pid still names its group.
    pub(crate) fn job_died(&mut self, id: u64, pid: u32) {
        self.exec_ready(id);
        self.cancel_checks(id);
        let Some(process) = self.jobs.get_mut(&id).and_then(|job| job.process.as_mut()) else {
            return drop(reap::reap(pid));
        };
        let alone = process.tree.group().is_some_and(|group| !group.populated());
        if !alone {
            // Who has left the group is looked for below.
            process.tree.kill(Leader::Held(pid), Vec::new);
        }
        let death = reap::reap(pid).ok();
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let Some(process) = job.process.as_mut() else { return };
        let exit = match (&process.phase, death.as_ref().map(|death| death.how)) {
            (Phase::Failed { exit }, _) => exit.clone(),
            (_, Some(ExitStatus::Code(code))) => Exit::Code { code },
            (_, Some(ExitStatus::Signal(number))) => {
                let ooms = process.tree.group().map_or(0, Group::oom_kills);
                let oom = number == tree::KILL && ooms > process.oom_before;
                job.ooms += u64::from(oom);
                Exit::Signal { signal: Signal::from_number(number).unwrap_or(Signal::KILL), oom }
            }
            (_, None) => Exit::Error {
                error: "its end was lost: somebody else reaped it".to_owned(),
                errno: 10,
            },
        };
        let ended = Ended::new(exit, death.as_ref());
        if alone {
            return self.gone(id, ended);
        }
        process.phase = Phase::Clearing { ended, events: None, recheck: false };
        self.clearing.insert(id);
        // Else when all who died with it are known: `recheck_all` follows.
        if !self.may_have_orphans(id) {
            self.recheck(id);
        }
    }

    /// Looks whether the tree of a job whose leader is gone has gone too.
    pub(crate) fn recheck(&mut self, id: u64) {
        let orphans = self.orphans_of(id);
        let Some(process) = self.jobs.get_mut(&id).and_then(|job| job.process.as_mut()) else {
            return;
        };
        let (pid, incarnation) = (process.pid, process.incarnation);
        let Phase::Clearing { ended, events, recheck } = &mut process.phase else { return };
        if process.tree.gone(pid, || orphans.clone()) {
            if let Some(events) = events {
                self.poller.remove(&*events);
            }
            let ended = ended.clone();
            return self.gone(id, ended);
        }
        process.tree.kill(Leader::Reaped(pid), || orphans);
        if let (Some(group), None) = (process.tree.group(), &events)
            && let Ok(file) = group.events()
            && self.poller.add(&file, Source::Cleared, id, Interest::Priority).is_ok()
        {
            *events = Some(file);
        } else if let Some(events) = events {
            // Only changes after a read are told again.
            use std::io::{Read, Seek};
            let _ = events
                .seek(io::SeekFrom::Start(0))
                .and_then(|_| events.read_to_end(&mut Vec::new()));
        }
        if !std::mem::replace(recheck, true) {
            self.deadlines.after(RECHECK, Deadline::Recheck { job: id, incarnation });
        }
    }

    pub(crate) fn recheck_due(&mut self, id: u64, incarnation: u64) {
        let process = self.jobs.get_mut(&id).and_then(|job| job.process_of(incarnation));
        if let Some(Phase::Clearing { recheck, .. }) = process.map(|process| &mut process.phase) {
            *recheck = false;
            self.recheck(id);
        }
    }

    /// Somebody was reaped: trees that were waited for may be gone.
    pub(crate) fn recheck_all(&mut self) {
        let clearing: Vec<u64> = self.clearing.iter().copied().collect();
        if clearing.iter().any(|id| self.may_have_orphans(*id)) {
            self.look_for_orphans();
        }
        for id in clearing {
            self.recheck(id);
        }
    }

    /// The last of its tree is gone, or there never was one.
    pub(crate) fn gone(&mut self, id: u64, ended: Ended) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        self.clearing.remove(&id);
        let process = job.process.take();
        if let Some(process) = &process {
            process.tree.clean();
            if let Some(pipe) = &process.ready {
                self.poller.remove(pipe);
            }
        }
        let state = job.state_down(&ended);
        let record = ExitRecord {
            record: 0,
            job: job.name.clone(),
            incarnation: job.highest,
            exit: ended.exit.clone(),
            asked: process.as_ref().map_or(Asked::None, |process| process.asked),
            fenced: process.as_ref().is_some_and(|process| process.fenced),
            ended: clock::wall(),
            cpu_user_us: ended.cpu_user_us,
            cpu_system_us: ended.cpu_system_us,
            max_rss_kib: ended.max_rss_kib,
        };
        let main = process.as_ref().is_some_and(|process| process.main);
        let (name, asked) = (record.job.clone(), record.asked);
        let told = match asked {
            // The agent can decide what follows while the rest is done here.
            Asked::None => {
                self.ended(record, main);
                self.flush_agent();
                None
            }
            // Whoever waits for it finds the state as it is then.
            Asked::Stop | Asked::Kill => Some(record),
        };
        if let Some(output) = self.output() {
            for key in process.iter().flat_map(|process| &process.streams) {
                output.close(&name, *key);
            }
        }
        self.write_state(id, &state);
        let over = self.ends_life(asked);
        if let Some(job) = self.jobs.get_mut(&id) {
            job.down = Some(state.clone());
        }
        if !over {
            self.open_control(id);
        }
        self.report_state(id, &state);
        if over {
            self.close_control(id);
        }
        if let Some(record) = told {
            self.ended(record, main);
        }
        if self.jobs.get(&id).is_some_and(|job| job.forgotten) {
            self.forget_now(id);
        }
    }

    /// WriteEnd settings for what runs.
    pub(crate) fn update_settings(&mut self, name: &Name, settings: &LiveSettings) {
        let Keeper { jobs, names, role: Role::Node(node), .. } = self else { return };
        let job = names.get(name).and_then(|id| jobs.get_mut(id));
        let Some(process) = job.and_then(|job| job.process.as_mut()) else { return };
        (process.main, process.stop) = (settings.main, StopRule::of(settings));
        if process.log.as_ref() != Some(&settings.log) {
            process.log = Some(settings.log.clone());
            node.resources.output.change(name.clone(), settings.log.clone());
        }
    }

    pub(crate) fn forget(&mut self, name: &Name) {
        let Some(id) = self.names.get(name).copied() else { return };
        match self.jobs.get_mut(&id) {
            Some(job) if job.process.is_some() => job.forgotten = true,
            Some(_) => self.forget_now(id),
            None => {}
        }
    }

    fn forget_now(&mut self, id: u64) {
        if self.jobs.get(&id).is_some_and(|job| job.control.is_some()) {
            self.close_control(id);
        }
        let Some(job) = self.jobs.remove(&id) else { return };
        self.names.remove(&job.name);
        let mut notify = None;
        if let Some(node) = self.node() {
            notify = Some(node.resources.dir.notify(&job.name));
            node.resources.output.forget(job.name.clone());
        }
        if let Some(group) =
            self.context.cgroup.as_ref().and_then(|root| root.job(job.name.as_str()).ok())
        {
            group.remove();
        }
        let dir = job.dir;
        let _ = self.context.disk.put(&job_state_name(&job.name), move || {
            let removed = notify.map_or(Ok(()), |socket| run_files::remove(&socket));
            run_files::remove_tree(&dir).and(removed)
        });
    }
}

/// The state file of a job of a node, in the directory of all of them.
pub(super) fn job_state_name(job: &Name) -> PathBuf {
    Path::new(job.as_str()).join(STATE)
}

/// Replaces what an earlier incarnation left: nobody may take its state for ours. The socket of a
/// life that goes on stays.
pub(crate) fn prepare_files(
    job: &mut Job,
    state_files: &Arc<StateDir>,
    disk: &Disk,
    state_name: &Path,
) -> ContainerState {
    job.down = None;
    let starting = job.state_starting();
    let in_node = state_name.parent().is_some_and(|dir| !dir.as_os_str().is_empty());
    let (files, dir) = (state_files.clone(), PathBuf::from(job.name.as_str()));
    if in_node && job.spawns == 1 && disk.run(move || files.make_dir(&dir, 0o700)).is_ok() {
        // Nothing says the same to whoever reads it: not started yet.
        return starting;
    }
    if job.control.is_some() {
        // A restart: the old state tells of its last end until the new process is cloned.
        return starting;
    }
    let files = NewFiles {
        control: job.control_file(),
        dir: job.name.as_str().into(),
        state: state_name.to_owned(),
        text: format!("{}\n", starting.to_json()),
    };
    let state_files = state_files.clone();
    let written = disk.put(state_name, move || files.write(&state_files));
    job.state_error = written.err().map(|error| format!("cannot write the state file: {error}"));
    starting
}

/// The files of a job that begins a life.
struct NewFiles {
    control: PathBuf,
    dir: PathBuf,
    state: PathBuf,
    text: String,
}

impl NewFiles {
    fn write(&self, state_files: &StateDir) -> io::Result<()> {
        let _ = run_files::remove(&self.control);
        let write = || state_files.replace(&self.state, 0o644, self.text.as_bytes()).map(drop);
        let written = match write() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                state_files.make_dir(&self.dir, 0o700).and_then(|()| write())
            }
            written => written,
        };
        if written.is_err() {
            // Better none than one that tells of another run.
            let _ = state_files.remove(&self.state);
        }
        written
    }
}
