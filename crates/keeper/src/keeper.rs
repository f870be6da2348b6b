//! The main thread: one loop that sleeps until something happens to what it holds.
//!
//! ```text
//!   signals ─┐                          ┌─► process/   spawn, up, ended, gone; stops; tasks; sd_notify
//!   link ────┤                          ├─► link/      the agent: its orders, its process
//!   sockets ─┼─► Keeper::dispatch ──────┼─► control/   clients of control sockets, keeper.sock
//!   pipes ───┤                          ├─► upgrade/   the next binary
//!   clock ───┘                          └─► run/       the end of the run
//! ```
//!
//! Nothing here waits, retries or decides: what fails becomes an exit record.

use crate::{
    control::client::Client,
    event_loop::{
        deadline::{Deadline, Deadlines},
        poller::{Interest, Poller, Ready, Source},
        reserve::Reserve,
    },
    link::node::Node,
    output::{Output, WriterEvent},
    process::{
        dead::Dead,
        job::Job,
        launch::RunContext,
        orphans::Orphans,
        task::{Leftover, Task},
    },
};
use mainstay_core::name::Name;
use mainstay_sys::{nonblocking, reap, signal::Signals, state_dir::StateDir};
use mainstay_wire::link::ToAgent;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    io,
    sync::Arc,
};

pub(crate) struct Keeper {
    pub(crate) poller: Poller,
    pub(crate) deadlines: Deadlines,
    pub(crate) signals: Signals,
    pub(crate) reserve: Reserve,
    pub(crate) context: RunContext,
    /// Where the state files of jobs are.
    pub(crate) state_files: Arc<StateDir>,
    pub(crate) jobs: BTreeMap<u64, Job>,
    /// Jobs whose leader is gone and whose tree is not.
    pub(crate) clearing: BTreeSet<u64>,
    pub(crate) names: HashMap<Name, u64>,
    pub(crate) children: HashMap<u32, Child>,
    pub(crate) clients: BTreeMap<u64, Client>,
    pub(crate) tasks: BTreeMap<u64, Task>,
    pub(crate) leftovers: Vec<Leftover>,
    pub(crate) orphans: Orphans,
    pub(crate) dead: Dead,
    /// Clients are told every few seconds while there are any.
    pub(crate) reporting: bool,
    /// When it was last said that state files cannot be written (CLOCK_BOOTTIME, ns).
    pub(crate) state_trouble: Option<u64>,
    pub(crate) next_id: u64,
    pub(crate) next_stream: u64,
    pub(crate) role: Role,
    /// Set: the loop ends with this code.
    pub(crate) exit: Option<i32>,
}

/// What kind of keeper this is.
pub(crate) enum Role {
    Node(Box<Node>),
    /// `mainstay hold`: one command, no agent.
    Hold(Hold),
}

pub(crate) struct Hold {
    /// Asked to stop by a signal: the next one kills.
    pub(crate) stopping: bool,
    /// The command has ended with this code: what it has left is being killed.
    pub(crate) ending: Option<i32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Child {
    Job(u64),
    Task(u64),
    Agent,
    Spare,
    /// A new binary that looks at what it would take over.
    Check,
}

impl Keeper {
    pub(crate) fn new(
        context: RunContext,
        signals: Signals,
        state_files: Arc<StateDir>,
        role: Role,
    ) -> io::Result<Keeper> {
        Keeper::of(Poller::new()?, Deadlines::new()?, signals, context, state_files, role)
    }

    pub(crate) fn of(
        poller: Poller,
        deadlines: Deadlines,
        signals: Signals,
        context: RunContext,
        state_files: Arc<StateDir>,
        role: Role,
    ) -> io::Result<Keeper> {
        poller.add(signals.fd(), Source::Signals, 0, Interest::Read)?;
        for timer in deadlines.fds() {
            poller.add(timer, Source::Clock, 0, Interest::Read)?;
        }
        if let Role::Node(node) = &role {
            poller.add(node.resources.output.events_fd(), Source::Writer, 0, Interest::Read)?;
            poller.add(&node.resources.socket, Source::KeeperSocket, 0, Interest::Read)?;
            poller.add(node.resources.opener.fd(), Source::Opener, 0, Interest::Read)?;
            if let Some(terminal) = &node.terminal {
                terminal.watch(&poller)?;
            }
            if let Some(starter) = &node.starter {
                starter.watch(&poller)?;
            }
        }
        Ok(Keeper {
            poller,
            deadlines,
            signals,
            reserve: Reserve::new(),
            context,
            state_files,
            jobs: BTreeMap::new(),
            clearing: BTreeSet::new(),
            names: HashMap::new(),
            children: HashMap::new(),
            clients: BTreeMap::new(),
            tasks: BTreeMap::new(),
            leftovers: Vec::new(),
            orphans: Orphans::default(),
            dead: Dead::default(),
            reporting: false,
            state_trouble: None,
            next_id: 0,
            next_stream: 0,
            role,
            exit: None,
        })
    }

    pub(crate) fn fresh_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    pub(crate) fn node(&mut self) -> Option<&mut Node> {
        match &mut self.role {
            Role::Node(node) => Some(node),
            Role::Hold(_) => None,
        }
    }

    pub(crate) fn output(&self) -> Option<&Output> {
        match &self.role {
            Role::Node(node) => Some(&node.resources.output),
            Role::Hold(_) => None,
        }
    }

    /// A line of our own log, which is stderr for `hold`.
    pub(crate) fn log(&self, text: impl Into<String>) {
        match self.output() {
            Some(output) => output.log(text),
            None => {
                nonblocking::tell_stderr(&format!("mainstay: {}", text.into()));
            }
        }
    }

    /// Runs until the end; the exit code.
    pub(crate) fn run(&mut self) -> i32 {
        self.feed_watchdog();
        self.look_at_terminal();
        loop {
            for deadline in self.deadlines.take_due() {
                self.due(deadline);
            }
            self.after_events();
            // Whoever has not read the last word yet has a second for it.
            if let (Some(code), true) = (self.exit, self.clients.is_empty()) {
                return code;
            }
            self.try_upgrade();
            self.deadlines.arm();
            match self.poller.wait(self.link_has_more()) {
                Ok(ready) => self.dispatch(&ready),
                Err(error) => {
                    self.log(format!("cannot wait for events: {error}"));
                    return 1;
                }
            }
        }
    }

    fn dispatch(&mut self, ready: &[Ready]) {
        // The dead last: what they said before they died comes first.
        let mut dead = None;
        for event in ready {
            match event.kind {
                Source::Signals => dead = self.take_signals(),
                Source::Clock => self.deadlines.quiet(),
                Source::Writer => self.take_writer_events(),
                Source::Link => self.link_ready(*event),
                Source::KeeperSocket => self.accept_keeper_client(),
                Source::KeeperClient => self.keeper_client_ready(event.id),
                Source::Exec => self.exec_ready(event.id),
                Source::Cleared => self.recheck(event.id),
                Source::Control => self.accept_clients(event.id),
                Source::ControlClient => self.client_ready(*event),
                Source::Notify => self.read_notifications(event.id),
                Source::ReadyPipe => self.read_ready_pipe(event.id),
                Source::Task => self.task_ready(event.id),
                Source::Check => self.check_ready(),
                Source::Opener => self.binary_opened(),
                Source::Starter => self.starter_left(),
                Source::Terminal => drop(self.look_at_terminal()),
            }
        }
        if self.link_has_more() {
            self.handle_frames();
        }
        if let Some(dead) = dead {
            self.reap_all(&dead);
        }
    }

    /// Reads pending signals; which children have died, or some of them: such signals merge.
    fn take_signals(&mut self) -> Option<Vec<u32>> {
        const CHLD: i32 = 17;
        let mut dead: Option<Vec<u32>> = None;
        while let Some(signal) = self.signals.next() {
            if signal.number == CHLD {
                dead.get_or_insert_default().push(signal.pid);
            } else {
                self.signalled(signal.number);
            }
        }
        dead
    }

    pub(crate) fn child_died(&mut self, pid: u32) {
        match self.children.get(&pid).copied() {
            Some(Child::Job(id)) => self.job_died(id, pid),
            Some(Child::Task(id)) => self.task_died(id, pid),
            Some(Child::Agent) => self.agent_died(pid),
            Some(Child::Spare) => self.spare_died(pid),
            Some(Child::Check) => self.check_died(pid),
            // An orphan that we adopted.
            None => drop(reap::reap(pid)),
        }
        self.children.remove(&pid);
        self.context.window.child_died(pid);
    }

    fn take_writer_events(&mut self) {
        let events = self.output().map(Output::events).unwrap_or_default();
        for event in events {
            match event {
                WriterEvent::Gap { job, lines } => {
                    if let Some(node) = self.node() {
                        node.log_gaps.add(job, lines);
                    }
                }
                WriterEvent::Closed { job, file, compress } => {
                    self.send(&ToAgent::Rotated { job, file, compress });
                }
                // Who waits for that looks after every turn.
                WriterEvent::Changed => {}
            }
        }
    }

    fn due(&mut self, deadline: Deadline) {
        match deadline {
            Deadline::Fence { job, incarnation } => self.fence(job, incarnation),
            Deadline::Escalate { job, incarnation } => self.escalate(job, incarnation),
            Deadline::Recheck { job, incarnation } => {
                self.recheck_due(job, incarnation);
            }
            Deadline::Task { task } => self.task_late(task),
            Deadline::RequestTimeout { token } => self.request_timed_out(token),
            Deadline::StartAgent => self.start_agent(),
            Deadline::StartSpare => self.start_spare(),
            Deadline::AgentSilent { pid } => self.agent_silent(pid),
            Deadline::AgentDying { pid } => self.agent_dying(pid),
            Deadline::StateReport => self.report_states(),
            Deadline::Linger { client } => self.drop_client(client),
            Deadline::NodeStop => self.end_own_stop(),
            Deadline::Last => self.last(),
            Deadline::LastOutput => self.look_at_last_output(),
            Deadline::ServiceManager => self.tell_service_manager_again(),
            Deadline::Watchdog => self.feed_watchdog(),
            Deadline::Dead => self.look_for_dead(),
            Deadline::Upgrade => self.upgrade_late(),
            Deadline::Check { pid } => self.check_late(pid),
        }
    }
}
