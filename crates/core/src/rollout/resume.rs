//! An update that an agent before has begun: its record is found open.
//!
//! ```text
//!  with a failure ─► the way back
//!  else: Finishing ─► the set is in place ─► the fleet has said what it serves ─► an update of that
//! ```
//!
//! What is in place may be half of a set, so that comes first. Then the source is asked: it may have
//! gone on, and a fleet may have come back from a version while this node was not there.

use super::{
    Rollout, RolloutCommand, RolloutStage, RolloutStep, Trouble,
    failure::Blame,
    round::{Round, RoundPurpose},
};
use std::collections::VecDeque;

impl Rollout {
    /// The first of all: a set is whole.
    pub(super) fn finish_found(&mut self, step: &mut RolloutStep) {
        match &self.kept.update {
            Some(record) if record.failure.is_some() => self.restore(step),
            Some(record) => {
                let files = record.files.clone();
                let op = self.ask(step, |op| RolloutCommand::Switch { op, files });
                self.stage = RolloutStage::Finishing { op };
            }
            None => {}
        }
    }

    pub(super) fn finished(&mut self, step: &mut RolloutStep, outcome: Result<(), Trouble>) {
        self.stage = RolloutStage::Idle;
        if let Err(Trouble(why)) = outcome {
            self.reopen(Round::new(RoundPurpose::Boot, VecDeque::new()));
            self.fail_update(step, &Blame::Disk, why);
        }
    }

    /// It is still to be gone on with.
    pub(super) fn is_interrupted(&self) -> bool {
        self.stage == RolloutStage::Idle && self.kept.update.is_some() && self.boot.is_none()
    }

    /// Goes on with it, or with what is served in its place. `false`: that is not known yet.
    pub(super) fn resume(&mut self, step: &mut RolloutStep) -> bool {
        let Some(record) = &self.kept.update else { return false };
        if record.versions.keys().any(|it| self.awaits_fleet(it)) {
            return false;
        }
        let names = self.plan.profiles.iter().map(|profile| profile.name.clone());
        let booted = self.kept.booted;
        let rest = names.filter(|name| !booted || record.versions.contains_key(name)).collect();
        self.go_round(step, Round::new(RoundPurpose::Boot, rest));
        true
    }
}
