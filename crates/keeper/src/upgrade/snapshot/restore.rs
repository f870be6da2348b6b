//! From a description to a keeper that goes on where the other one stopped.
//!
//! In two steps: [`Handover::prepare`] gets what can be requester and leaves everything that was
//! handed over as it is, so that the old image can still go on; [`Handover::restore`] takes it.

use super::{
    ClientSnapshot, Handover, JobSnapshot, PhaseSnapshot, ProcessSnapshot, StreamSnapshot,
    TaskSnapshot,
};
use crate::{
    control::{client::Client, keeper_socket::KeeperClient},
    event_loop::{
        deadline::{Deadline, Deadlines},
        poller::{Interest, Poller, Source},
    },
    keeper::{Child, Keeper, Role},
    link::{
        node::{Node, Resources},
        succession::Succession,
    },
    output::{ForwardState, Output, OutputState, Owner, ReadEnd, Stream, WriteEnd},
    process::{
        job::{Job, Phase, Process},
        launch::{RunContext, go_last, most_descriptors},
        listen_sockets::HeldSocket,
        task::{CapturedOutput, Leftover, Task},
        tree::Tree,
    },
    run::{
        dirs::{self, RunDir},
        terminal::ForegroundTerminal,
    },
    upgrade::{OpenedBinary, os_text},
};
use mainstay_sys::{
    cgroup::{self, Group},
    disk::Disk,
    fd,
    offload::Offload,
    signal::Signals,
    spawn::Window,
    state_dir::StateDir,
};
use mainstay_wire::frame::FrameDecoder;
use std::{
    collections::{BTreeMap, HashSet},
    io,
    os::fd::OwnedFd,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

/// What a keeper needs besides what is handed over. All that can fail for want of something
/// (threads, descriptors) is in here.
pub(in crate::upgrade) struct FreshResources {
    output: Output,
    opener: Offload<OpenedBinary>,
    exe: OwnedFd,
    poller: Poller,
    deadlines: Deadlines,
    signals: Signals,
    state_files: Arc<StateDir>,
    disk: Disk,
    user_disks: Disk,
}

/// A machine that is short of processes is asked again for so long: there are jobs to keep.
const PATIENCE: Duration = Duration::from_secs(10);
const ASK_AGAIN: Duration = Duration::from_millis(20);

impl Handover {
    #[expect(clippy::disallowed_methods, reason = "before the loop: the old image can still go on")]
    pub(in crate::upgrade) fn prepare(&self) -> io::Result<FreshResources> {
        let end = Instant::now() + PATIENCE;
        loop {
            match self.try_prepare() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < end => {
                    std::thread::sleep(ASK_AGAIN);
                }
                prepared => return prepared,
            }
        }
    }

    fn try_prepare(&self) -> io::Result<FreshResources> {
        let [stdout, stderr] = self.forward.clone().map(Vec::from);
        let [untold_stdout, untold_stderr] = self.forward_untold;
        let state = OutputState {
            figures: self.figures.clone(),
            gaps: self.gaps.clone(),
            forward: ForwardState {
                rest: [stdout, stderr, self.forward_file.clone().into()],
                untold: [untold_stdout, untold_stderr, self.forward_file_untold],
                dropped: self.forward_dropped,
            },
        };
        Ok(FreshResources {
            output: Output::start(self.state_dir.join("logs"), state)?,
            opener: Offload::start("opener")?,
            exe: crate::own_executable()?,
            poller: Poller::new()?,
            deadlines: Deadlines::new()?,
            signals: Signals::block_all()?,
            state_files: dirs::state_files(&self.run_dir)?,
            disk: Disk::of(&self.run_dir)?,
            user_disks: Disk::of_users()?,
        })
    }

    /// A keeper that goes on where the other one stopped.
    pub(in crate::upgrade) fn restore(self, fresh: FreshResources) -> io::Result<Keeper> {
        let FreshResources {
            output,
            opener,
            exe,
            poller,
            deadlines,
            signals,
            state_files,
            disk,
            user_disks,
        } = fresh;
        let processes = self.jobs.iter().filter_map(|job| job.process.as_ref());
        let written: HashSet<u64> =
            processes.flat_map(|process| process.streams.iter().copied()).collect();
        output.follow(&self.log);
        for held in self.streams {
            let stream = restore_stream(held)?;
            let (owner, key) = (stream.owner.clone(), stream.key);
            output.open(stream);
            // Of a process that was gone before its output was read.
            if let (Owner::Job(job), false) = (owner, written.contains(&key)) {
                output.close(&job, key);
            }
        }
        for note in self.notes {
            output.log(note);
        }
        if self.rotate {
            output.rotate();
        }
        let keeper_clients: io::Result<BTreeMap<u64, KeeperClient>> = self
            .keeper_clients
            .into_iter()
            .map(|(id, number)| {
                Ok((id, KeeperClient { fd: fd::take(number)?, decoder: FrameDecoder::default() }))
            })
            .collect();
        let resources = Resources {
            dir: RunDir::adopt(self.run_dir, fd::take(self.lock)?),
            state_lock: self.state_lock.map(fd::take).transpose()?,
            exe,
            api: fd::take(self.api)?,
            socket: fd::take(self.socket)?,
            output,
            opener,
        };
        let mut node = Node::new(resources, self.state_dir, self.options);
        node.succession = Succession::resume(self.restarts);
        node.records = self.records.into();
        node.next_record = self.next_record;
        node.pending_requests = self.pending_requests.into_iter().collect();
        node.next_token = self.next_token;
        node.log_gaps = self.log_gaps;
        node.outcomes = self.outcomes.into();
        node.told = self.told;
        node.upgraded = self.upgraded;
        node.upgrades = self.upgrades;
        node.stop_timeout = self.stop_timeout;
        node.log = self.log;
        node.main_exit = self.main_exit;
        node.keeper_clients = keeper_clients?;
        node.terminal = self.terminal.then(ForegroundTerminal::again);
        // The old image's executable is not needed any more.
        drop(fd::take(self.exe));
        let context = RunContext {
            run: self.run,
            env: os_text::join(self.env, self.raw_env),
            ignored: self.ignored,
            nofile: self.nofile,
            oom_score: go_last(),
            cgroup: self.cgroup.map(cgroup::Root::at),
            null: fd::take(self.null)?,
            lends_stderr: true,
            // Now that output is read again. It gets low numbers: few are taken by what is fresh.
            window: Window::open(most_descriptors(self.nofile)),
            disk,
            user_disks,
        };
        let role = Role::Node(Box::new(node));
        let mut keeper = Keeper::of(poller, deadlines, signals, context, state_files, role)?;
        keeper.next_id = self.next_id;
        keeper.next_stream = self.next_stream;
        for job in self.jobs {
            keeper.adopt_job(restore_job(*job, keeper.context.cgroup.as_ref())?)?;
        }
        for held in self.clients {
            keeper.adopt_client(held)?;
        }
        for held in self.tasks {
            keeper.adopt_task(held)?;
        }
        keeper.adopt_leftovers();
        let stale: Vec<OwnedFd> = self.stale.into_iter().flat_map(fd::take).collect();
        if let Some(node) = keeper.node() {
            node.resources.opener.begin(move || drop(stale));
        }
        keeper.reporting =
            self.deadlines.iter().any(|(_, deadline)| *deadline == Deadline::StateReport);
        // What the service manager is told begins anew.
        let anew = |it: &Deadline| matches!(it, Deadline::Watchdog | Deadline::ServiceManager);
        for (at, deadline) in self.deadlines.into_iter().filter(|(_, it)| !anew(it)) {
            keeper.deadlines.at(at, deadline);
        }
        Ok(keeper)
    }
}

impl Keeper {
    fn adopt_job(&mut self, job: Job) -> io::Result<()> {
        let id = job.id;
        if let Some(socket) = &job.control {
            self.poller.add(socket, Source::Control, id, Interest::Read)?;
        }
        if let Some(socket) = &job.notify {
            self.poller.add(socket, Source::Notify, id, Interest::Read)?;
        }
        if let Some(process) = &job.process {
            if let Phase::Execing { failure } = &process.phase {
                self.poller.add(failure, Source::Exec, id, Interest::Read)?;
            }
            if let Some(pipe) = &process.ready {
                self.poller.add(pipe, Source::ReadyPipe, id, Interest::Read)?;
            }
            match process.phase {
                Phase::Clearing { .. } => drop(self.clearing.insert(id)),
                Phase::Execing { .. } | Phase::Failed { .. } | Phase::Up => {
                    self.children.insert(process.pid, Child::Job(id));
                }
            }
        }
        self.names.insert(job.name.clone(), id);
        self.jobs.insert(id, job);
        Ok(())
    }

    fn adopt_client(&mut self, held: ClientSnapshot) -> io::Result<()> {
        let mut client = Client::new(fd::take(held.fd)?, held.job);
        client.resume(held.decoder, held.unsent.into(), held.newest.map(Vec::from));
        (client.deaf, client.leaving) = (held.deaf, held.leaving);
        let interest = if held.deaf { Interest::Write } else { Interest::ReadWrite };
        self.poller.add(client.fd(), Source::ControlClient, held.id, interest)?;
        if let Some(job) = self.jobs.get_mut(&held.job).filter(|_| !held.leaving) {
            job.clients.push(held.id);
        }
        self.clients.insert(held.id, client);
        Ok(())
    }

    /// Groups of tasks that had ended.
    fn adopt_leftovers(&mut self) {
        let groups = self.context.cgroup.as_ref().map(cgroup::Root::all_tasks).unwrap_or_default();
        for group in groups {
            let held = |task: &Task| task.tree.group().is_some_and(|it| it.path() == group.path());
            if !self.tasks.values().any(held) {
                group.kill();
                // No process has this number: nobody else is hit.
                let (task, pid) = (u64::MAX, u32::MAX);
                let tree = Tree::new(Some(group));
                self.leftovers.push(Leftover { task, id: None, pid, tree });
            }
        }
        self.clear_leftovers();
    }

    fn adopt_task(&mut self, held: TaskSnapshot) -> io::Result<()> {
        let task = Task {
            id: held.task,
            ends_with: held.ends_with,
            pid: held.pid,
            tree: restore_tree(held.cgroup, self.context.cgroup.as_ref()),
            failure: held.failure.map(fd::take).transpose()?,
            output: CapturedOutput::restore(
                held.pipe.map(fd::take).transpose()?,
                held.output.into(),
                held.truncated,
            ),
            timed_out: held.timed_out,
            forward: held.forward,
            job: held.job,
            exec_context: held.exec_context,
        };
        if let Some(pipe) = &task.output.pipe {
            self.poller.add(pipe, Source::Task, held.id, Interest::Read)?;
        }
        self.children.insert(task.pid, Child::Task(held.id));
        self.tasks.insert(held.id, task);
        Ok(())
    }
}

fn restore_stream(held: StreamSnapshot) -> io::Result<Stream> {
    Ok(Stream {
        key: held.key,
        owner: held.owner,
        channel: held.channel,
        log: held.log,
        pid: held.pid,
        end: Arc::new(ReadEnd::new(fd::take(held.fd)?)),
        write_end: match held.terminal {
            Some(end) => WriteEnd::Terminal(Some(fd::take(end)?)),
            None => WriteEnd::Pipe,
        },
        partial: held.partial.into(),
    })
}

fn restore_job(held: JobSnapshot, root: Option<&cgroup::Root>) -> io::Result<Job> {
    let sockets: io::Result<Vec<HeldSocket>> = held
        .sockets
        .into_iter()
        .map(|(socket, number)| Ok(HeldSocket { socket, fd: fd::take(number)? }))
        .collect();
    Ok(Job {
        id: held.id,
        name: held.name,
        dir: held.dir,
        highest: held.highest,
        spawns: held.spawns,
        ooms: held.ooms,
        sockets: sockets?,
        notify: held.notify.map(fd::take).transpose()?,
        process: held.process.map(|held| restore_process(held, root)).transpose()?,
        control: held.control.map(fd::take).transpose()?,
        started: held.started,
        held: None,
        down: held.down,
        clients: Vec::new(),
        state_error: held.state_error,
        control_error: None,
        summary: held.summary,
        forgotten: held.forgotten,
    })
}

/// Whether it is spent is not known: then the next incarnation gets another one.
fn restore_tree(cgroup: Option<PathBuf>, root: Option<&cgroup::Root>) -> Tree {
    match (cgroup, root) {
        (Some(path), Some(root)) => Tree::Cgroup { group: root.group(path), spent: true },
        (Some(path), None) => Tree::Cgroup { group: Group::at(path), spent: true },
        (None, _) => Tree::Group,
    }
}

fn restore_process(held: ProcessSnapshot, root: Option<&cgroup::Root>) -> io::Result<Process> {
    Ok(Process {
        incarnation: held.incarnation,
        pid: held.pid,
        main: held.main,
        tree: restore_tree(held.cgroup, root),
        unenforced: held.unenforced,
        phase: match held.phase {
            PhaseSnapshot::Execing { failure } => Phase::Execing { failure: fd::take(failure)? },
            PhaseSnapshot::Failed { exit } => Phase::Failed { exit },
            PhaseSnapshot::Up => Phase::Up,
            PhaseSnapshot::Clearing { ended } => {
                Phase::Clearing { ended, events: None, recheck: false }
            }
        },
        asked: held.asked,
        fenced: held.fenced,
        fence_at: held.fence_at,
        stop: held.stop,
        log: held.log,
        streams: held.streams,
        oom_before: held.oom_before,
        notified: held.notified,
        ready: held.ready.map(fd::take).transpose()?,
        exec_context: held.exec_context,
    })
}
