//! The keeper of a node, and the agent it keeps alive.

use crate::{
    RunOptions,
    control::keeper_socket::KeeperClient,
    event_loop::{
        deadline::Deadline,
        poller::{Interest, Ready, Source},
    },
    keeper::{Child, Keeper, Role},
    link::{
        agent::{AfterDeath, Agent, LinkRead, Succession},
        log_gaps::LogGaps,
    },
    output::{Channel, Output, Owner, Stream, WriteEnd},
    process::{job::Phase, launch, task::TaskDone, tree},
    run::dirs::RunDir,
    upgrade::BinaryCheck,
};
use mainstay_core::{
    exit::{Asked, Exit},
    name::Name,
    plan::{ForwardFormat, Log},
    signal::Signal,
};
use mainstay_sys::{
    clock, reap, signal,
    spawn::{self, Descriptors, Program},
};
use mainstay_wire::link::{
    API_FD, ControlRequest, ExitRecord, FORMAT, HeldJob, LINK_FD, LiveProcess, ToAgent, ToKeeper,
    Upgraded, Welcome,
};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    io,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::PathBuf,
    time::Duration,
};

/// Frames handled in one turn, so that spawning a thousand jobs does not keep the dead waiting.
const FRAMES: usize = 16;
/// Between the end of the link and the end of the agent.
const DYING: Duration = Duration::from_millis(500);
/// Ends that an agent without room for its journal does not acknowledge.
const RECORDS: usize = 8192;
/// Until an agent has said what the configuration says.
const FIRST_STOP_TIMEOUT: Duration = Duration::from_secs(8);

pub(crate) struct Node {
    pub(crate) resources: Resources,
    pub(crate) state_dir: PathBuf,
    pub(crate) options: RunOptions,
    pub(crate) agent: Option<Agent>,
    pub(crate) succession: Succession,
    /// Not known to be told yet.
    pub(crate) upgraded: Vec<Upgraded>,
    pub(crate) upgrades: u64,
    /// Not acknowledged yet.
    pub(crate) records: VecDeque<ExitRecord>,
    pub(crate) next_record: u64,
    /// WriterEvent to the agent, and not in its hands yet.
    pub(crate) pending_requests: BTreeMap<u64, PendingRequest>,
    pub(crate) next_token: u64,
    pub(crate) log_gaps: LogGaps,
    /// The latest sd_notify fields of (job, incarnation).
    pub(crate) notifications: BTreeMap<(u64, u64), BTreeMap<String, String>>,
    /// What came of tasks, and is not acknowledged yet.
    pub(crate) done: Vec<TaskDone>,
    pub(crate) stop_timeout: Duration,
    /// The keeper carries out a node stop by itself.
    pub(crate) stopping_alone: bool,
    /// How the main job ended, should the keeper have to end the run.
    pub(crate) main_exit: Option<i32>,
    /// The run ends with this code as soon as everything is gone.
    pub(crate) ending: Option<i32>,
    /// Killed at the end, and told of.
    pub(crate) strays: HashSet<u32>,
    pub(crate) keeper_clients: BTreeMap<u64, KeeperClient>,
    pub(crate) check: Option<BinaryCheck>,
    pub(crate) frames_left: bool,
}

/// What a node has from its first moment to its last.
pub(crate) struct Resources {
    pub(crate) dir: RunDir,
    /// Held against another node that would write into the same logs.
    pub(crate) state_lock: Option<OwnedFd>,
    /// Our own executable: the agent is started from it, whatever lies at its path by now.
    pub(crate) exe: OwnedFd,
    /// The listening socket of the API, lent to every agent.
    pub(crate) api: OwnedFd,
    /// `keeper.sock`.
    pub(crate) socket: OwnedFd,
    pub(crate) output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum PendingRequest {
    /// Asked for at a control socket.
    #[serde(rename = "Ask")]
    Control {
        job: u64,
        incarnation: u64,
        #[serde(rename = "ask")]
        request: ControlRequest,
    },
    Signal(Signal),
}

/// Who wants an upgrade and hears how it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum UpgradeRequester {
    #[serde(rename = "Asker")]
    KeeperClient(u64),
    Agent(u64),
}

impl Node {
    pub(crate) fn new(resources: Resources, state_dir: PathBuf, options: RunOptions) -> Node {
        Node {
            resources,
            state_dir,
            options,
            agent: None,
            succession: Succession::default(),
            upgraded: Vec::new(),
            upgrades: 0,
            records: VecDeque::new(),
            next_record: 0,
            pending_requests: BTreeMap::new(),
            log_gaps: LogGaps::default(),
            next_token: 0,
            notifications: BTreeMap::new(),
            done: Vec::new(),
            stop_timeout: FIRST_STOP_TIMEOUT,
            stopping_alone: false,
            main_exit: None,
            ending: None,
            strays: HashSet::new(),
            keeper_clients: BTreeMap::new(),
            check: None,
            frames_left: false,
        }
    }

    pub(crate) fn await_agent(&mut self, pending: PendingRequest) -> u64 {
        self.next_token += 1;
        self.pending_requests.insert(self.next_token, pending);
        self.next_token
    }
}

impl Keeper {
    pub(crate) fn start_agent(&mut self) {
        let Some(node) = self.node() else { return };
        if node.agent.is_some() || node.stopping_alone || node.ending.is_some() {
            return;
        }
        if let Err(error) = self.try_start_agent() {
            self.log(format!("cannot start the agent: {error}"));
            self.agent_failed(false, reap::How::Code(1));
        }
    }

    fn try_start_agent(&mut self) -> io::Result<()> {
        self.next_stream += 1;
        let key = self.next_stream;
        let Keeper { role: Role::Node(node), context, poller, children, .. } = self else {
            return Ok(());
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let (read, write) = launch::pipe()?;
        let argv: Vec<String> =
            std::iter::once("mainstay".to_owned()).chain(node.options.agent_args.clone()).collect();
        let mut program = Program::new(&argv, &context.env)?;
        program.run_descriptor(node.resources.exe.as_raw_fd());
        program.ignored.clone_from(&context.ignored);
        program.die_with_parent = false;
        debug_assert_eq!((LINK_FD, API_FD), (3, 4));
        let descriptors = Descriptors {
            stdio: Some([context.null.as_fd(), write.as_fd(), write.as_fd()]),
            extra: vec![theirs.as_fd(), node.resources.api.as_fd()],
            placed: None,
        };
        let cloned = spawn::spawn(&program, &descriptors, None)?;
        poller.add(&ours, Source::Link, 0, Interest::Read)?;
        children.insert(cloned.pid, Child::Agent);
        let log = Log { format: ForwardFormat::Raw, ..Log::default() };
        node.resources.output.open(Stream {
            key,
            owner: Owner::Own,
            channel: Channel::Stderr,
            log,
            fd: read,
            write_end: WriteEnd::Pipe,
            partial: Vec::new(),
        });
        node.agent = Some(Agent::new(cloned.pid, ours));
        node.frames_left = false;
        Ok(())
    }

    /// Queues a message for the agent; one that does not listen gets it all when it says hello.
    pub(crate) fn send(&mut self, message: &ToAgent) {
        let Some(node) = self.node() else { return };
        if let Some(agent) = &mut node.agent {
            agent.queue(message);
        }
    }

    /// What is done once after every turn.
    pub(crate) fn after_events(&mut self) {
        self.flush_agent();
        // Only to an agent that has read what came before, so after that was sent.
        self.send_notifications();
        self.send_log_gaps();
        self.flush_agent();
        self.try_end();
    }

    /// Sends what the agent takes now.
    pub(crate) fn flush_agent(&mut self) {
        let Keeper { role: Role::Node(node), poller, .. } = self else { return };
        if let Some(agent) = &mut node.agent
            && !agent.is_idle()
        {
            let interest = if agent.flush() { Interest::ReadWrite } else { Interest::Read };
            if agent.listens_for(interest) {
                poller.change(agent.fd(), Source::Link, 0, interest);
            }
        }
    }

    pub(crate) fn link_has_more(&self) -> bool {
        matches!(&self.role, Role::Node(node) if node.frames_left && node.agent.is_some())
    }

    pub(crate) fn link_ready(&mut self, event: Ready) {
        let Some(agent) = self.node().and_then(|node| node.agent.as_mut()) else { return };
        if event.readable && agent.read() == LinkRead::End {
            // Usually it is dying, and its exit code counts: it gets a moment for that.
            let Keeper { role: Role::Node(node), poller, deadlines, .. } = self else { return };
            if let Some(agent) = &node.agent {
                poller.remove(agent.fd());
                deadlines.after(DYING, Deadline::AgentDying { pid: agent.pid });
            }
        }
        self.handle_frames();
    }

    /// An agent that has closed the link and does not end is of no use.
    pub(crate) fn agent_dying(&mut self, pid: u32) {
        if self.children.get(&pid) == Some(&Child::Agent) {
            let _ = signal::send(pid, tree::KILL);
        }
    }

    pub(crate) fn handle_frames(&mut self) {
        for _ in 0..FRAMES {
            if !self.handle_frame() {
                return;
            }
        }
    }

    /// Handles the next frame of the agent; false when there is none.
    fn handle_frame(&mut self) -> bool {
        let Some(node) = self.node() else { return false };
        let Some(agent) = &mut node.agent else { return false };
        let next = agent.next();
        node.frames_left = matches!(next, Ok(Some(_)));
        match next {
            Ok(Some(message)) => {
                self.on_message(message);
                true
            }
            Ok(None) => false,
            Err(error) => {
                let pid = agent.pid;
                self.log(format!("the agent talks nonsense and is replaced: {error}"));
                let _ = signal::send(pid, tree::KILL);
                false
            }
        }
    }

    fn on_message(&mut self, message: ToKeeper) {
        match message {
            ToKeeper::Hello { format, version: _ } => self.welcome(format),
            ToKeeper::Ready { stop_timeout_ms } => {
                if let Some(node) = self.node() {
                    node.stop_timeout = Duration::from_millis(stop_timeout_ms);
                    node.succession.became_ready();
                    // It has written down that there was an upgrade.
                    node.upgraded.clear();
                    if let Some(agent) = &mut node.agent {
                        agent.ready = true;
                    }
                }
            }
            ToKeeper::Spawn(spawn) => self.spawn(&spawn),
            ToKeeper::Stop { job, incarnation, signal, to } => {
                self.signal_job(&job, incarnation, signal, to, Asked::Stop);
            }
            ToKeeper::Kill { job, incarnation } => self.kill_job(&job, incarnation),
            ToKeeper::Signal { job, incarnation, signal, to } => {
                self.signal_job(&job, incarnation, signal, to, Asked::None);
            }
            ToKeeper::Extend { job, incarnation, fence_at } => {
                self.extend(&job, incarnation, fence_at)
            }
            ToKeeper::UpdateSettings { job, settings } => self.update_settings(&job, &settings),
            ToKeeper::Forget { job } => self.forget(&job),
            ToKeeper::RunTask(task) => self.run_task(&task),
            ToKeeper::TaskTaken { id } => {
                if let Some(node) = self.node() {
                    node.done.retain(|done| done.id != id);
                }
            }
            ToKeeper::Ack { record } => {
                if let Some(node) = self.node() {
                    node.records.retain(|kept| kept.record != record);
                }
            }
            ToKeeper::Taken { token } => {
                if let Some(node) = self.node() {
                    node.pending_requests.remove(&token);
                    node.log_gaps.taken(token);
                }
            }
            ToKeeper::Inspect { id } => {
                let figures = self.figures();
                self.send(&ToAgent::Figures { id, figures });
            }
            ToKeeper::RotateLogs => {
                if let Some(output) = self.output() {
                    output.rotate();
                }
            }
            ToKeeper::Upgrade { id, binary } => {
                self.begin_upgrade(binary, UpgradeRequester::Agent(id))
            }
            ToKeeper::Exit { code } => self.end(code),
        }
    }

    fn welcome(&mut self, format: u32) {
        let jobs = self.jobs.values().map(|job| HeldJob {
            job: job.name.clone(),
            highest: job.highest,
            live: job.process.as_ref().map(|process| LiveProcess {
                incarnation: process.incarnation,
                pid: process.pid,
                tree: process.tree.kind(),
                unenforced: process.unenforced.clone(),
                spawned: matches!(process.phase, Phase::Up | Phase::Clearing { .. }),
                notified: process.notified.clone(),
                settings: process.settings(),
            }),
        });
        let jobs = jobs.collect();
        let run = self.context.run.clone();
        let names: BTreeMap<u64, Name> =
            self.jobs.values().map(|job| (job.id, job.name.clone())).collect();
        let Some(node) = self.node() else { return };
        let signals = node.pending_requests.iter().filter_map(|(token, pending)| match pending {
            PendingRequest::Signal(signal) => Some((*token, *signal)),
            PendingRequest::Control { .. } => None,
        });
        let welcome = Welcome {
            format: FORMAT,
            run,
            run_dir: node.resources.dir.path().to_owned(),
            state_dir: node.state_dir.clone(),
            agent_restarts: node.succession.restarts,
            upgraded: node.upgraded.clone(),
            jobs,
            records: node.records.iter().cloned().collect(),
            signals: signals.collect(),
        };
        let asks = node.pending_requests.iter().filter_map(|(token, pending)| match pending {
            PendingRequest::Signal(_) => None,
            PendingRequest::Control { job, incarnation, request } => Some(ToAgent::Asked {
                token: *token,
                job: names.get(job)?.clone(),
                incarnation: *incarnation,
                request: *request,
            }),
        });
        let asks: Vec<ToAgent> = asks.chain(node.log_gaps.messages()).collect();
        let done: Vec<ToAgent> = node.done.iter().map(TaskDone::message).collect();
        let Some(agent) = &mut node.agent else { return };
        if format != FORMAT {
            let _ = signal::send(agent.pid, tree::KILL);
            return;
        }
        if !agent.queue(&ToAgent::Welcome(Box::new(welcome))) {
            let pid = agent.pid;
            let _ = signal::send(pid, tree::KILL);
            self.log("there is too much to tell a new agent: it is replaced");
            return;
        }
        for message in asks.iter().chain(&done) {
            agent.queue(message);
        }
    }

    /// An incarnation has ended: kept until an agent has written it down.
    pub(crate) fn ended(&mut self, mut record: ExitRecord, main: bool) {
        match &mut self.role {
            Role::Hold(_) => {
                if let Exit::Error { error, .. } = &record.exit {
                    eprintln!("mainstay: {error}");
                }
                self.exit = Some(record.exit.shell_code());
            }
            Role::Node(node) => {
                node.next_record += 1;
                record.record = node.next_record;
                if main {
                    node.main_exit = Some(record.exit.shell_code());
                }
                if node.records.len() == RECORDS {
                    node.records.pop_front();
                }
                node.records.push_back(record.clone());
                self.send(&ToAgent::Exited(record));
            }
        }
    }

    pub(crate) fn agent_died(&mut self, pid: u32) {
        let how = reap::reap(pid).map_or(reap::How::Code(1), |death| death.how);
        // What it had decided before it died still holds: the next one counts on it.
        self.drain_link();
        let Some(node) = self.node() else { return };
        let Some(agent) = node.agent.take() else { return };
        let ready = agent.ready;
        self.poller.remove(agent.fd());
        self.agent_failed(ready, how);
    }

    /// Handles everything that the agent has sent.
    pub(crate) fn drain_link(&mut self) {
        loop {
            while self.handle_frame() {}
            match self.node().and_then(|node| node.agent.as_mut()).map(Agent::read) {
                Some(LinkRead::Some) => {}
                Some(LinkRead::Nothing | LinkRead::End) | None => return,
            }
        }
    }

    fn agent_failed(&mut self, was_ready: bool, how: reap::How) {
        let Some(node) = self.node() else { return };
        if node.ending.is_some() || node.stopping_alone {
            return;
        }
        match node.succession.died(was_ready, how, clock::boottime()) {
            AfterDeath::End(code) => self.end(code),
            AfterDeath::Restart { after } => {
                let how = match how {
                    reap::How::Code(code) => format!("ended with code {code}"),
                    reap::How::Signal(number) => format!("was killed by signal {number}"),
                };
                let when = if after.is_zero() {
                    "at once".to_owned()
                } else {
                    format!("in {} ms", after.as_millis())
                };
                let jobs = self.running().len();
                self.log(format!("the agent {how}; {jobs} jobs run on; a new one starts {when}"));
                if after.is_zero() {
                    self.start_agent();
                } else {
                    self.deadlines.after(after, Deadline::StartAgent);
                }
            }
        }
    }

    /// Ends the agent and forgets it.
    pub(crate) fn kill_agent(&mut self) {
        let Some(pid) = self.node().and_then(|node| node.agent.as_ref()).map(|agent| agent.pid)
        else {
            return;
        };
        let _ = signal::send(pid, tree::KILL);
        let _ = reap::wait_for(pid);
        self.children.remove(&pid);
        self.drain_link();
        if let Some(agent) = self.node().and_then(|node| node.agent.take()) {
            self.poller.remove(agent.fd());
        }
    }
}
