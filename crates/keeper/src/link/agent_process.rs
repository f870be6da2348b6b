//! The agent's process: started, replaced when it dies, ended with the run.

use crate::{
    event_loop::{
        deadline::Deadline,
        poller::{Interest, Source},
    },
    keeper::{Child, Keeper, Role},
    link::{agent::Agent, succession::AfterDeath},
    output::{Channel, Owner, ReadHalf, Stream, WriteEnd},
    process::tree,
};
use mainstay_core::{
    plan::{ForwardFormat, Log},
    text::counted,
};
use mainstay_sys::{
    clock, reap, signal,
    spawn::{Cloned, Descriptors, Program},
};
use mainstay_wire::link::{API_FD, LINK_FD};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::{
    ffi::OsString,
    io,
    os::fd::{AsFd, OwnedFd},
};

/// The role of the agent's process.
const AGENT: &str = "__agent";

impl Keeper {
    pub(crate) fn start_agent(&mut self) {
        let Some(node) = self.node() else { return };
        let no_more = node.stopping_alone || node.ending.is_some() || node.becomes_another();
        if node.agent.is_some() || no_more {
            return;
        }
        if let Err(error) = self.try_start_agent() {
            self.log(format!("cannot start the agent: {error}"));
            self.agent_failed(false, reap::ExitStatus::Code(1));
        }
    }

    fn try_start_agent(&mut self) -> io::Result<()> {
        let (pid, link) = match self.wake_spare() {
            Some(woken) => woken,
            None => self.launch_agent(AGENT, Child::Agent)?,
        };
        self.poller.add(&link, Source::Link, 0, Interest::Read)?;
        if let Some(node) = self.node() {
            node.agent = Some(Agent::new(pid, link));
            node.frames_left = false;
        }
        Ok(())
    }

    /// Starts the agent, or what will become one, in a role: its pid and our end of its link.
    pub(super) fn launch_agent(&mut self, role: &str, child: Child) -> io::Result<(u32, OwnedFd)> {
        self.next_stream += 1;
        let key = self.next_stream;
        let Keeper { role: Role::Node(node), context, children, reserve, .. } = self else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let arguments = node.options.agent_args.iter().skip(1).cloned();
        let argv: Vec<OsString> =
            ["mainstay", role].map(OsString::from).into_iter().chain(arguments).collect();
        let mut program = Program::new(&argv, &context.env)?;
        program.run_own_executable();
        program.ignored.clone_from(&context.ignored);
        program.die_with_parent = false;
        debug_assert_eq!((LINK_FD, API_FD), (3, 4));
        let (cloned, ours, half) =
            reserve.with(|| -> io::Result<(Cloned, OwnedFd, ReadHalf)> {
                let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
                let (ours, theirs) =
                    socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
                let (half, write) = node.resources.output.pipe(&Owner::Own, Channel::Stderr)?;
                let descriptors = Descriptors {
                    stdio: Some([context.null.as_fd(), write.as_fd(), write.as_fd()]),
                    extra: vec![theirs.as_fd(), node.resources.api.as_fd()],
                    placed: None,
                };
                Ok((context.window.spawn(&program, &descriptors, None)?, ours, half))
            })?;
        children.insert(cloned.pid, child);
        let log = Log { format: ForwardFormat::Raw, ..Log::default() };
        node.resources.output.open(Stream {
            key: half.key.unwrap_or(key),
            owner: Owner::Own,
            channel: Channel::Stderr,
            log,
            pid: None,
            end: half.end,
            write_end: WriteEnd::Pipe,
            partial: Vec::new(),
        });
        Ok((cloned.pid, ours))
    }

    pub(crate) fn agent_died(&mut self, pid: u32) {
        let how = reap::reap(pid).map_or(reap::ExitStatus::Code(1), |death| death.how);
        // What it had decided before it died still holds: the next one counts on it.
        self.drain_link();
        let Some(node) = self.node() else { return };
        let Some(agent) = node.agent.take() else { return };
        let ready = agent.ready;
        self.poller.remove(agent.fd());
        // Its descriptors may be the last that there are.
        drop(agent);
        self.agent_failed(ready, how);
    }

    fn agent_failed(&mut self, was_ready: bool, how: reap::ExitStatus) {
        let Some(node) = self.node() else { return };
        if node.ending.is_some() || node.stopping_alone || node.becomes_another() {
            return;
        }
        match node.succession.died(was_ready, how, clock::boottime()) {
            AfterDeath::End(code) => self.end(code),
            AfterDeath::Restart { after } => {
                let how = match how {
                    reap::ExitStatus::Code(code) => format!("ended with code {code}"),
                    reap::ExitStatus::Signal(number) => format!("was killed by signal {number}"),
                };
                let when = if after.is_zero() {
                    "at once".to_owned()
                } else {
                    format!("in {} ms", after.as_millis())
                };
                let jobs = counted(self.running().len(), "job runs", "jobs run");
                self.log(format!("the agent {how}; {jobs} on; a new one starts {when}"));
                if after.is_zero() {
                    self.start_agent();
                } else {
                    self.deadlines.after(after, Deadline::StartAgent);
                }
            }
        }
    }

    /// An agent that has closed the link and does not end is of no use.
    pub(crate) fn agent_dying(&mut self, pid: u32) {
        if self.children.get(&pid) == Some(&Child::Agent) {
            let _ = signal::send(pid, tree::KILL);
        }
    }

    /// Ends the agent. It may take its time to die, in a disk that does not answer.
    pub(crate) fn kill_agent(&mut self) {
        if let Some(agent) = self.node().and_then(|node| node.agent.as_ref()) {
            let _ = signal::send(agent.pid, tree::KILL);
        }
    }

    /// Ends the agent and forgets it: nothing that it says from now on counts.
    pub(crate) fn forget_agent(&mut self) {
        self.kill_agent();
        self.drain_link();
        if let Some(agent) = self.node().and_then(|node| node.agent.take()) {
            self.poller.remove(agent.fd());
        }
    }
}
