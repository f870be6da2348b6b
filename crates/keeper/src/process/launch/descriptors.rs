//! What a process inherits: stdio, sockets, and the pipe on which it may say that it is ready.

use super::{LaunchError, RunContext, doing, pipe};
use crate::{
    output::{Channel, Output, Owner, ReadHalf, Stream, WriteEnd},
    process::{
        listen_sockets::{self, HeldSocket},
        terminal,
    },
};
use mainstay_core::plan::{MOST_SOCKETS, Stderr, Stdin};
use mainstay_sys::{
    nonblocking,
    spawn::{Descriptors, MAX_DESCRIPTORS},
};
use mainstay_wire::link::Spawn;
use rustix::io::Errno;
use std::{
    io,
    os::fd::{AsFd, OwnedFd},
};

// Beside them stdio and the descriptor on which it says that it is ready.
const _: () = assert!(MOST_SOCKETS + 4 <= MAX_DESCRIPTORS);

/// Where the output of a process goes.
pub(crate) enum Capture<'a> {
    Inherit,
    Pipes { output: &'a Output, next_key: &'a mut u64 },
}

/// Pipes or a terminal for its output, with both ends; and those of its notification descriptor.
pub(super) struct Endpoints {
    /// What it reads, if that is made for it.
    input: Option<OwnedFd>,
    output: Vec<(Channel, ReadHalf, OwnedFd)>,
    ready: Option<(OwnedFd, OwnedFd)>,
}

impl Endpoints {
    pub(super) fn open(
        context: &RunContext,
        spawn: &Spawn,
        capture: &Capture<'_>,
    ) -> Result<Endpoints, LaunchError> {
        let owner = Owner::Job(spawn.job.clone());
        let output = match capture {
            Capture::Inherit => Vec::new(),
            Capture::Pipes { output, .. } if spawn.tty => {
                if !output.has_taken_terminal(&owner) {
                    let why = "its log has not taken yet what its last run has written";
                    let error = io::Error::new(io::ErrorKind::WouldBlock, why);
                    return Err(doing("make a terminal for it")(error));
                }
                let (master, slave) = terminal::open().map_err(doing("make a terminal for it"))?;
                lend(context, spawn, &slave)?;
                vec![(Channel::Stdout, ReadHalf::new(master), slave)]
            }
            Capture::Pipes { output, .. } => {
                let count = if spawn.stderr == Stderr::Separate { 2 } else { 1 };
                let mut pipes = Vec::new();
                for channel in [Channel::Stdout, Channel::Stderr].into_iter().take(count) {
                    let pipe = output.pipe(&owner, channel);
                    let (read, write) = pipe.map_err(doing("make a pipe for its output"))?;
                    lend(context, spawn, &write)?;
                    pipes.push((channel, read, write));
                }
                pipes
            }
        };
        let input = match spawn.stdin {
            Stdin::Open => Some(nonblocking::silent_input().map_err(doing("make its input"))?),
            Stdin::Null | Stdin::Inherit | Stdin::File(_) => None,
        };
        input.iter().try_for_each(|input| lend(context, spawn, input))?;
        let ready = spawn.ready_fd.map(|_| pipe()).transpose();
        let ready = ready.map_err(doing("make its notification pipe"))?;
        Ok(Endpoints { input, output, ready })
    }

    /// What the child gets, by number.
    pub(super) fn descriptors<'a>(
        &'a self,
        context: &'a RunContext,
        spawn: &Spawn,
        sockets: &'a [HeldSocket],
    ) -> Result<Descriptors<'a>, LaunchError> {
        let input = match spawn.stdin {
            Stdin::Null | Stdin::File(_) => context.null.as_fd(),
            Stdin::Open => self.input.as_ref().unwrap_or(&context.null).as_fd(),
            Stdin::Inherit => rustix::stdio::stdin(),
        };
        let ends = self.output.first().zip(self.output.last());
        let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
        let descriptors = Descriptors {
            stdio: ends.map(|(out, err)| {
                let error = match spawn.stderr {
                    Stderr::Joined | Stderr::Separate => err.2.as_fd(),
                    Stderr::Inherit if context.lends_stderr => rustix::stdio::stderr(),
                    Stderr::Inherit => context.null.as_fd(),
                };
                [input, out.2.as_fd(), error]
            }),
            extra: listen_sockets::in_order(sockets, &spawn.sockets),
            placed: self
                .ready
                .as_ref()
                .zip(spawn.ready_fd)
                .map(|((_, write), at)| (write.as_fd(), at)),
        };
        if descriptors.extra.len() > MOST_SOCKETS {
            return Err(doing("pass its sockets")(invalid()));
        }
        let free = i32::try_from(descriptors.extra.len() + 3).unwrap_or(i32::MAX);
        if spawn.ready_fd.is_some_and(|at| at < free) {
            let what =
                "pass its notification descriptor: a socket or a standard stream has its number";
            return Err(doing(what)(invalid()));
        }
        Ok(descriptors)
    }

    /// Our end of the pipe on which it says that it is ready; the child's is closed.
    pub(super) fn take_ready(&mut self) -> Option<OwnedFd> {
        self.ready.take().map(|(read, _)| read)
    }

    /// Gives our ends to the writer; the keys under which it has them.
    pub(super) fn capture(self, spawn: &Spawn, pid: u32, capture: Capture<'_>) -> Vec<u64> {
        let Capture::Pipes { output, next_key } = capture else { return Vec::new() };
        let mut keys = Vec::new();
        for (channel, half, write_end) in self.output {
            *next_key += 1;
            let key = half.key.unwrap_or(*next_key);
            keys.push(key);
            output.open(Stream {
                key,
                owner: Owner::Job(spawn.job.clone()),
                channel,
                log: spawn.settings.log.clone(),
                pid: Some(pid),
                end: half.end,
                write_end: if spawn.tty {
                    WriteEnd::Terminal(Some(write_end))
                } else {
                    WriteEnd::Pipe
                },
                partial: Vec::new(),
            });
        }
        keys
    }
}

/// Makes the child's end its own, so that it may open /dev/stdout anew. Not being allowed to is no
/// reason not to start; a full table is.
fn lend(context: &RunContext, spawn: &Spawn, end: &OwnedFd) -> Result<(), LaunchError> {
    if !context.table().has_room_for_job(end) {
        return Err(doing("start it and keep a few descriptors")(Errno::MFILE.into()));
    }
    if let Some(identity) = &spawn.exec.identity {
        let uid = rustix::fs::Uid::from_raw(identity.uid);
        let _ = rustix::fs::fchown(end, Some(uid), None);
    }
    Ok(())
}
