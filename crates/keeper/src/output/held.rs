//! What the threads hold when they are at rest, as it goes through an upgrade.

use super::{ForwardState, Gap, Owner, Stream, WriterCommand, activity::WriterState};
use mainstay_core::{name::Name, plan::Log};
use mainstay_wire::link::LogFigures;
use std::collections::BTreeMap;

/// What the threads hold at rest, with what the writer was asked for and has not done yet.
#[derive(Debug)]
pub(crate) struct HeldOutput<Described> {
    pub(crate) streams: Vec<Described>,
    pub(crate) figures: BTreeMap<Name, LogFigures>,
    pub(crate) gaps: Vec<(Owner, Gap)>,
    /// Lines of our own log.
    pub(crate) notes: Vec<String>,
    pub(crate) rotate: bool,
    pub(crate) forward: ForwardState,
}

impl<Described> HeldOutput<Described> {
    /// What the writer holds, and what waits for it.
    pub(super) fn of(
        state: &WriterState,
        waiting: &[WriterCommand],
        describe: impl Fn(&Stream, &Log) -> Described,
    ) -> HeldOutput<Described> {
        let mut changed: BTreeMap<&Name, &Log> = BTreeMap::new();
        let mut opened = Vec::new();
        let mut held = HeldOutput {
            streams: Vec::new(),
            figures: BTreeMap::new(),
            gaps: state.gaps.clone(),
            notes: Vec::new(),
            rotate: false,
            forward: ForwardState::default(),
        };
        for command in waiting {
            match command {
                WriterCommand::Open(stream) => opened.push(stream),
                WriterCommand::Change(job, log) => drop(changed.insert(job, log)),
                WriterCommand::Log { text, .. } => held.notes.push(text.clone()),
                WriterCommand::Rotate => held.rotate = true,
                WriterCommand::Forget(job) => {
                    held.gaps.retain(|(owner, _)| *owner != Owner::Job(job.clone()));
                }
                // Which streams are to be closed is known from who runs, and how our own log is
                // forwarded by the node.
                WriterCommand::Close { .. }
                | WriterCommand::Own(_)
                | WriterCommand::Check(_)
                | WriterCommand::Resume
                | WriterCommand::Rest
                | WriterCommand::Finish => {}
            }
        }
        let log_of = |stream: &Stream| match &stream.owner {
            Owner::Job(job) => changed.get(job).copied(),
            Owner::Own => None,
        };
        let streams = state.streams.iter().chain(opened);
        held.streams =
            streams.map(|stream| describe(stream, log_of(stream).unwrap_or(&stream.log))).collect();
        held
    }
}
