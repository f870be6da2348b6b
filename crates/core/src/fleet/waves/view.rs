//! What observers may ask of profiles that go through a fleet in waves.

use crate::{
    fleet::Fleet,
    name::Name,
    rollout::{MemberPresence, ProfileCopy, Version, WaveFailure, WaveRecord, WaveStage},
};

/// A profile, as one node sees it in its fleet.
#[derive(Debug, Clone)]
pub struct WaveProfile {
    /// Who asks its source; `None`: no master is followed.
    pub conductor: Option<Name>,
    pub record: Option<WaveRecord>,
    /// By name: those whose file has it, and those of the record.
    pub nodes: Vec<WaveNode>,
    /// This side of a cut may decide.
    pub has_majority: bool,
    /// Nothing is on its way through the fleet, as far as is known here.
    pub is_settled: bool,
}

#[derive(Debug, Clone)]
pub struct WaveNode {
    pub name: Name,
    pub presence: MemberPresence,
    pub copy: ProfileCopy,
    /// Its wave, counted from 0; `None`: it is in none.
    pub wave: Option<usize>,
}

/// How far a node is with the version of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaveAnswer {
    /// It has confirmed it.
    Applied,
    /// It is on its disk.
    Stored,
    Waiting,
    /// It has come back from it.
    Failed,
    /// Something is pending there.
    Pending,
    LeftOut,
    Ended,
    Lost,
}

impl WaveAnswer {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            WaveAnswer::Applied => "applied",
            WaveAnswer::Stored => "stored",
            WaveAnswer::Waiting => "waiting",
            WaveAnswer::Failed => "failed",
            WaveAnswer::Pending => "pending",
            WaveAnswer::LeftOut => "left-out",
            WaveAnswer::Ended => "ended",
            WaveAnswer::Lost => "lost",
        }
    }
}

impl WaveNode {
    /// To the version of the record.
    #[must_use]
    pub fn answer(&self, record: Option<&WaveRecord>) -> WaveAnswer {
        let is = |version: &Option<Version>| {
            let wanted = record.map(|it| &it.version);
            version.as_ref().zip(wanted).is_some_and(|(it, wanted)| it.is_same_content(wanted))
        };
        let begun = record.map(|it| &it.begun);
        // Once all go back the node that was the reason has nothing to say of it any more.
        let is_reason = |failure: &WaveFailure| failure.node == self.name;
        let was_reason = match record.map(|it| &it.stage) {
            Some(WaveStage::Back(failure)) => is_reason(failure),
            Some(
                WaveStage::Storing
                | WaveStage::Wave { .. }
                | WaveStage::Resting { .. }
                | WaveStage::Applied,
            )
            | None => false,
        };
        let failed = self.copy.failed.as_ref().map(|it| &it.begun) == begun && begun.is_some();
        match self.presence {
            MemberPresence::Lost => WaveAnswer::Lost,
            MemberPresence::Ended => WaveAnswer::Ended,
            MemberPresence::Present | MemberPresence::LeftOut if failed || was_reason => {
                WaveAnswer::Failed
            }
            MemberPresence::Present | MemberPresence::LeftOut if self.copy.pending.is_some() => {
                WaveAnswer::Pending
            }
            MemberPresence::Present | MemberPresence::LeftOut if is(&self.copy.applied) => {
                WaveAnswer::Applied
            }
            MemberPresence::LeftOut => WaveAnswer::LeftOut,
            MemberPresence::Present if is(&self.copy.retrieved) => WaveAnswer::Stored,
            MemberPresence::Present => WaveAnswer::Waiting,
        }
    }
}

impl Fleet {
    /// How a profile of this node stands in the fleet. `None`: it does not go in waves.
    #[must_use]
    pub fn wave_profile(&self, profile: &Name) -> Option<WaveProfile> {
        let waves = self.waves.facts();
        waves.copies.get(profile)?;
        let record = waves.records.get(profile);
        let roster = self.wave_roster();
        let members = match &roster {
            Some(roster) => self.waves.members(roster, profile, record),
            None => Default::default(),
        };
        let has_majority = record.is_none_or(|record| record.has_majority(&members));
        let is_settled = self.waves.is_settled(profile, &members);
        let node = |(name, member): (Name, crate::rollout::WaveMember)| WaveNode {
            wave: record.and_then(|record| record.wave_of(&name)),
            name,
            presence: member.presence,
            copy: member.copy,
        };
        Some(WaveProfile {
            conductor: self.conductor(profile).cloned(),
            record: record.cloned(),
            has_majority: has_majority && roster.is_some(),
            is_settled,
            nodes: members.into_iter().map(node).collect(),
        })
    }
}
