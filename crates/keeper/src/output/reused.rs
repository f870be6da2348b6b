//! The last streams of each owner, so that the next incarnation can go on with them while the writer
//! hangs.

use super::{Channel, Owner, ReadEnd, Stream, WriteEnd};
use mainstay_core::name::Name;
use mainstay_sys::nonblocking;
use std::{
    collections::HashMap,
    os::fd::OwnedFd,
    sync::{Arc, Weak},
};

/// Our half of a pipe, and the key under which the writer has it already.
pub(crate) struct ReadHalf {
    pub(crate) end: Arc<ReadEnd>,
    pub(crate) key: Option<u64>,
}

impl ReadHalf {
    pub(crate) fn new(fd: OwnedFd) -> ReadHalf {
        ReadHalf { end: Arc::new(ReadEnd::new(fd)), key: None }
    }
}

#[derive(Debug, Default)]
pub(super) struct LastStreams {
    streams: HashMap<Owner, Vec<LastStream>>,
}

#[derive(Debug)]
struct LastStream {
    key: u64,
    channel: Channel,
    is_terminal: bool,
    /// Gone when the writer has closed it.
    end: Weak<ReadEnd>,
}

impl LastStreams {
    /// Notes a stream that is written into from now on; whether the writer has it already.
    pub(super) fn note(&mut self, stream: &Stream) -> bool {
        let streams = self.streams.entry(stream.owner.clone()).or_default();
        let is_known = streams.iter().any(|last| last.key == stream.key);
        streams.retain(|last| last.channel != stream.channel && last.end.strong_count() > 0);
        streams.push(LastStream {
            key: stream.key,
            channel: stream.channel,
            is_terminal: matches!(stream.write_end, WriteEnd::Terminal(_)),
            end: Arc::downgrade(&stream.end),
        });
        is_known
    }

    pub(super) fn forget(&mut self, job: &Name) {
        self.streams.remove(&Owner::Job(job.clone()));
    }

    /// The pipe of the last one, with another end to write at.
    pub(super) fn again(&self, owner: &Owner, channel: Channel) -> Option<(ReadHalf, OwnedFd)> {
        let last = self.streams.get(owner)?.iter().find(|last| last.channel == channel)?;
        let end = last.end.upgrade().filter(|_| !last.is_terminal)?;
        let write = nonblocking::write_end(&*end).ok()?;
        end.reuse().then_some((ReadHalf { end, key: Some(last.key) }, write))
    }

    pub(super) fn has_terminal(&self, owner: &Owner) -> bool {
        let streams = self.streams.get(owner).map_or(&[][..], Vec::as_slice);
        streams.iter().any(|last| last.is_terminal && last.end.strong_count() > 0)
    }

    /// The number of whoever has written into it last.
    pub(super) fn user(&self, job: &Name, key: u64) -> u32 {
        let streams = self.streams.get(&Owner::Job(job.clone()));
        let last = streams.and_then(|streams| streams.iter().find(|last| last.key == key));
        last.and_then(|last| last.end.upgrade()).map_or(0, |end| end.user())
    }
}
