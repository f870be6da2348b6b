//! Who has started a node to leave it behind (`run --detach`), and waits at the other end of a socket
//! until startup is said.
//!
//! | | then |
//! |---|---|
//! | startup is said | it is told, by a byte |
//! | it has gone away, and was told | our stderr, which it has read, becomes /dev/null |
//! | it has gone away, and was not | somebody has given up: the node ends, as on SIGTERM |
//! | the run ends before | it sees the end of the socket, and our exit code |

use crate::{
    event_loop::poller::{Interest, Poller, Source},
    keeper::{Keeper, Role},
};
use mainstay_core::{node::NodePhase, signal::Signal};
use std::{io, os::fd::OwnedFd};

const STARTED: [u8; 1] = *b"\n";

#[derive(Debug)]
pub(crate) struct Starter {
    fd: OwnedFd,
    told: bool,
}

impl Starter {
    pub(crate) fn new(fd: OwnedFd) -> Starter {
        Starter { fd, told: false }
    }

    pub(crate) fn watch(&self, poller: &Poller) -> io::Result<()> {
        poller.add(&self.fd, Source::Starter, 0, Interest::HangUp)
    }
}

impl Keeper {
    /// Tells it once that startup is said.
    pub(crate) fn tell_starter(&mut self) {
        let Some(node) = self.node() else { return };
        let started = node.told.is_some_and(|told| match told.phase {
            NodePhase::Starting => false,
            NodePhase::Running | NodePhase::Maintenance | NodePhase::Stopping => true,
        });
        if let Some(starter) = node.starter.as_mut().filter(|it| started && !it.told) {
            // The first and only byte: there is room for it, or nobody who would read it.
            let _ = rustix::io::write(&starter.fd, &STARTED);
            starter.told = true;
        }
    }

    pub(crate) fn starter_left(&mut self) {
        let Keeper { role: Role::Node(node), poller, context, .. } = self else { return };
        let Some(starter) = node.starter.take() else { return };
        poller.remove(&starter.fd);
        // Nobody reads any more what we say.
        let _ = rustix::stdio::dup2_stderr(&context.null);
        if !starter.told {
            self.log("whoever started the node went away before it had started: it stops");
            self.signalled(Signal::TERM.number());
        }
    }
}
