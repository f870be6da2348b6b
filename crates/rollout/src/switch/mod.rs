//! The files of an update: rendered and staged as a set, switched as a set, put back as a set.
//!
//! ```text
//!  stage:    render all ─► look at all destinations ─► copies of what is there ─► staged, 0600, synced
//!  switch:   staged ──rename──► destination           (each; what is in place already is left)
//!  restore:  copy ──rename──► destination             (each; what somebody else put there goes aside)
//!  retain:   what is not needed any more goes
//! ```
//!
//! Between stage and switch core has the set in its record. Each of the four can be cut off anywhere
//! and said again. Staged files are beside their destinations, so that a switch is a rename; a
//! directory is switched by the rename of one link. Nothing is ever written through a link.

mod copies;
mod destination;
mod difference;
mod owner;
mod places;
mod preview;
mod render;
mod restore;
mod stage;
mod staging;
mod swap;
#[cfg(test)]
mod tests;

pub use difference::difference;
pub use preview::Preview;
pub use render::source_digest;

use crate::{renderer::Renderer, store::Store};
use mainstay_core::{
    name::Name,
    plan::RolloutPlan,
    rollout::{
        Content, RestoreOutcome, StageFailure, StageSet, StagedFile, StagedSet, Trouble, Version,
    },
};
use render::RenderSet;
use serde_json::Value;
use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

/// The largest file at a destination that is replaced: a copy of it is kept.
const LARGEST_OLD: u64 = 64 << 20;

/// Does what core wants with files. Each call may take as long as the disk does.
#[derive(Debug, Clone)]
pub struct Switch {
    store: Store,
    renderer: Renderer,
    own: Vec<PathBuf>,
}

impl Switch {
    /// `own`: files and directories of the node, in whose place nothing is to be put; the state
    /// directory is one of them in any case.
    #[must_use]
    pub fn new(store: Store, renderer: Renderer, own: Vec<PathBuf>) -> Switch {
        Switch { store, renderer, own }
    }

    /// Renders and stages. `node`: the facts of the node.
    ///
    /// # Errors
    /// Nothing that can be seen has changed, and nothing is left behind.
    pub fn stage(
        &self,
        set: &StageSet,
        plan: &RolloutPlan,
        node: &Value,
    ) -> Result<StagedSet, StageFailure> {
        stage::stage(&self.rendered(set, &BTreeMap::new(), plan, node))
    }

    /// What staging would change, for people: names in place of secrets, nothing is written.
    /// `unstored`: contents that are not in the store.
    ///
    /// # Errors
    /// As [`Switch::stage`], but that edits of somebody else are part of the difference.
    pub fn preview(
        &self,
        set: &StageSet,
        unstored: &BTreeMap<Name, Arc<Content>>,
        plan: &RolloutPlan,
        node: &Value,
    ) -> Result<Vec<Preview>, StageFailure> {
        preview::preview(&self.rendered(set, unstored, plan, node))
    }

    fn rendered<'a>(
        &'a self,
        set: &'a StageSet,
        unstored: &'a BTreeMap<Name, Arc<Content>>,
        plan: &'a RolloutPlan,
        node: &'a Value,
    ) -> RenderSet<'a> {
        let Switch { store, renderer, own } = self;
        RenderSet { store, renderer, own, set, unstored, plan, node }
    }

    /// Puts staged files in place.
    ///
    /// # Errors
    /// Some may be in place.
    pub fn switch(&self, files: &[StagedFile]) -> Result<(), Trouble> {
        swap::switch(&self.store, files)
    }

    /// Puts back what was there before; each is tried.
    #[must_use]
    pub fn restore(&self, files: &[StagedFile]) -> RestoreOutcome {
        restore::restore(&self.store, files)
    }

    /// Removes all contents, staged files and copies but these.
    ///
    /// # Errors
    /// Something is still there.
    pub fn retain(
        &self,
        versions: &BTreeMap<Name, Vec<Version>>,
        files: &[StagedFile],
    ) -> Result<(), Trouble> {
        let told = |error: std::io::Error| Trouble(format!("cannot tidy up: {error}"));
        self.store.retain_contents(versions).map_err(told)?;
        staging::retain(&self.store, files).map_err(told)?;
        copies::retain(&self.store, files).map_err(told)
    }
}
