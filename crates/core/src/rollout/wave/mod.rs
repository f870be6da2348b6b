//! A version of a profile that goes through a fleet in waves.
//!
//! ```text
//!  Storing ─► Wave 1 ─► Resting ─► Wave 2 ─► … ─► Applied
//!     │          │ a failure, or a node lost in its own wave
//!     └──────────┴──────────► Back
//! ```
//!
//! - One node conducts: the master, or the first by name whose file has the profile. It alone asks
//!   the source. What it has decided is a [`WaveRecord`], which every node keeps and says; of two
//!   the higher number counts, so that the next conductor goes on where the last one was.
//! - To every node the record is the source of the profile: [`WaveRecord::version_for`] is what it
//!   serves there. A node goes on to a version, and back from it, by an update like any other.
//! - Nothing begins before every node that takes part has the version on its disk.
//! - A node that comes late, or back, is in no wave: it is served what is applied in the fleet.
//! - A conductor that sees no more than half of the nodes of the record decides nothing. Nodes that
//!   were shut down do not count.

mod conduct;
mod exchange;
#[cfg(test)]
mod tests;

pub use conduct::{WaveOffer, conduct, is_settled};
pub(crate) use exchange::are_none;
pub use exchange::{FailedVersion, ProfileDelivery, WaveFacts, WaveFeed, WaveRecords, WaveReport};

use super::Version;
use crate::{
    clock::Mono,
    fleet::{LaterFields, Number},
    name::Name,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// What the fleet has decided about one profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaveRecord {
    /// Another, higher one with every decision.
    pub number: Number,
    /// Who has decided it: of two with the same number the name tells them apart.
    pub conductor: Name,
    /// The number of its first decision: the same version may be tried again.
    pub begun: Number,
    pub version: Version,
    /// What was applied in the fleet before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Version>,
    /// Who gets the version when.
    pub waves: Vec<Vec<Name>>,
    /// Those of them that were not there when their wave began: they get what is applied at the end.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub skipped: BTreeSet<Name>,
    /// Somebody has asked for this version, which no source serves.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_hand: bool,
    /// The version that is not wanted any more for that: not applied again until the source has
    /// served another, or somebody asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolled_back: Option<Version>,
    pub stage: WaveStage,
    #[serde(flatten)]
    pub later: LaterFields,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaveStage {
    /// The nodes put it on their disks.
    Storing,
    /// The nodes of this wave apply it; those of earlier ones have.
    Wave { at: usize },
    /// Before this wave.
    Resting { next: usize },
    /// Every node has it, or gets it when it is back.
    Applied,
    /// No node has it, or gets back from it.
    Back(WaveFailure),
}

/// Why all nodes go back.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WaveFailure {
    pub node: Name,
    /// For people. `None`: the node was lost in its own wave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// How a profile stands on a node, as that says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProfileCopy {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<Version>,
    /// The last one that is on its disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retrieved: Option<Version>,
    /// The last attempt that failed there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailedAttempt>,
    /// What is pending there, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<String>,
}

/// An attempt that a node has come back from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedAttempt {
    /// Of the record.
    pub begun: Number,
    /// For people.
    pub failure: String,
}

/// How a conductor sees a node whose file has the profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaveMember {
    pub presence: MemberPresence,
    pub copy: ProfileCopy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberPresence {
    /// It takes part in the fleet.
    Present,
    /// It does, and is drained or in maintenance: it is left out.
    LeftOut,
    /// It was shut down.
    Ended,
    Lost,
}

/// `[rollout] wave`: how many nodes at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaveSize {
    Nodes(u32),
    Percent(u8),
}

impl WaveSize {
    /// Of so many: rounded up, and never nobody.
    #[must_use]
    pub fn of(self, nodes: usize) -> usize {
        match self {
            WaveSize::Nodes(count) => usize::try_from(count).unwrap_or(usize::MAX).max(1),
            WaveSize::Percent(percent) => (nodes * usize::from(percent)).div_ceil(100).max(1),
        }
    }
}

/// What a conductor knows.
#[derive(Debug)]
pub struct WaveView<'a> {
    pub now: Mono,
    pub conductor: &'a Name,
    /// The number of its next decision.
    pub number: Number,
    /// By name; itself among them.
    pub members: &'a BTreeMap<Name, WaveMember>,
    pub pause: Duration,
    /// Since when the record is at its stage, as far as this conductor has seen it.
    pub since: Mono,
}

impl WaveRecord {
    /// A version that the source has served: by name, the master last.
    #[must_use]
    pub fn begin(
        view: &WaveView<'_>,
        version: Version,
        before: Option<Version>,
        size: WaveSize,
        master: &Name,
    ) -> WaveRecord {
        let present = view.members.iter().filter(|(_, it)| it.presence == MemberPresence::Present);
        let (last, mut nodes): (Vec<Name>, Vec<Name>) =
            present.map(|(name, _)| name.clone()).partition(|name| name == master);
        nodes.extend(last);
        let waves = nodes.chunks(size.of(nodes.len())).map(<[Name]>::to_vec).collect();
        let (number, begun) = (view.number.clone(), view.number.clone());
        let conductor = view.conductor.clone();
        WaveRecord {
            number,
            conductor,
            begun,
            version,
            before,
            waves,
            skipped: BTreeSet::new(),
            by_hand: false,
            rolled_back: None,
            stage: WaveStage::Storing,
            later: LaterFields::default(),
        }
    }

    /// Of two records the later one counts.
    #[must_use]
    pub fn is_after(&self, other: &WaveRecord) -> bool {
        (&self.number, &self.conductor) > (&other.number, &other.conductor)
    }

    /// The wave of a node, counted from 0.
    #[must_use]
    pub fn wave_of(&self, node: &Name) -> Option<usize> {
        self.waves.iter().position(|wave| wave.contains(node))
    }

    /// What the record serves to a node. `None`: nothing yet, what it has stays.
    #[must_use]
    pub fn version_for(&self, node: &Name) -> Option<&Version> {
        let is_in = |waves: &[Vec<Name>]| {
            waves.iter().flatten().any(|it| it == node) && !self.skipped.contains(node)
        };
        let has = match &self.stage {
            WaveStage::Storing | WaveStage::Back(_) => false,
            WaveStage::Wave { at } => is_in(self.waves.get(..=*at).unwrap_or(&self.waves)),
            WaveStage::Resting { next } => is_in(self.waves.get(..*next).unwrap_or(&self.waves)),
            WaveStage::Applied => true,
        };
        if has { Some(&self.version) } else { self.before.as_ref() }
    }

    /// The version that is applied in the fleet, or was before the one under way.
    #[must_use]
    pub fn applied(&self) -> Option<&Version> {
        match &self.stage {
            WaveStage::Applied => Some(&self.version),
            WaveStage::Storing
            | WaveStage::Wave { .. }
            | WaveStage::Resting { .. }
            | WaveStage::Back(_) => self.before.as_ref(),
        }
    }

    /// No other version may begin.
    #[must_use]
    pub fn is_under_way(&self, members: &BTreeMap<Name, WaveMember>) -> bool {
        match &self.stage {
            WaveStage::Applied => false,
            WaveStage::Storing | WaveStage::Wave { .. } | WaveStage::Resting { .. } => true,
            // One that cannot go back is pending, and one that has nothing to go back to stays.
            WaveStage::Back(_) => members.values().any(|it| {
                let has = is_same(&it.copy.applied, &self.version);
                let goes_back = self.before.is_some() && it.copy.pending.is_none();
                it.presence == MemberPresence::Present && has && goes_back
            }),
        }
    }

    /// The failed version, while the record is about one.
    #[must_use]
    pub fn refused(&self) -> Option<&Version> {
        matches!(self.stage, WaveStage::Back(_)).then_some(&self.version)
    }

    /// Whether this side of a cut may decide.
    #[must_use]
    pub fn has_majority(&self, members: &BTreeMap<Name, WaveMember>) -> bool {
        let presence =
            |name: &Name| members.get(name).map_or(MemberPresence::Lost, |it| it.presence);
        let counted = self.waves.iter().flatten().map(presence);
        let counted: Vec<MemberPresence> =
            counted.filter(|it| *it != MemberPresence::Ended).collect();
        let seen = counted.iter().filter(|it| **it != MemberPresence::Lost).count();
        seen * 2 > counted.len()
    }

    /// What a conductor decides next. `None`: nothing has changed.
    #[must_use]
    pub fn decide(&self, view: &WaveView<'_>) -> Option<WaveRecord> {
        if !self.has_majority(view.members) {
            return None;
        }
        let stage = match &self.stage {
            WaveStage::Storing => self.stored(view)?,
            WaveStage::Wave { at } => self.waved(view, *at)?,
            WaveStage::Resting { next } => (view.now >= view.since.after(view.pause))
                .then_some(WaveStage::Wave { at: *next })?,
            WaveStage::Applied | WaveStage::Back(_) => return None,
        };
        let (number, conductor) = (view.number.clone(), view.conductor.clone());
        let mut skipped = self.skipped.clone();
        skipped.extend(self.absent_from(view, &stage));
        Some(WaveRecord { number, conductor, skipped, stage, ..self.clone() })
    }

    /// Those of a wave that begins that are not there.
    fn absent_from(&self, view: &WaveView<'_>, stage: &WaveStage) -> Vec<Name> {
        let wave = match stage {
            WaveStage::Wave { at } => self.waves.get(*at),
            WaveStage::Storing
            | WaveStage::Resting { .. }
            | WaveStage::Applied
            | WaveStage::Back(_) => None,
        };
        let is_there = |node: &&Name| {
            view.members.get(*node).is_some_and(|it| it.presence == MemberPresence::Present)
        };
        wave.into_iter().flatten().filter(|node| !is_there(node)).cloned().collect()
    }

    /// When a conductor is to look again, though nobody has said anything.
    #[must_use]
    pub fn wake(&self, view: &WaveView<'_>) -> Option<Mono> {
        match &self.stage {
            WaveStage::Resting { .. } => Some(view.since.after(view.pause)),
            WaveStage::Storing
            | WaveStage::Wave { .. }
            | WaveStage::Applied
            | WaveStage::Back(_) => None,
        }
    }

    fn stored(&self, view: &WaveView<'_>) -> Option<WaveStage> {
        let lacks = |name: &Name| {
            let member = view.members.get(name)?;
            let has = is_same(&member.copy.retrieved, &self.version);
            (member.presence == MemberPresence::Present && !has).then_some(())
        };
        let waits = self.waves.iter().flatten().any(|name| lacks(name).is_some());
        (!waits).then_some(WaveStage::Wave { at: 0 })
    }

    fn waved(&self, view: &WaveView<'_>, at: usize) -> Option<WaveStage> {
        let Some(wave) = self.waves.get(at) else { return Some(WaveStage::Applied) };
        let mut waits = false;
        for node in wave {
            match self.progress(view, node) {
                WaveProgress::Done => {}
                WaveProgress::Waits => waits = true,
                WaveProgress::Failed(failure) => {
                    let node = node.clone();
                    return Some(WaveStage::Back(WaveFailure { node, failure }));
                }
            }
        }
        match (waits, at + 1 < self.waves.len()) {
            (true, _) => None,
            (false, true) => Some(WaveStage::Resting { next: at + 1 }),
            (false, false) => Some(WaveStage::Applied),
        }
    }

    fn progress(&self, view: &WaveView<'_>, node: &Name) -> WaveProgress {
        if self.skipped.contains(node) {
            return WaveProgress::Done;
        }
        let Some(member) = view.members.get(node) else { return WaveProgress::Failed(None) };
        let copy = &member.copy;
        if let Some(failed) = copy.failed.as_ref().filter(|it| it.begun == self.begun) {
            return WaveProgress::Failed(Some(failed.failure.clone()));
        }
        match member.presence {
            MemberPresence::Present if is_same(&copy.applied, &self.version) => WaveProgress::Done,
            MemberPresence::Present => WaveProgress::Waits,
            // It gets what is applied when it is back.
            MemberPresence::LeftOut | MemberPresence::Ended => WaveProgress::Done,
            MemberPresence::Lost => WaveProgress::Failed(None),
        }
    }
}

enum WaveProgress {
    Done,
    Waits,
    /// `None`: it was lost.
    Failed(Option<String>),
}

fn is_same(version: &Option<Version>, other: &Version) -> bool {
    version.as_ref().is_some_and(|it| it.is_same_content(other))
}
