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
    items: Mutex<Items<T>>,
    wake: OwnedFd,
}

#[derive(Debug)]
struct Items<T> {
    all: Vec<T>,
    /// The reader was woken and has not taken them yet.
    woken: bool,
}

impl<T> Mailbox<T> {
    pub(super) fn new() -> io::Result<Mailbox<T>> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Mailbox { items: Mutex::new(Items { all: Vec::new(), woken: false }), wake })
    }

    pub(super) fn post(&self, item: T) {
        let woken = {
            let mut items = lock(&self.items);
            items.all.push(item);
            std::mem::replace(&mut items.woken, true)
        };
        if !woken {
            wake_reader(self.wake.as_fd());
        }
    }

    /// Leaves something for when the reader wakes up next. What is done before cannot be seen
    /// by a reader that does not find it.
    pub(super) fn leave<E>(
        &self,
        item: T,
        before: impl FnOnce(&T) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut items = lock(&self.items);
        before(&item)?;
        items.all.push(item);
        Ok(())
    }

    /// Puts it in the place of what it makes superfluous, if that still waits.
    pub(super) fn replace(&self, superfluous: impl Fn(&T) -> bool, item: T) {
        let mut items = lock(&self.items);
        match items.all.iter().position(superfluous) {
            Some(index) => items.all[index] = item,
            None => {
                drop(items);
                self.post(item);
            }
        }
    }

    /// Gives back what was taken, before what has come since.
    pub(super) fn put_back(&self, taken: impl IntoIterator<Item = T>) {
        let mut items = lock(&self.items);
        items.all.splice(0..0, taken);
        items.woken = true;
        wake_reader(self.wake.as_fd());
    }

    /// What waits to be taken.
    pub(super) fn look<R>(&self, look: impl FnOnce(&[T]) -> R) -> R {
        look(&lock(&self.items).all)
    }

    pub(super) fn take(&self) -> Vec<T> {
        quiet(self.wake.as_fd());
        let mut items = lock(&self.items);
        items.woken = false;
        std::mem::take(&mut items.all)
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

/// Makes an eventfd readable. It cannot fail in a way that matters: full means readable already.
pub(super) fn wake_reader(fd: BorrowedFd<'_>) {
    let _ = rustix::io::write(fd, &1u64.to_ne_bytes());
}

pub(super) fn quiet(fd: BorrowedFd<'_>) {
    let _ = rustix::io::read(fd, &mut [0u8; 8]);
}
