//! The keeper of a node, and the agent it keeps alive.

use crate::{
    RunOptions,
    control::keeper_socket::Asker,
    event_loop::{
        deadline::Deadline,
        poller::{Interest, Kind, Ready},
    },
    keeper::{Child, Keeper, Part},
    link::{
        agent::{Agent, Next, Read, Succession},
        log_gaps::Lost,
    },
    output::{Channel, Other, Output, Owner, Stream},
    process::{job::Phase, launch, task::TaskDone, tree},
    run::dirs::RunDir,
    upgrade::Check,
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
    API_FD, Ask, ExitRecord, FORMAT, HeldJob, LINK_FD, Live, ToAgent, ToKeeper, Upgraded, Welcome,
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

pub(crate) struct NodePart {
    pub(crate) means: Means,
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
    /// Told to the agent, and not in its hands yet.
    pub(crate) untaken: BTreeMap<u64, Untaken>,
    pub(crate) next_token: u64,
    pub(crate) lost: Lost,
    /// The latest sd_notify fields of (job, incarnation).
    pub(crate) notices: BTreeMap<(u64, u64), BTreeMap<String, String>>,
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
    pub(crate) askers: BTreeMap<u64, Asker>,
    pub(crate) check: Option<Check>,
    pub(crate) frames_left: bool,
}

/// What a node has from its first moment to its last.
pub(crate) struct Means {
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
pub(crate) enum Untaken {
    Ask { job: u64, incarnation: u64, ask: Ask },
    Signal(Signal),
}

/// Who wants an upgrade and hears how it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Wanting {
    Asker(u64),
    Agent(u64),
}

impl NodePart {
    pub(crate) fn new(means: Means, state_dir: PathBuf, options: RunOptions) -> NodePart {
        NodePart {
            means,
            state_dir,
            options,
            agent: None,
            succession: Succession::default(),
            upgraded: Vec::new(),
            upgrades: 0,
            records: VecDeque::new(),
            next_record: 0,
            untaken: BTreeMap::new(),
            lost: Lost::default(),
            next_token: 0,
            notices: BTreeMap::new(),
            done: Vec::new(),
            stop_timeout: FIRST_STOP_TIMEOUT,
            stopping_alone: false,
            main_exit: None,
            ending: None,
            strays: HashSet::new(),
            askers: BTreeMap::new(),
            check: None,
            frames_left: false,
        }
    }

    pub(crate) fn wait_for_agent(&mut self, untaken: Untaken) -> u64 {
        self.next_token += 1;
        self.untaken.insert(self.next_token, untaken);
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
            self.note(format!("cannot start the agent: {error}"));
            self.agent_failed(false, reap::How::Code(1));
        }
    }

    fn try_start_agent(&mut self) -> io::Result<()> {
        self.next_stream += 1;
        let key = self.next_stream;
        let Keeper { part: Part::Node(node), ground, poller, children, .. } = self else {
            return Ok(());
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let (read, write) = launch::pipe()?;
        let argv: Vec<String> =
            std::iter::once("mainstay".to_owned()).chain(node.options.agent_args.clone()).collect();
        let mut program = Program::new(&argv, &ground.env)?;
        program.run_descriptor(node.means.exe.as_raw_fd());
        program.ignored.clone_from(&ground.ignored);
        program.die_with_parent = false;
        debug_assert_eq!((LINK_FD, API_FD), (3, 4));
        let descriptors = Descriptors {
            stdio: Some([ground.null.as_fd(), write.as_fd(), write.as_fd()]),
            extra: vec![theirs.as_fd(), node.means.api.as_fd()],
            placed: None,
        };
        let cloned = spawn::spawn(&program, &descriptors, None)?;
        poller.add(&ours, Kind::Link, 0, Interest::Read)?;
        children.insert(cloned.pid, Child::Agent);
        let log = Log { format: ForwardFormat::Raw, ..Log::default() };
        node.means.output.open(Stream {
            key,
            owner: Owner::Own,
            channel: Channel::Stderr,
            log,
            fd: read,
            other: Other::Pipe,
            partial: Vec::new(),
        });
        node.agent = Some(Agent::new(cloned.pid, ours));
        node.frames_left = false;
        Ok(())
    }

    /// Queues a message for the agent; one that does not listen gets it all when it says hello.
    pub(crate) fn tell(&mut self, message: &ToAgent) {
        let Some(node) = self.node() else { return };
        if let Some(agent) = &mut node.agent {
            agent.say(message);
        }
    }

    /// What is done once after every turn.
    pub(crate) fn settle(&mut self) {
        self.flush_agent();
        // Only to an agent that has read what came before, so after that was sent.
        self.pass_notices();
        self.pass_lost();
        self.flush_agent();
        self.try_end();
    }

    /// Sends what the agent takes now.
    pub(crate) fn flush_agent(&mut self) {
        let Keeper { part: Part::Node(node), poller, .. } = self else { return };
        if let Some(agent) = &mut node.agent
            && !agent.is_idle()
        {
            let interest = if agent.flush() { Interest::ReadWrite } else { Interest::Read };
            if agent.listens_for(interest) {
                poller.change(agent.fd(), Kind::Link, 0, interest);
            }
        }
    }

    pub(crate) fn link_has_more(&self) -> bool {
        matches!(&self.part, Part::Node(node) if node.frames_left && node.agent.is_some())
    }

    pub(crate) fn link_ready(&mut self, event: Ready) {
        let Some(agent) = self.node().and_then(|node| node.agent.as_mut()) else { return };
        if event.readable && agent.read() == Read::End {
            // Usually it is dying, and its exit code counts: it gets a moment for that.
            let Keeper { part: Part::Node(node), poller, deadlines, .. } = self else { return };
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
                self.obey(message);
                true
            }
            Ok(None) => false,
            Err(error) => {
                let pid = agent.pid;
                self.note(format!("the agent talks nonsense and is replaced: {error}"));
                let _ = signal::send(pid, tree::KILL);
                false
            }
        }
    }

    fn obey(&mut self, message: ToKeeper) {
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
            ToKeeper::Rule { job, rules } => self.rule(&job, &rules),
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
                    node.untaken.remove(&token);
                    node.lost.taken(token);
                }
            }
            ToKeeper::Inspect { id } => {
                let figures = self.figures();
                self.tell(&ToAgent::Figures { id, figures });
            }
            ToKeeper::RotateLogs => {
                if let Some(output) = self.output() {
                    output.rotate();
                }
            }
            ToKeeper::Upgrade { id, binary } => self.begin_upgrade(binary, Wanting::Agent(id)),
            ToKeeper::Exit { code } => self.end(code),
        }
    }

    fn welcome(&mut self, format: u32) {
        let jobs = self.jobs.values().map(|job| HeldJob {
            job: job.name.clone(),
            highest: job.highest,
            live: job.process.as_ref().map(|process| Live {
                incarnation: process.incarnation,
                pid: process.pid,
                tree: process.tree.kind(),
                unenforced: process.unenforced.clone(),
                spawned: matches!(process.phase, Phase::Up | Phase::Clearing { .. }),
                notified: process.notified.clone(),
                rules: process.rules(),
            }),
        });
        let jobs = jobs.collect();
        let run = self.ground.run.clone();
        let names: BTreeMap<u64, Name> =
            self.jobs.values().map(|job| (job.id, job.name.clone())).collect();
        let Some(node) = self.node() else { return };
        let signals = node.untaken.iter().filter_map(|(token, untaken)| match untaken {
            Untaken::Signal(signal) => Some((*token, *signal)),
            Untaken::Ask { .. } => None,
        });
        let welcome = Welcome {
            format: FORMAT,
            run,
            run_dir: node.means.dir.path().to_owned(),
            state_dir: node.state_dir.clone(),
            agent_restarts: node.succession.restarts,
            upgraded: node.upgraded.clone(),
            jobs,
            records: node.records.iter().cloned().collect(),
            signals: signals.collect(),
        };
        let asks = node.untaken.iter().filter_map(|(token, untaken)| match untaken {
            Untaken::Signal(_) => None,
            Untaken::Ask { job, incarnation, ask } => Some(ToAgent::Asked {
                token: *token,
                job: names.get(job)?.clone(),
                incarnation: *incarnation,
                ask: *ask,
            }),
        });
        let asks: Vec<ToAgent> = asks.chain(node.lost.messages()).collect();
        let done: Vec<ToAgent> = node.done.iter().map(TaskDone::message).collect();
        let Some(agent) = &mut node.agent else { return };
        if format != FORMAT {
            let _ = signal::send(agent.pid, tree::KILL);
            return;
        }
        if !agent.say(&ToAgent::Welcome(Box::new(welcome))) {
            let pid = agent.pid;
            let _ = signal::send(pid, tree::KILL);
            self.note("there is too much to tell a new agent: it is replaced");
            return;
        }
        for message in asks.iter().chain(&done) {
            agent.say(message);
        }
    }

    /// An incarnation has ended: kept until an agent has written it down.
    pub(crate) fn ended(&mut self, mut record: ExitRecord, main: bool) {
        match &mut self.part {
            Part::Hold(_) => {
                if let Exit::Error { error, .. } = &record.exit {
                    eprintln!("mainstay: {error}");
                }
                self.exit = Some(record.exit.shell_code());
            }
            Part::Node(node) => {
                node.next_record += 1;
                record.record = node.next_record;
                if main {
                    node.main_exit = Some(record.exit.shell_code());
                }
                if node.records.len() == RECORDS {
                    node.records.pop_front();
                }
                node.records.push_back(record.clone());
                self.tell(&ToAgent::Exited(record));
            }
        }
    }

    pub(crate) fn agent_died(&mut self, pid: u32) {
        let how = reap::reap(pid).map_or(reap::How::Code(1), |death| death.how);
        // What it had decided before it died still holds: the next one counts on it.
        self.hear_out_agent();
        let Some(node) = self.node() else { return };
        let Some(agent) = node.agent.take() else { return };
        let ready = agent.ready;
        self.poller.remove(agent.fd());
        self.agent_failed(ready, how);
    }

    /// Handles everything that the agent has sent.
    pub(crate) fn hear_out_agent(&mut self) {
        loop {
            while self.handle_frame() {}
            match self.node().and_then(|node| node.agent.as_mut()).map(Agent::read) {
                Some(Read::Some) => {}
                Some(Read::Nothing | Read::End) | None => return,
            }
        }
    }

    fn agent_failed(&mut self, was_ready: bool, how: reap::How) {
        let Some(node) = self.node() else { return };
        if node.ending.is_some() || node.stopping_alone {
            return;
        }
        match node.succession.died(was_ready, how, clock::boottime()) {
            Next::End(code) => self.end(code),
            Next::Restart { after } => {
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
                self.note(format!("the agent {how}; {jobs} jobs run on; a new one starts {when}"));
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
        self.hear_out_agent();
        if let Some(agent) = self.node().and_then(|node| node.agent.take()) {
            self.poller.remove(agent.fd());
        }
    }
}
