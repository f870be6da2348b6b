//! Descriptors kept back, so that a full table does not stop us from ending things.
//!
//! ```text
//!  0 ......................................|.............|.............| limit
//!    jobs may be started                   | clients are  | control sockets, logs, state
//!                                          | let in       | files, a new agent
//! ```

use mainstay_sys::nonblocking;
use rustix::{
    io::Errno,
    net::{SocketFlags, accept_with},
};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// How full the table of descriptors is: the kernel gives the lowest number that is free.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DescriptorTable {
    limit: u64,
}

/// About what a keeper has open before there is any job.
const OWN: u64 = 16;

impl DescriptorTable {
    pub(crate) fn new(limit: u64) -> DescriptorTable {
        DescriptorTable { limit }
    }

    /// What is left alone; a small table is not given up as a whole.
    fn kept(self) -> u64 {
        (self.limit.saturating_sub(OWN) / 4).min(64)
    }

    /// Whether something with a descriptor of this number may be started.
    pub(crate) fn has_room_for_job(self, fd: impl AsFd) -> bool {
        number(fd) < self.limit - self.kept()
    }

    fn has_room_for_client(self, fd: impl AsFd) -> bool {
        number(fd) < self.limit - self.kept() / 2
    }
}

fn number(fd: impl AsFd) -> u64 {
    u64::try_from(fd.as_fd().as_raw_fd()).unwrap_or(0)
}

/// What came of looking whether somebody wants in.
#[derive(Debug)]
pub(crate) enum Accepted {
    Client(OwnedFd),
    /// There was no room: it is closed already.
    TurnedAway,
    Nobody,
}

#[derive(Debug)]
pub(crate) struct Reserve {
    spare: Vec<OwnedFd>,
}

const COUNT: usize = 4;

impl Reserve {
    pub(crate) fn new() -> Reserve {
        let mut reserve = Reserve { spare: Vec::new() };
        reserve.refill();
        reserve
    }

    fn refill(&mut self) {
        while self.spare.len() < COUNT {
            match nonblocking::null() {
                Ok(fd) => self.spare.push(fd),
                Err(_) => break,
            }
        }
    }

    /// Takes the next connection in line. Without room it is taken all the same, on a spare
    /// descriptor if need be, and closed: left in line it would be told of again and again.
    pub(crate) fn accept(&mut self, socket: impl AsFd, table: DescriptorTable) -> Accepted {
        let take = || accept_with(&socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK);
        match take() {
            Ok(fd) if table.has_room_for_client(&fd) => Accepted::Client(fd),
            Ok(_) => Accepted::TurnedAway,
            Err(error) if error.says_full() => {
                drop(self.spare.pop());
                let taken = take().is_ok();
                self.refill();
                if taken { Accepted::TurnedAway } else { Accepted::Nobody }
            }
            Err(_) => Accepted::Nobody,
        }
    }

    /// Does it, with the spare descriptors if there are no others. What it keeps of them is missing
    /// until there is room again.
    pub(crate) fn with<T, E>(&mut self, mut work: impl FnMut() -> Result<T, E>) -> Result<T, E>
    where
        for<'a> &'a E: IsFull,
    {
        let mut answer = work();
        if let Err(error) = &answer
            && error.says_full()
        {
            self.spare.clear();
            answer = work();
            self.refill();
        }
        answer
    }
}

pub(crate) trait IsFull {
    fn says_full(self) -> bool;
}

impl IsFull for &Errno {
    fn says_full(self) -> bool {
        matches!(*self, Errno::MFILE | Errno::NFILE)
    }
}

impl IsFull for &std::io::Error {
    fn says_full(self) -> bool {
        self.raw_os_error().is_some_and(|code| (&Errno::from_raw_os_error(code)).says_full())
    }
}
