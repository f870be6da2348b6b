//! A queue between threads whose other side sleeps in epoll.

use super::lock;
use rustix::event::{EventfdFlags, eventfd};
use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Mutex,
};

#[derive(Debug)]
pub(super) struct Mailbox<T> {
    items: Mutex<Vec<T>>,
    wake: OwnedFd,
}

impl<T> Mailbox<T> {
    pub(super) fn new() -> io::Result<Mailbox<T>> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Mailbox { items: Mutex::new(Vec::new()), wake })
    }

    pub(super) fn post(&self, item: T) {
        let first = {
            let mut items = lock(&self.items);
            items.push(item);
            items.len() == 1
        };
        if first {
            wake_reader(self.wake.as_fd());
        }
    }

    pub(super) fn take(&self) -> Vec<T> {
        quiet(self.wake.as_fd());
        std::mem::take(&mut *lock(&self.items))
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

/// Makes an eventfd readable. It cannot fail in a way that matters: full resources readable already.
pub(super) fn wake_reader(fd: BorrowedFd<'_>) {
    let _ = rustix::io::write(fd, &1u64.to_ne_bytes());
}

pub(super) fn quiet(fd: BorrowedFd<'_>) {
    let _ = rustix::io::read(fd, &mut [0u8; 8]);
}
