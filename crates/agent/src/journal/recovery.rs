//! How a new agent finds things: the plan in force, the journal, and what the keeper remembers where
//! the journal says nothing.

use super::{
    Journal, Recovered,
    damage::Damage,
    found::{Found, FoundJournal},
    plan_file::{self, OnDisk},
};
use crate::{effects::disabled, inputs::seen_tokens::SeenTokens, reload::options::Options, trace};
use mainstay_core::{
    event::Event,
    name::Name,
    node::{LostJournal, Node, NodePhase},
    plan::Plan,
    record::Memory,
};
use mainstay_wire::{api::Invalid, link::Welcome};
use std::collections::VecDeque;

/// What an agent begins with.
#[derive(Debug)]
pub(crate) struct Recovery {
    pub(crate) journal: Journal,
    pub(crate) node: Node,
    pub(crate) events: VecDeque<Event>,
    pub(crate) taken: SeenTokens,
    /// The last upgrade that was told.
    pub(crate) upgrade: u64,
    pub(crate) plan_on_disk: OnDisk,
    /// The jobs that the state directory has as disabled.
    pub(crate) disabled: Vec<Name>,
    /// Nothing has begun yet.
    pub(crate) first: bool,
    /// The journal does not say how things were.
    pub(crate) lost: Option<LostJournal>,
}

impl Recovery {
    /// # Errors
    /// This run has no plan yet, or it is lost, and the configuration is invalid.
    pub(crate) fn begin(
        options: &Options,
        welcome: &Welcome,
        found: Found,
    ) -> Result<Recovery, Invalid> {
        let told = welcome.told.map_or(0, |told| told.seq);
        let fresh = told == 0 && welcome.jobs.is_empty() && welcome.records.is_empty();
        let Found { journal, plan: written } = found;
        let (mut journal, mut recovered, damage) = open(options, welcome, told, journal);
        // A run that has not begun has nothing to lose.
        let lost = damage.filter(|_| !fresh).map(|damage| LostJournal {
            reason: damage.to_string(),
            phase: welcome.told.map_or(NodePhase::Running, |told| told.phase),
        });
        let written = written.and_then(|plan| plan.of(&welcome.run));
        if lost.is_some() {
            journal.begin_anew();
            recovered.memory.prefer_written_plan(written.as_ref());
        }
        recovered.memory.told(told);
        let plan_on_disk = match (recovered.memory.has_plan(), &written) {
            (false, Some(_)) => OnDisk::Current,
            (true, _) | (false, None) => OnDisk::Behind,
        };
        let (plan, plan_on_disk) = match recovered.memory.plan_in_force(written) {
            Some(plan) => (plan, plan_on_disk),
            None => apply(welcome, options, &recovered.memory)?,
        };
        let Recovered { mut memory, events, taken, upgrade, .. } = recovered;
        let disabled = disabled::read(&options.dirs.state);
        // A job that was never touched in this run is in no journal.
        memory.disable(disabled.clone());
        // Nothing becomes visible before it is journaled, so without a record nothing has begun.
        let first = fresh && !memory.has_begun();
        let node = memory.restore(plan);
        journal.keep_room(node.plan().jobs.len());
        Ok(Recovery { journal, node, events, taken, upgrade, plan_on_disk, disabled, first, lost })
    }
}

/// The journal of this run, as far as it goes, and what is wrong with it.
fn open(
    options: &Options,
    welcome: &Welcome,
    told: u64,
    found: Result<FoundJournal, Damage>,
) -> (Journal, Recovered, Option<Damage>) {
    let (journal, recovered) = match Journal::recover(&options.dirs.run, &welcome.run, found) {
        Ok(found) => found,
        Err(damage) => {
            let journal = Journal::create(&options.dirs.run, &welcome.run);
            return (journal, Recovered::default(), Some(damage));
        }
    };
    let has = recovered.memory.last_told();
    let damage = match recovered.broken_at {
        Some(line) => Some(Damage::Broken { line }),
        None => (has < told).then_some(Damage::Behind { has, told }),
    };
    (journal, recovered, damage)
}

/// Applies the configuration: this run has no plan yet, or it is lost.
fn apply(welcome: &Welcome, options: &Options, memory: &Memory) -> Result<(Plan, OnDisk), Invalid> {
    if memory.has_begun() || !welcome.jobs.is_empty() {
        tracing::warn!(
            "the applied plan is neither in plan.json nor in the journal: going on with the \
             configuration as it is now"
        );
    }
    let loaded = options.load(memory.environ())?;
    trace::follow(&loaded.plan.log);
    if !loaded.warnings.is_empty() {
        eprintln!("{}", loaded.warnings.trim_end());
    }
    let plan = loaded.plan;
    let written = plan_file::write(&options.dirs.run, &welcome.state_dir, &welcome.run, &plan);
    Ok((plan, OnDisk::Behind.after(written, &options.dirs.run)))
}
