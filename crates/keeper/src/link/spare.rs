//! The spare: a process that waits to become the next agent, so that one can be had when the jobs
//! have used up all processes or descriptors.
//!
//! It is started beside each agent, while there is room, has its link and its pipe already, and
//! sleeps. A byte over the link makes it execute the agent in its place, which needs no process and
//! no descriptor of ours; the end of the link ends it.

use crate::{
    event_loop::deadline::Deadline,
    keeper::{Child, Keeper},
    process::tree,
};
use mainstay_sys::{fd, nonblocking, reap, signal};
use mainstay_wire::link::{API_FD, LINK_FD};
use rustix::event::{PollFd, PollFlags, poll};
use std::{
    ffi::{OsStr, OsString},
    io,
    os::{fd::OwnedFd, unix::process::CommandExt},
    process::Command,
    time::Duration,
};

/// The role of the process while it waits, and the one that it waits for.
pub(super) const SPARE: &str = "__spare";
const AGENT: &str = "__agent";
/// One that cannot be had, or has died, is tried again after so long.
const RETRY: Duration = Duration::from_secs(1);
/// So long a new agent takes to be at work.
const SOON: Duration = Duration::from_millis(100);
/// One that was woken and has not greeted by then cannot run.
const SILENT: Duration = Duration::from_secs(5);
const GO: [u8; 1] = *b"\n";

#[derive(Debug)]
pub(crate) struct Spare {
    pub(crate) pid: u32,
    pub(crate) link: OwnedFd,
}

impl Keeper {
    pub(crate) fn start_spare(&mut self) {
        let Some(node) = self.node() else { return };
        let wanted = node.ending.is_none() && !node.stopping_alone && node.agent.is_some();
        if !wanted || node.spare.is_some() {
            return;
        }
        match self.launch_agent(SPARE, Child::Spare) {
            Ok((pid, link)) => {
                if let Some(node) = self.node() {
                    node.spare = Some(Spare { pid, link });
                }
            }
            // What there is left is for others.
            Err(_) => self.deadlines.after(RETRY, Deadline::StartSpare),
        }
    }

    /// Once the agent that has just begun has had the processor for itself.
    pub(super) fn start_spare_soon(&mut self) {
        self.deadlines.after(SOON, Deadline::StartSpare);
    }

    /// The spare, as an agent that begins now.
    pub(super) fn wake_spare(&mut self) -> Option<(u32, OwnedFd)> {
        let Spare { pid, link } = self.node()?.spare.take()?;
        let told = rustix::io::write(&link, &GO);
        if told != Ok(GO.len()) {
            return None;
        }
        self.children.insert(pid, Child::Agent);
        self.deadlines.after(SILENT, Deadline::AgentSilent { pid });
        Some((pid, link))
    }

    /// Somebody may have stopped the process: the next agent is a new one.
    pub(crate) fn agent_silent(&mut self, pid: u32) {
        let agent = self.node().and_then(|node| node.agent.as_ref());
        if agent.is_some_and(|agent| agent.pid == pid && !agent.welcomed) {
            self.log("the next agent was woken and says nothing: it is replaced");
            let _ = signal::send(pid, tree::KILL);
        }
    }

    /// Ends the spare; it is forgotten when it is reaped.
    pub(crate) fn kill_spare(&mut self) {
        if let Some(spare) = self.node().and_then(|node| node.spare.take()) {
            let _ = signal::send(spare.pid, tree::KILL);
        }
    }

    pub(crate) fn spare_died(&mut self, pid: u32) {
        let _ = reap::reap(pid);
        let Some(node) = self.node() else { return };
        if node.spare.as_ref().is_some_and(|spare| spare.pid == pid) {
            node.spare = None;
            self.deadlines.after(RETRY, Deadline::StartSpare);
        }
    }
}

/// In a process that was started as a spare: waits, then becomes the agent. Returns an exit code
/// when it is not needed, or cannot; `None`: it is something else.
pub(crate) fn spare() -> Option<i32> {
    let mut args = std::env::args_os();
    let (name, role) = (args.next()?, args.next()?);
    (role == SPARE).then(|| match wait() {
        Ok(true) => {
            let error = become_agent(&name, args);
            nonblocking::tell_stderr(&format!(
                "mainstay: the spare cannot become the agent: {error}"
            ));
            1
        }
        Ok(false) => 0,
        Err(error) => {
            nonblocking::tell_stderr(&format!(
                "mainstay: a spare is started by the keeper only: {error}"
            ));
            1
        }
    })
}

/// Whether it is needed.
fn wait() -> io::Result<bool> {
    let link = fd::take(LINK_FD)?;
    let mut byte = GO;
    loop {
        let mut watched = [PollFd::new(&link, PollFlags::IN)];
        let _ = poll(&mut watched, None);
        match rustix::io::read(&link, &mut byte) {
            Ok(0) => return Ok(false),
            Ok(_) => break,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    fd::keep_on_exec(&link, true)?;
    // The agent finds both under their numbers.
    std::mem::forget(link);
    fd::keep_number_on_exec(API_FD, true);
    Ok(true)
}

fn become_agent(name: &OsStr, args: impl Iterator<Item = OsString>) -> io::Error {
    Command::new("/proc/self/exe").arg0(name).arg(AGENT).args(args).exec()
}
