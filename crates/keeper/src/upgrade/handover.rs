//! All that a keeper holds, as text: descriptors by their numbers.

use crate::{
    RunOptions,
    agent::Succession,
    askers::Asker,
    attempt::Attempt,
    control::Client,
    deadline::{Deadline, Deadlines},
    dirs::RunDir,
    job::{Ended, Job, Phase, Process, StopRule},
    keeper::{Child, Keeper, Part},
    launch::Ground,
    node::{Means, NodePart, Untaken, Wanting},
    output::{Channel, Gap, Output, Owner, Rest, Stream},
    poller::{Interest, Kind, Poller},
    sockets::HeldSocket,
    task::{Task, TaskDone, Words},
    tree::Tree,
};
use mainstay_core::{
    exit::{Asked, Exit},
    name::Name,
    node::TaskId,
    plan::{Log, Socket},
};
use mainstay_sys::{
    cgroup::{self, Group},
    fd,
    signal::Signals,
};
use mainstay_wire::{
    frame::Decoder,
    link::{ExitRecord, FORMAT, LogFigures, Upgraded},
    sse,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    io,
    os::fd::{AsRawFd, OwnedFd, RawFd},
    path::PathBuf,
    time::{Duration, Instant},
};

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Handover {
    format: u32,
    pub(super) version: String,
    pub(super) exe: RawFd,
    pub(super) wanting: Option<Wanting>,
    options: RunOptions,
    state_dir: PathBuf,
    run_dir: PathBuf,
    lock: RawFd,
    state_lock: Option<RawFd>,
    api: RawFd,
    socket: RawFd,
    null: RawFd,
    run: String,
    env: Vec<(String, String)>,
    ignored: Vec<i32>,
    nofile: Option<(u64, u64)>,
    cgroup: Option<PathBuf>,
    jobs: Vec<HeldJob>,
    clients: Vec<HeldClient>,
    tasks: Vec<HeldTask>,
    askers: Vec<(u64, RawFd)>,
    deadlines: Vec<(u64, Deadline)>,
    records: Vec<ExitRecord>,
    untaken: Vec<(u64, Untaken)>,
    done: Vec<TaskDone>,
    upgraded: Vec<Upgraded>,
    upgrades: u64,
    next_record: u64,
    next_token: u64,
    next_id: u64,
    next_stream: u64,
    restarts: u64,
    stop_timeout: Duration,
    main_exit: Option<i32>,
    streams: Vec<HeldStream>,
    figures: BTreeMap<Name, LogFigures>,
    gaps: Vec<(Owner, Gap)>,
    forward: [Bytes; 2],
    forward_dropped: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct HeldJob {
    id: u64,
    name: Name,
    dir: PathBuf,
    highest: u64,
    spawns: u64,
    ooms: u64,
    sockets: Vec<(Socket, RawFd)>,
    notify: Option<RawFd>,
    control: Option<RawFd>,
    state_error: Option<String>,
    forgotten: bool,
    process: Option<HeldProcess>,
}

#[derive(Debug, Serialize, Deserialize)]
struct HeldProcess {
    incarnation: u64,
    pid: u32,
    main: bool,
    cgroup: Option<PathBuf>,
    unenforced: Vec<String>,
    phase: HeldPhase,
    asked: Asked,
    fenced: bool,
    fence_at: Option<u64>,
    stop: StopRule,
    streams: Vec<u64>,
    oom_before: u64,
    notified: BTreeMap<String, String>,
    #[serde(default)]
    ready: Option<RawFd>,
    attempt: Attempt,
}

#[derive(Debug, Serialize, Deserialize)]
enum HeldPhase {
    Execing { failure: RawFd },
    Failed { exit: Exit },
    Up,
    Clearing { ended: Ended },
}

#[derive(Debug, Serialize, Deserialize)]
struct HeldClient {
    id: u64,
    job: u64,
    fd: RawFd,
    decoder: sse::Decoder,
    unsent: Bytes,
    newest: Option<Bytes>,
    deaf: bool,
    leaving: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct HeldTask {
    id: u64,
    task: TaskId,
    pid: u32,
    failure: Option<RawFd>,
    pipe: Option<RawFd>,
    output: Bytes,
    truncated: bool,
    timed_out: bool,
    attempt: Attempt,
}

#[derive(Debug, Serialize, Deserialize)]
struct HeldStream {
    key: u64,
    owner: Owner,
    channel: Channel,
    log: Log,
    fd: RawFd,
    partial: Bytes,
}

/// Any bytes, as text in which each character is one byte.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Bytes(String);

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Bytes {
        Bytes(bytes.iter().copied().map(char::from).collect())
    }
}

impl From<Bytes> for Vec<u8> {
    fn from(bytes: Bytes) -> Vec<u8> {
        bytes.0.chars().map(|byte| u8::try_from(byte).unwrap_or(b'?')).collect()
    }
}

impl Handover {
    pub(super) fn read(bytes: &[u8]) -> Result<Handover, String> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let found: Format = serde_json::from_slice(bytes)
            .map_err(|error| format!("it is not a keeper's state: {error}"))?;
        if found.format != FORMAT {
            return Err(format!("its format is {}, and this binary reads {FORMAT}", found.format));
        }
        serde_json::from_slice(bytes).map_err(|error| format!("its state cannot be read: {error}"))
    }

    /// Everything that must stay open over the exec.
    pub(super) fn descriptors(&self) -> Vec<RawFd> {
        let mut all = vec![self.exe, self.lock, self.api, self.socket, self.null];
        all.extend(self.state_lock);
        for job in &self.jobs {
            all.extend(job.sockets.iter().map(|(_, fd)| *fd));
            all.extend(job.notify.iter().chain(&job.control));
            if let Some(process) = &job.process {
                all.extend(process.ready);
                if let HeldPhase::Execing { failure } = &process.phase {
                    all.push(*failure);
                }
            }
        }
        all.extend(self.clients.iter().map(|client| client.fd));
        all.extend(self.tasks.iter().flat_map(|task| task.failure.iter().chain(&task.pipe)));
        all.extend(self.askers.iter().map(|(_, fd)| *fd));
        all.extend(self.streams.iter().map(|stream| stream.fd));
        all
    }
}

impl Keeper {
    /// All but what the threads hold.
    pub(super) fn describe(&self) -> Handover {
        let Part::Node(node) = &self.part else { unreachable!("only a node is upgraded") };
        let raw = |fd: &OwnedFd| fd.as_raw_fd();
        Handover {
            format: FORMAT,
            version: crate::VERSION.to_owned(),
            exe: raw(&node.means.exe),
            wanting: None,
            options: node.options.clone(),
            state_dir: node.state_dir.clone(),
            run_dir: node.means.dir.path().to_owned(),
            lock: node.means.dir.lock_file().as_raw_fd(),
            state_lock: node.means.state_lock.as_ref().map(AsRawFd::as_raw_fd),
            api: raw(&node.means.api),
            socket: raw(&node.means.socket),
            null: raw(&self.ground.null),
            run: self.ground.run.clone(),
            env: self.ground.env.clone(),
            ignored: self.ground.ignored.clone(),
            nofile: self.ground.nofile,
            cgroup: self.ground.cgroup.as_ref().map(|root| root.path().to_owned()),
            jobs: self.jobs.values().map(describe_job).collect(),
            clients: self.clients.iter().map(|(id, client)| describe_client(*id, client)).collect(),
            tasks: self.tasks.iter().map(|(id, task)| describe_task(*id, task)).collect(),
            askers: node.askers.iter().map(|(id, asker)| (*id, raw(&asker.fd))).collect(),
            deadlines: self.deadlines.all(),
            records: node.records.iter().cloned().collect(),
            untaken: node.untaken.iter().map(|(token, untaken)| (*token, *untaken)).collect(),
            done: node.done.clone(),
            upgraded: node.upgraded.clone(),
            upgrades: node.upgrades,
            next_record: node.next_record,
            next_token: node.next_token,
            next_id: self.next_id,
            next_stream: self.next_stream,
            restarts: node.succession.restarts,
            stop_timeout: node.stop_timeout,
            main_exit: node.main_exit,
            streams: Vec::new(),
            figures: BTreeMap::new(),
            gaps: Vec::new(),
            forward: [Bytes::default(), Bytes::default()],
            forward_dropped: 0,
        }
    }

    /// Stops the threads; nothing is closed, and nobody owns the descriptors any more.
    pub(super) fn into_handover(self, wanting: Wanting) -> Handover {
        let mut handover = self.describe();
        handover.wanting = Some(wanting);
        let Keeper { part, jobs, clients, tasks, ground, .. } = self;
        let Part::Node(node) = part else { unreachable!("only a node is upgraded") };
        let NodePart { means: Means { output, dir, state_lock, exe, api, socket }, askers, .. } =
            *node;
        let rest = output.stop();
        handover.streams = rest.streams.iter().map(describe_stream).collect();
        handover.figures = rest.figures;
        handover.gaps = rest.gaps;
        handover.forward = rest.forward.map(|bytes| Bytes::from(&bytes[..]));
        handover.forward_dropped = rest.forward_dropped;
        std::mem::forget((jobs, clients, tasks, ground, rest.streams));
        std::mem::forget((dir, state_lock, exe, api, socket, askers));
        fd::release(&handover.descriptors());
        handover
    }
}

fn describe_job(job: &Job) -> HeldJob {
    HeldJob {
        id: job.id,
        name: job.name.clone(),
        dir: job.dir.clone(),
        highest: job.highest,
        spawns: job.spawns,
        ooms: job.ooms,
        sockets: job
            .sockets
            .iter()
            .map(|held| (held.socket.clone(), held.fd.as_raw_fd()))
            .collect(),
        notify: job.notify.as_ref().map(AsRawFd::as_raw_fd),
        control: job.control.as_ref().map(AsRawFd::as_raw_fd),
        state_error: job.state_error.clone(),
        forgotten: job.forgotten,
        process: job.process.as_ref().map(describe_process),
    }
}

fn describe_process(process: &Process) -> HeldProcess {
    HeldProcess {
        incarnation: process.incarnation,
        pid: process.pid,
        main: process.main,
        cgroup: process.tree.group().map(|group| group.path().to_owned()),
        unenforced: process.unenforced.clone(),
        phase: match &process.phase {
            Phase::Execing { failure } => HeldPhase::Execing { failure: failure.as_raw_fd() },
            Phase::Failed { exit } => HeldPhase::Failed { exit: exit.clone() },
            Phase::Up => HeldPhase::Up,
            Phase::Clearing { ended, .. } => HeldPhase::Clearing { ended: ended.clone() },
        },
        asked: process.asked,
        fenced: process.fenced,
        fence_at: process.fence_at,
        stop: process.stop,
        streams: process.streams.clone(),
        oom_before: process.oom_before,
        notified: process.notified.clone(),
        ready: process.ready.as_ref().map(AsRawFd::as_raw_fd),
        attempt: process.attempt.clone(),
    }
}

fn describe_client(id: u64, client: &Client) -> HeldClient {
    let (unsent, newest) = client.unsent();
    HeldClient {
        id,
        job: client.job,
        fd: client.fd.as_raw_fd(),
        decoder: client.decoder.clone(),
        unsent: unsent.into(),
        newest: newest.map(Bytes::from),
        deaf: client.deaf,
        leaving: client.leaving,
    }
}

fn describe_task(id: u64, task: &Task) -> HeldTask {
    HeldTask {
        id,
        task: task.id.clone(),
        pid: task.pid,
        failure: task.failure.as_ref().map(AsRawFd::as_raw_fd),
        pipe: task.words.pipe.as_ref().map(AsRawFd::as_raw_fd),
        output: task.words.text[..].into(),
        truncated: task.words.truncated,
        timed_out: task.timed_out,
        attempt: task.attempt.clone(),
    }
}

fn describe_stream(stream: &Stream) -> HeldStream {
    HeldStream {
        key: stream.key,
        owner: stream.owner.clone(),
        channel: stream.channel,
        log: stream.log.clone(),
        fd: stream.fd.as_raw_fd(),
        partial: stream.partial[..].into(),
    }
}

/// What a keeper needs besides what is handed over. All that can fail for want of something
/// (threads, descriptors) is in here.
pub(super) struct Fresh {
    output: Output,
    exe: OwnedFd,
    poller: Poller,
    deadlines: Deadlines,
    signals: Signals,
}

/// A machine that is short of processes is asked again for so long: there are jobs to keep.
const PATIENCE: Duration = Duration::from_secs(10);
const ASK_AGAIN: Duration = Duration::from_millis(20);

impl Handover {
    pub(super) fn run(&self) -> &str {
        &self.run
    }

    pub(super) fn prepare(&self) -> io::Result<Fresh> {
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

    fn try_prepare(&self) -> io::Result<Fresh> {
        let rest = Rest {
            streams: Vec::new(),
            figures: self.figures.clone(),
            gaps: self.gaps.clone(),
            forward: self.forward.clone().map(Vec::from),
            forward_dropped: self.forward_dropped,
        };
        Ok(Fresh {
            output: Output::start(self.state_dir.join("logs"), rest)?,
            exe: crate::own_executable()?,
            poller: Poller::new()?,
            deadlines: Deadlines::new()?,
            signals: Signals::block_all()?,
        })
    }

    /// A keeper that goes on where the other one stopped.
    pub(super) fn restore(self, fresh: Fresh) -> io::Result<Keeper> {
        let Fresh { output, exe, poller, deadlines, signals } = fresh;
        for held in self.streams {
            output.open(restore_stream(held)?);
        }
        let askers: io::Result<BTreeMap<u64, Asker>> = self
            .askers
            .into_iter()
            .map(|(id, number)| {
                Ok((id, Asker { fd: fd::take(number)?, decoder: Decoder::default() }))
            })
            .collect();
        let means = Means {
            dir: RunDir::adopt(self.run_dir, fd::take(self.lock)?),
            state_lock: self.state_lock.map(fd::take).transpose()?,
            exe,
            api: fd::take(self.api)?,
            socket: fd::take(self.socket)?,
            output,
        };
        let mut node = NodePart::new(means, self.state_dir, self.options);
        node.succession = Succession::resume(self.restarts);
        node.records = self.records.into();
        node.next_record = self.next_record;
        node.untaken = self.untaken.into_iter().collect();
        node.next_token = self.next_token;
        node.done = self.done;
        node.upgraded = self.upgraded;
        node.upgrades = self.upgrades;
        node.stop_timeout = self.stop_timeout;
        node.main_exit = self.main_exit;
        node.askers = askers?;
        // The old image's executable is not needed any more.
        drop(fd::take(self.exe));
        let ground = Ground {
            run: self.run,
            env: self.env,
            ignored: self.ignored,
            nofile: self.nofile,
            cgroup: self.cgroup.map(cgroup::Root::at),
            null: fd::take(self.null)?,
        };
        let part = Part::Node(Box::new(node));
        let mut keeper = Keeper::of(poller, deadlines, signals, ground, part)?;
        keeper.next_id = self.next_id;
        keeper.next_stream = self.next_stream;
        for job in self.jobs {
            keeper.adopt_job(restore_job(job)?)?;
        }
        for held in self.clients {
            keeper.adopt_client(held)?;
        }
        for held in self.tasks {
            keeper.adopt_task(held)?;
        }
        keeper.telling = self.deadlines.iter().any(|(_, deadline)| *deadline == Deadline::Tell);
        for (at, deadline) in self.deadlines {
            keeper.deadlines.at(at, deadline);
        }
        Ok(keeper)
    }
}

impl Keeper {
    fn adopt_job(&mut self, job: Job) -> io::Result<()> {
        let id = job.id;
        if let Some(socket) = &job.control {
            self.poller.add(socket, Kind::Control, id, Interest::Read)?;
        }
        if let Some(socket) = &job.notify {
            self.poller.add(socket, Kind::Notify, id, Interest::Read)?;
        }
        if let Some(process) = &job.process {
            if let Phase::Execing { failure } = &process.phase {
                self.poller.add(failure, Kind::Exec, id, Interest::Read)?;
            }
            if let Some(pipe) = &process.ready {
                self.poller.add(pipe, Kind::ReadyPipe, id, Interest::Read)?;
            }
            if !matches!(process.phase, Phase::Clearing { .. }) {
                self.children.insert(process.pid, Child::Job(id));
            }
        }
        self.names.insert(job.name.clone(), id);
        self.jobs.insert(id, job);
        Ok(())
    }

    fn adopt_client(&mut self, held: HeldClient) -> io::Result<()> {
        let mut client = Client::new(fd::take(held.fd)?, held.job);
        client.resume(held.decoder, held.unsent.into(), held.newest.map(Vec::from));
        (client.deaf, client.leaving) = (held.deaf, held.leaving);
        let interest = if held.deaf { Interest::Write } else { Interest::ReadWrite };
        self.poller.add(client.fd(), Kind::ControlClient, held.id, interest)?;
        if let Some(job) = self.jobs.get_mut(&held.job).filter(|_| !held.leaving) {
            job.clients.push(held.id);
        }
        self.clients.insert(held.id, client);
        Ok(())
    }

    fn adopt_task(&mut self, held: HeldTask) -> io::Result<()> {
        let task = Task {
            id: held.task,
            pid: held.pid,
            failure: held.failure.map(fd::take).transpose()?,
            words: Words {
                pipe: held.pipe.map(fd::take).transpose()?,
                text: held.output.into(),
                truncated: held.truncated,
            },
            timed_out: held.timed_out,
            attempt: held.attempt,
        };
        if let Some(pipe) = &task.words.pipe {
            self.poller.add(pipe, Kind::Task, held.id, Interest::Read)?;
        }
        self.children.insert(task.pid, Child::Task(held.id));
        self.tasks.insert(held.id, task);
        Ok(())
    }
}

fn restore_stream(held: HeldStream) -> io::Result<Stream> {
    Ok(Stream {
        key: held.key,
        owner: held.owner,
        channel: held.channel,
        log: held.log,
        fd: fd::take(held.fd)?,
        partial: held.partial.into(),
    })
}

fn restore_job(held: HeldJob) -> io::Result<Job> {
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
        process: held.process.map(restore_process).transpose()?,
        control: held.control.map(fd::take).transpose()?,
        clients: Vec::new(),
        state_error: held.state_error,
        forgotten: held.forgotten,
    })
}

fn restore_process(held: HeldProcess) -> io::Result<Process> {
    Ok(Process {
        incarnation: held.incarnation,
        pid: held.pid,
        main: held.main,
        // Whether it is spent is not known: then the next incarnation gets another one.
        tree: match held.cgroup {
            Some(path) => Tree::Cgroup { group: Group::at(path), spent: true },
            None => Tree::Group,
        },
        unenforced: held.unenforced,
        phase: match held.phase {
            HeldPhase::Execing { failure } => Phase::Execing { failure: fd::take(failure)? },
            HeldPhase::Failed { exit } => Phase::Failed { exit },
            HeldPhase::Up => Phase::Up,
            HeldPhase::Clearing { ended } => {
                Phase::Clearing { ended, events: None, recheck: false }
            }
        },
        asked: held.asked,
        fenced: held.fenced,
        fence_at: held.fence_at,
        stop: held.stop,
        streams: held.streams,
        oom_before: held.oom_before,
        notified: held.notified,
        ready: held.ready.map(fd::take).transpose()?,
        attempt: held.attempt,
    })
}
