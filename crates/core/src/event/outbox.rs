//! What one step has to say, collected while it is decided.

use crate::{
    clock::Now,
    event::{Event, Kind, Source},
    node::Command,
    record::Journaled,
    task::{OpenTask, Tasks},
};

#[derive(Debug)]
pub(crate) struct Outbox {
    pub(crate) now: Now,
    /// The number of the last event.
    pub(crate) seq: u64,
    pub(crate) events: Vec<Event>,
    pub(crate) commands: Vec<Command>,
    /// Those that are open.
    pub(crate) tasks: Journaled<Tasks>,
}

impl Outbox {
    pub(crate) fn new(now: Now, seq: u64, tasks: Journaled<Tasks>) -> Outbox {
        Outbox { now, seq, events: Vec::new(), commands: Vec::new(), tasks }
    }

    pub(crate) fn emit(&mut self, source: Source, kind: Kind) {
        self.seq += 1;
        self.events.push(Event { seq: self.seq, time: self.now.wall, source, kind });
    }

    pub(crate) fn command(&mut self, command: Command) {
        self.commands.push(command);
    }

    /// Runs a task, or says again that it is to run.
    pub(crate) fn run_task(&mut self, task: OpenTask) {
        let (deadline, spec) = (task.deadline, task.spec.clone());
        let id = match self.tasks.find(&task.owner) {
            Some(id) => id,
            None => self.tasks.edit().open(task),
        };
        self.command(Command::RunTask { id, deadline, spec });
    }
}
