//! What one step has to say, collected while it is decided.

use crate::{
    clock::Now,
    event::{Event, Kind, Source},
    node::Command,
};

#[derive(Debug)]
pub(crate) struct Outbox {
    pub(crate) now: Now,
    /// The number of the last event.
    pub(crate) seq: u64,
    pub(crate) events: Vec<Event>,
    pub(crate) commands: Vec<Command>,
}

impl Outbox {
    pub(crate) fn new(now: Now, seq: u64) -> Outbox {
        Outbox { now, seq, events: Vec::new(), commands: Vec::new() }
    }

    pub(crate) fn emit(&mut self, source: Source, kind: Kind) {
        self.seq += 1;
        self.events.push(Event { seq: self.seq, time: self.now.wall, source, kind });
    }

    pub(crate) fn command(&mut self, command: Command) {
        self.commands.push(command);
    }
}
