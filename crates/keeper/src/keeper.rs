//! The main thread: one loop that sleeps until something happens to what it holds.
//!
//! ```text
//!   signals ─┐                      ┌─► life.rs    spawn, up, ended, gone
//!   link ────┤                      ├─► stop.rs    stops that nobody else carries out
//!   sockets ─┼─► Keeper::turn ──────┼─► talk.rs    clients of control sockets, sd_notify
//!   pipes ───┤                      ├─► node.rs    the agent, keeper.sock, the end of the run
//!   clock ───┘                      └─► askers.rs, upgrade.rs, end.rs
//! ```
//!
//! Nothing here waits, retries or decides: what fails becomes an exit record.

use crate::{
    control::client::Client,
    event_loop::{
        deadline::{Deadline, Deadlines},
        poller::{Interest, Kind, Poller, Ready},
        reserve::Reserve,
    },
    link::node::NodePart,
    output::{Output, Told},
    process::{
        job::Job,
        launch::Ground,
        task::{Leftover, Task},
    },
};
use mainstay_core::name::Name;
use mainstay_sys::{reap, signal::Signals};
use mainstay_wire::link::ToAgent;
use std::{
    collections::{BTreeMap, HashMap},
    io,
};

pub(crate) struct Keeper {
    pub(crate) poller: Poller,
    pub(crate) deadlines: Deadlines,
    pub(crate) signals: Signals,
    pub(crate) reserve: Reserve,
    pub(crate) ground: Ground,
    pub(crate) jobs: BTreeMap<u64, Job>,
    pub(crate) names: HashMap<Name, u64>,
    pub(crate) children: HashMap<u32, Child>,
    pub(crate) clients: BTreeMap<u64, Client>,
    pub(crate) tasks: BTreeMap<u64, Task>,
    pub(crate) leftovers: Vec<Leftover>,
    /// Clients are told every few seconds while there are any.
    pub(crate) telling: bool,
    /// When it was last said that state files cannot be written (CLOCK_BOOTTIME, ns).
    pub(crate) state_trouble: Option<u64>,
    pub(crate) next_id: u64,
    pub(crate) next_stream: u64,
    pub(crate) part: Part,
    /// Set: the loop ends with this code.
    pub(crate) exit: Option<i32>,
}

/// What kind of keeper this is.
pub(crate) enum Part {
    Node(Box<NodePart>),
    /// `mainstay hold`: one command, no agent.
    Hold(HoldPart),
}

pub(crate) struct HoldPart {
    /// Asked to stop by a signal: the next one kills.
    pub(crate) stopping: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Child {
    Job(u64),
    Task(u64),
    Agent,
    /// A new binary that looks at what it would take over.
    Check,
}

impl Keeper {
    pub(crate) fn new(ground: Ground, signals: Signals, part: Part) -> io::Result<Keeper> {
        Keeper::of(Poller::new()?, Deadlines::new()?, signals, ground, part)
    }

    pub(crate) fn of(
        poller: Poller,
        deadlines: Deadlines,
        signals: Signals,
        ground: Ground,
        part: Part,
    ) -> io::Result<Keeper> {
        poller.add(signals.fd(), Kind::Signals, 0, Interest::Read)?;
        poller.add(deadlines.fd(), Kind::Clock, 0, Interest::Read)?;
        if let Part::Node(node) = &part {
            poller.add(node.means.output.told_fd(), Kind::Told, 0, Interest::Read)?;
            poller.add(&node.means.socket, Kind::KeeperSocket, 0, Interest::Read)?;
        }
        Ok(Keeper {
            poller,
            deadlines,
            signals,
            reserve: Reserve::new(),
            ground,
            jobs: BTreeMap::new(),
            names: HashMap::new(),
            children: HashMap::new(),
            clients: BTreeMap::new(),
            tasks: BTreeMap::new(),
            leftovers: Vec::new(),
            telling: false,
            state_trouble: None,
            next_id: 0,
            next_stream: 0,
            part,
            exit: None,
        })
    }

    pub(crate) fn fresh_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    pub(crate) fn node(&mut self) -> Option<&mut NodePart> {
        match &mut self.part {
            Part::Node(node) => Some(node),
            Part::Hold(_) => None,
        }
    }

    pub(crate) fn output(&self) -> Option<&Output> {
        match &self.part {
            Part::Node(node) => Some(&node.means.output),
            Part::Hold(_) => None,
        }
    }

    /// A line of our own log; `hold` has none but stderr, which its command owns.
    pub(crate) fn note(&self, text: impl Into<String>) {
        if let Some(output) = self.output() {
            output.note(text);
        }
    }

    /// Runs until the end (the exit code) or until an upgrade is due (`None`).
    pub(crate) fn run(&mut self) -> Option<i32> {
        loop {
            for deadline in self.deadlines.take_due() {
                self.due(deadline);
            }
            self.settle();
            // Whoever has not read the last word yet has a second for it.
            if self.exit.is_some() && self.clients.is_empty() {
                return self.exit;
            }
            if self.upgrade_is_due() {
                return None;
            }
            self.deadlines.arm();
            match self.poller.wait(self.link_has_more()) {
                Ok(ready) => self.turn(&ready),
                Err(error) => {
                    self.note(format!("cannot wait for events: {error}"));
                    return Some(1);
                }
            }
        }
    }

    fn turn(&mut self, ready: &[Ready]) {
        // The dead last: what they said before they died comes first.
        let mut dead = None;
        for event in ready {
            match event.kind {
                Kind::Signals => dead = self.take_signals(),
                Kind::Clock => self.deadlines.quiet(),
                Kind::Told => self.take_told(),
                Kind::Link => self.link_ready(*event),
                Kind::KeeperSocket => self.accept_asker(),
                Kind::KeeperClient => self.asker_ready(event.id),
                Kind::Exec => self.exec_ready(event.id),
                Kind::Cleared => self.recheck(event.id),
                Kind::Control => self.accept_clients(event.id),
                Kind::ControlClient => self.client_ready(*event),
                Kind::Notify => self.take_notices(event.id),
                Kind::ReadyPipe => self.take_newline(event.id),
                Kind::Task => self.task_ready(event.id),
                Kind::Check => self.check_ready(),
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

    fn reap_all(&mut self, known: &[u32]) {
        // Those we know of first: looking for the others takes the longer the more there are.
        for &pid in known {
            if self.children.contains_key(&pid) && reap::is_dead(pid) {
                self.child_died(pid);
            }
        }
        self.flush_agent();
        while let Some(pid) = reap::peek() {
            self.child_died(pid);
        }
        self.recheck_all();
        self.clear_leftovers();
    }

    fn child_died(&mut self, pid: u32) {
        match self.children.get(&pid).copied() {
            Some(Child::Job(id)) => self.job_died(id, pid),
            Some(Child::Task(id)) => self.task_died(id, pid),
            Some(Child::Agent) => self.agent_died(pid),
            Some(Child::Check) => self.check_died(pid),
            // An orphan that we adopted.
            None => drop(reap::reap(pid)),
        }
        self.children.remove(&pid);
    }

    fn take_told(&mut self) {
        let told = self.output().map(Output::told).unwrap_or_default();
        for told in told {
            match told {
                Told::Gap { job, lines } => {
                    if let Some(node) = self.node() {
                        node.lost.add(job, lines);
                    }
                }
                Told::Closed { job, file, compress } => {
                    self.tell(&ToAgent::Rotated { job, file, compress });
                }
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
            Deadline::Untaken { token } => self.untaken(token),
            Deadline::StartAgent => self.start_agent(),
            Deadline::AgentDying { pid } => self.agent_dying(pid),
            Deadline::Tell => self.tell_clients(),
            Deadline::Linger { client } => self.drop_client(client),
            Deadline::NodeStop => self.end_own_stop(),
            Deadline::Last => self.last(),
            Deadline::Check { pid } => self.check_late(pid),
        }
    }
}
