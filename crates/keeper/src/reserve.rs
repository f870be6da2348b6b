//! A few descriptors kept back, so that a full table does not stop us from ending things.

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};
use std::os::fd::OwnedFd;

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
            match rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
                Ok(fd) => self.spare.push(fd),
                Err(_) => break,
            }
        }
    }

    /// Does it, with the spare descriptors if there are no others. It must keep none.
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
