//! What the main thread sleeps on: descriptors, each with the thing it belongs to.
//!
//! Ids are never used twice, so an event for something that has just gone finds nothing.

use rustix::{
    event::epoll::{self, EventData, EventFlags},
    io::Errno,
};
use std::{
    io,
    os::fd::{AsFd, AsRawFd, OwnedFd, RawFd},
};

macro_rules! sources {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Source { $($(#[$doc])* $name),* }
        const SOURCES: &[Source] = &[$(Source::$name),*];
    };
}

sources! {
    Signals,
    Clock,
    /// The writer has something to tell.
    Writer,
    Link,
    KeeperSocket,
    KeeperClient,
    /// Of a job: whether exec succeeded.
    Exec,
    /// Of a job: its cgroup may be empty.
    Cleared,
    /// Of a job: its listening control socket.
    Control,
    ControlClient,
    /// Of a job: its sd_notify socket.
    Notify,
    /// Of a job: the pipe on which it says that it is ready.
    ReadyPipe,
    Task,
    Check,
    /// A new binary was opened.
    Opener,
    /// That of the run was closed.
    Terminal,
    /// Who started the node went away.
    Starter,
}

const SOURCE_SHIFT: u32 = 56;

pub(crate) struct Poller {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Ready {
    pub(crate) kind: Source,
    pub(crate) id: u64,
    /// Readable, hung up or failed: a read will tell.
    pub(crate) readable: bool,
    /// Nobody is at the other end any more.
    pub(crate) hung_up: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interest {
    Read,
    ReadWrite,
    Write,
    Priority,
    /// Only whether the other end is gone.
    HangUp,
}

impl Interest {
    fn flags(self) -> EventFlags {
        match self {
            Interest::Read => EventFlags::IN,
            Interest::ReadWrite => EventFlags::IN | EventFlags::OUT,
            Interest::Write => EventFlags::OUT,
            Interest::Priority => EventFlags::PRI,
            Interest::HangUp => EventFlags::empty(),
        }
    }
}

impl AsRawFd for Poller {
    fn as_raw_fd(&self) -> RawFd {
        self.epoll.as_raw_fd()
    }
}

impl Poller {
    pub(crate) fn new() -> io::Result<Poller> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Poller { epoll, events: Vec::with_capacity(128) })
    }

    fn data(kind: Source, id: u64) -> EventData {
        EventData::new_u64(u64::from(kind as u8) << SOURCE_SHIFT | id)
    }

    pub(crate) fn add(
        &self,
        fd: impl AsFd,
        kind: Source,
        id: u64,
        interest: Interest,
    ) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, Poller::data(kind, id), interest.flags())?)
    }

    pub(crate) fn change(&self, fd: impl AsFd, kind: Source, id: u64, interest: Interest) {
        // Cannot fail for a descriptor that was added.
        let _ = epoll::modify(&self.epoll, fd, Poller::data(kind, id), interest.flags());
    }

    pub(crate) fn remove(&self, fd: impl AsFd) {
        let _ = epoll::delete(&self.epoll, fd);
    }

    /// Waits for something; with `hurry`, only looks.
    pub(crate) fn wait(&mut self, hurry: bool) -> io::Result<Vec<Ready>> {
        self.events.clear();
        let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        let spare = rustix::buffer::spare_capacity(&mut self.events);
        match epoll::wait(&self.epoll, spare, hurry.then_some(&now)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready = self.events.iter().filter_map(|event| {
            let (data, flags) = (event.data.u64(), event.flags);
            Some(Ready {
                kind: *SOURCES.get(usize::try_from(data >> SOURCE_SHIFT).ok()?)?,
                id: data & ((1 << SOURCE_SHIFT) - 1),
                hung_up: flags.intersects(EventFlags::HUP | EventFlags::ERR),
                readable: flags.intersects(
                    EventFlags::IN | EventFlags::PRI | EventFlags::HUP | EventFlags::ERR,
                ),
            })
        });
        Ok(ready.collect())
    }
}
