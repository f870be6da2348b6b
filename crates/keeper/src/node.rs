//! The keeper of a node: the agent it keeps alive, who asks at `keeper.sock`, and the end of a run.

use crate::{
    RunOptions,
    agent::{Agent, Next, Read, Succession},
    deadline::Deadline,
    dirs::RunDir,
    job::{Job, Phase},
    keeper::{Child, Keeper, Part},
    launch,
    output::{Channel, Output, Owner, Stream},
    poller::{Interest, Kind, Ready},
    tree,
    upgrade::Check,
};
use mainstay_core::{
    exit::{Asked, Exit},
    name::Name,
    plan::{ForwardFormat, Log},
    signal::Signal,
};
use mainstay_sys::{
    cgroup::Group,
    clock, reap, signal,
    spawn::{self, Descriptors, Program},
};
use mainstay_wire::{
    frame::{self, Decoder},
    link::{
        API_FD, Ask, ExitRecord, FORMAT, Figures, HeldJob, KeeperAnswer, KeeperAsk, LINK_FD, Live,
        ToAgent, ToKeeper, Welcome,
    },
};
use rustix::net::{AddressFamily, SocketFlags, SocketType, accept_with, socketpair, sockopt};
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
/// What the last steps of a run may take.
const LAST: Duration = Duration::from_millis(1500);
/// Between the end of the link and the end of the agent.
const DYING: Duration = Duration::from_millis(500);
const MOST_ASKERS: usize = 32;
/// Until an agent has said what the configuration says.
const FIRST_STOP_TIMEOUT: Duration = Duration::from_secs(8);

pub(crate) struct NodePart {
    pub(crate) means: Means,
    pub(crate) state_dir: PathBuf,
    pub(crate) options: RunOptions,
    pub(crate) agent: Option<Agent>,
    pub(crate) succession: Succession,
    pub(crate) upgraded: Option<(String, String)>,
    /// Not acknowledged yet.
    pub(crate) records: VecDeque<ExitRecord>,
    pub(crate) next_record: u64,
    /// Told to the agent, and not in its hands yet.
    pub(crate) untaken: BTreeMap<u64, Untaken>,
    pub(crate) next_token: u64,
    /// The latest sd_notify fields of (job, incarnation).
    pub(crate) notices: BTreeMap<(u64, u64), BTreeMap<String, String>>,
    /// Tasks that ended while no agent listened.
    pub(crate) undelivered: Vec<ToAgent>,
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

/// Somebody at `keeper.sock`.
#[derive(Debug)]
pub(crate) struct Asker {
    pub(crate) fd: OwnedFd,
    pub(crate) decoder: Decoder,
}

/// Who wants an upgrade and hears how it went.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
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
            upgraded: None,
            records: VecDeque::new(),
            next_record: 0,
            untaken: BTreeMap::new(),
            next_token: 0,
            notices: BTreeMap::new(),
            undelivered: Vec::new(),
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
            partial: Vec::new(),
        });
        node.agent = Some(Agent::new(cloned.pid, ours));
        node.frames_left = false;
        Ok(())
    }

    /// Queues a message for the agent; one that does not listen gets it all when it says hello.
    pub(crate) fn tell(&mut self, message: &ToAgent) {
        let Some(node) = self.node() else { return };
        match &mut node.agent {
            Some(agent) if agent.welcomed => agent.say(message),
            _ => {
                if let ToAgent::TaskDone { .. } = message {
                    node.undelivered.push(message.clone());
                }
            }
        }
    }

    /// What is done once after every turn.
    pub(crate) fn settle(&mut self) {
        self.pass_notices();
        let Keeper { part: Part::Node(node), poller, .. } = self else { return };
        if let Some(agent) = &mut node.agent
            && !agent.is_idle()
        {
            let interest = if agent.flush() { Interest::ReadWrite } else { Interest::Read };
            poller.change(agent.fd(), Kind::Link, 0, interest);
        }
        self.try_end();
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
                    node.upgraded = None;
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
            ToKeeper::Forget { job } => self.forget(&job),
            ToKeeper::RunTask(task) => self.run_task(&task),
            ToKeeper::Ack { record } => {
                if let Some(node) = self.node() {
                    node.records.retain(|kept| kept.record != record);
                }
            }
            ToKeeper::Taken { token } => {
                if let Some(node) = self.node() {
                    node.untaken.remove(&token);
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
        let asks: Vec<ToAgent> = asks.collect();
        let rest = std::mem::take(&mut node.undelivered);
        let Some(agent) = &mut node.agent else { return };
        if format != FORMAT {
            let _ = signal::send(agent.pid, tree::KILL);
            return;
        }
        agent.say(&ToAgent::Welcome(Box::new(welcome)));
        for message in asks.iter().chain(&rest) {
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

    pub(crate) fn figures(&mut self) -> Figures {
        let strays = self.strays();
        let mut figures = Figures {
            version: crate::VERSION.to_owned(),
            pid: signal::own_pid(),
            strays,
            ..Figures::default()
        };
        if let Some(output) = self.output() {
            figures.logs = output.figures();
            figures.forward_dropped = output.forward_dropped();
        }
        figures
    }

    fn strays(&self) -> Vec<mainstay_wire::link::Stray> {
        let adopted = tree::adopted(|pid| self.children.contains_key(&pid));
        if adopted.is_empty() {
            return Vec::new();
        }
        let group = |job: &Job| job.process.as_ref()?.tree.group().map(Group::procs);
        let groups = self.jobs.values().filter_map(group);
        let in_cgroups = groups.flatten().collect();
        let live = |name: &str| {
            let id = self.names.get(name);
            id.and_then(|id| self.jobs.get(id)).is_some_and(|job| job.process.is_some())
        };
        tree::strays(&adopted, &self.ground.run, &in_cgroups, live)
    }

    /// The run ends: everything is killed; the loop goes on until it is gone.
    pub(crate) fn end(&mut self, code: i32) {
        let Some(node) = self.node() else { return };
        if node.ending.replace(code).is_some() {
            return;
        }
        for (id, incarnation) in self.running() {
            self.kill_id(id, incarnation, Asked::Kill);
        }
        for task in self.tasks.values() {
            let _ = signal::send_group(task.pid, tree::KILL);
        }
        self.deadlines.after(LAST, Deadline::Last);
    }

    /// Leaves when nothing is left: jobs first, then strays, then the agent, which ends by itself.
    fn try_end(&mut self) {
        let Some(node) = self.node() else { return };
        if node.stopping_alone && node.ending.is_none() && self.running().is_empty() {
            self.end_own_stop();
        }
        let Some(code) = self.node().and_then(|node| node.ending) else { return };
        if !self.running().is_empty() || !self.tasks.is_empty() {
            return;
        }
        let strays = tree::adopted(|pid| self.children.contains_key(&pid));
        for stray in &strays {
            let _ = signal::send(*stray, tree::KILL);
            if self.node().is_some_and(|node| node.strays.insert(*stray)) {
                let command = mainstay_sys::proc::command(*stray);
                self.note(format!("killed a stray process: {stray} {command}"));
                self.tell(&ToAgent::StrayKilled { pid: *stray, command });
            }
        }
        if !strays.is_empty() {
            return;
        }
        // It has said its last words before it asked for the end.
        self.kill_agent();
        self.exit = Some(code);
    }

    /// The last steps took too long.
    pub(crate) fn last(&mut self) {
        let Some(node) = self.node() else { return };
        let Some(code) = node.ending else { return };
        for (id, _) in self.running() {
            if let Some(job) = self.jobs.get(&id) {
                self.note(format!("{} cannot be killed: it is left behind", job.name));
            }
        }
        self.kill_agent();
        self.clients.clear();
        self.exit = Some(code);
    }

    pub(crate) fn accept_asker(&mut self) {
        loop {
            let Keeper { part: Part::Node(node), poller, reserve, .. } = self else { return };
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let Ok(fd) = reserve.with(|| accept_with(&node.means.socket, flags)) else { return };
            let ours = rustix::process::geteuid();
            let allowed = sockopt::socket_peercred(&fd)
                .is_ok_and(|peer| peer.uid.is_root() || peer.uid == ours);
            if !allowed || node.askers.len() >= MOST_ASKERS {
                continue;
            }
            self.next_id += 1;
            if poller.add(&fd, Kind::KeeperClient, self.next_id, Interest::Read).is_ok() {
                node.askers.insert(self.next_id, Asker { fd, decoder: Decoder::default() });
            }
        }
    }

    pub(crate) fn asker_ready(&mut self, id: u64) {
        let Some(asker) = self.node().and_then(|node| node.askers.get_mut(&id)) else { return };
        let mut bytes = [0; 4096];
        let count = match rustix::io::read(&asker.fd, &mut bytes) {
            Ok(count) => count,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return,
            Err(_) => 0,
        };
        asker.decoder.push(&bytes[..count]);
        match asker.decoder.next::<KeeperAsk>() {
            Ok(Some(KeeperAsk::Upgrade { binary })) => {
                self.begin_upgrade(binary, Wanting::Asker(id))
            }
            Ok(Some(KeeperAsk::Stop)) => {
                self.answer(id, &KeeperAnswer::Done { version: crate::VERSION.to_owned() });
                self.signalled(Signal::TERM.number());
            }
            Ok(Some(KeeperAsk::Figures)) => {
                let figures = self.figures();
                self.answer(id, &KeeperAnswer::Figures(figures));
            }
            Ok(None) if count > 0 => {}
            Ok(None) | Err(_) => self.drop_asker(id),
        }
    }

    /// Says one thing and closes. An answer fits into the buffer of a socket.
    pub(crate) fn answer(&mut self, id: u64, answer: &KeeperAnswer) {
        if let Some(asker) = self.node().and_then(|node| node.askers.get(&id))
            && let Ok(bytes) = frame::encode(answer)
        {
            let _ = rustix::io::write(&asker.fd, &bytes);
        }
        self.drop_asker(id);
    }

    fn drop_asker(&mut self, id: u64) {
        let Keeper { part: Part::Node(node), poller, .. } = self else { return };
        if let Some(asker) = node.askers.remove(&id) {
            poller.remove(&asker.fd);
        }
    }
}
