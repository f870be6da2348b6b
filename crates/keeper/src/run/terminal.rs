//! The terminal that a run is in the foreground of. When it is closed the run ends, as on SIGTERM.
//!
//! That is known by the terminal itself. The signal that comes with it, SIGHUP, anybody may send: as
//! long as the terminal is there it is an event.
//!
//! | started | and the terminal is closed |
//! |---|---|
//! | in the foreground | the run ends |
//! | in the background of a shell, by `nohup`, by `--detach`, or without one | it goes on |

use crate::{
    event_loop::poller::{Interest, Poller, Source},
    keeper::{Keeper, Role},
};
use mainstay_core::signal::Signal;
use mainstay_sys::nonblocking;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::getpgrp,
    termios::tcgetpgrp,
};
use std::{io, os::fd::OwnedFd};

#[derive(Debug)]
pub(crate) struct ForegroundTerminal {
    /// `None`: it was closed while nobody looked.
    fd: Option<OwnedFd>,
}

impl ForegroundTerminal {
    /// `None`: its end is not to be ours. `ignored`: the signals that we were started to ignore.
    pub(crate) fn of_process(ignored: &[i32]) -> Option<ForegroundTerminal> {
        let fd = nonblocking::controlling_terminal().ok()?;
        let in_foreground = tcgetpgrp(&fd).is_ok_and(|group| group == getpgrp());
        let by_nohup = ignored.contains(&Signal::HUP.number());
        (in_foreground && !by_nohup).then_some(ForegroundTerminal { fd: Some(fd) })
    }

    /// In the next image: an earlier one has watched it.
    pub(crate) fn again() -> ForegroundTerminal {
        ForegroundTerminal { fd: nonblocking::controlling_terminal().ok() }
    }

    pub(crate) fn watch(&self, poller: &Poller) -> io::Result<()> {
        match &self.fd {
            Some(fd) => poller.add(fd, Source::Terminal, 0, Interest::HangUp),
            None => Ok(()),
        }
    }

    fn is_closed(&self) -> bool {
        const HANG_UP: PollFlags = PollFlags::HUP.union(PollFlags::ERR);
        let Some(fd) = &self.fd else { return true };
        let mut watched = [PollFd::new(fd, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut watched, Some(&now)).is_ok() && watched[0].revents().intersects(HANG_UP)
    }
}

impl Keeper {
    /// Ends the run if its terminal is closed; whether it is.
    pub(crate) fn look_at_terminal(&mut self) -> bool {
        let Keeper { role: Role::Node(node), poller, .. } = self else { return false };
        let Some(terminal) = node.terminal.take_if(|it| it.is_closed()) else { return false };
        if let Some(fd) = &terminal.fd {
            poller.remove(fd);
        }
        self.log("the terminal is closed: the node stops, as on SIGTERM");
        self.signalled(Signal::TERM.number());
        true
    }
}
