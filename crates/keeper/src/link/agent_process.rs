//! The agent's process: started, replaced when it dies, ended with the run.

use crate::{
    event_loop::{
        deadline::Deadline,
        poller::{Interest, Source},
    },
    keeper::{Child, Keeper, Role},
    link::{agent::Agent, succession::AfterDeath},
    output::{Channel, Owner, Stream, WriteEnd},
    process::tree,
};
use mainstay_core::plan::{ForwardFormat, Log};
use mainstay_sys::{
    clock, reap, signal,
    spawn::{self, Descriptors, Program},
};
use mainstay_wire::link::{API_FD, LINK_FD};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::{
    ffi::OsString,
    io,
    os::fd::{AsFd, AsRawFd},
};

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
        self.next_stream += 1;
        let key = self.next_stream;
        let Keeper { role: Role::Node(node), context, poller, children, .. } = self else {
            return Ok(());
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let (half, write) = node.resources.output.pipe(&Owner::Own, Channel::Stderr)?;
        let argv: Vec<OsString> =
            std::iter::once("mainstay".into()).chain(node.options.agent_args.clone()).collect();
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
            key: half.key.unwrap_or(key),
            owner: Owner::Own,
            channel: Channel::Stderr,
            log,
            end: half.end,
            write_end: WriteEnd::Pipe,
            partial: Vec::new(),
        });
        node.agent = Some(Agent::new(cloned.pid, ours));
        node.frames_left = false;
        Ok(())
    }

    pub(crate) fn agent_died(&mut self, pid: u32) {
        let how = reap::reap(pid).map_or(reap::ExitStatus::Code(1), |death| death.how);
        // What it had decided before it died still holds: the next one counts on it.
        self.drain_link();
        let Some(node) = self.node() else { return };
        let Some(agent) = node.agent.take() else { return };
        let ready = agent.ready;
        self.poller.remove(agent.fd());
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
