//! Descriptors kept back for clients: with all others in use, one who asks is still let in.

use rustix::{
    fs::{Mode, OFlags, open},
    io::Errno,
};
use std::{io, os::fd::OwnedFd};

const COUNT: usize = 2;

#[derive(Debug)]
pub(super) struct Reserve(Vec<OwnedFd>);

impl Reserve {
    pub(super) fn new() -> Reserve {
        let mut reserve = Reserve(Vec::new());
        reserve.refill();
        reserve
    }

    /// Gives one up; whether there was one.
    pub(super) fn give_up(&mut self) -> bool {
        self.0.pop().is_some()
    }

    /// As far as there is room again.
    pub(super) fn refill(&mut self) {
        while self.0.len() < COUNT {
            match open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
                Ok(fd) => self.0.push(fd),
                Err(_) => return,
            }
        }
    }
}

pub(super) fn says_full(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}
