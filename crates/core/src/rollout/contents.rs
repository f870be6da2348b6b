//! Contents that are gone though their versions are known: torn, or removed by somebody. Each is got
//! again, from its source or from the fleet, before anything is made of it.

use super::{
    KeptProfile, Rollout, RolloutStage, RolloutStep, Trouble, UpdateCause, Version,
    failure::Blame,
    round::{Round, RoundPurpose},
};
use crate::name::Name;
use std::collections::{BTreeMap, VecDeque};

/// Of each profile the contents that are known to be gone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct LostContents(BTreeMap<Name, Vec<Version>>);

impl LostContents {
    pub(super) fn has(&self, profile: &Name, version: &Version) -> bool {
        let lost = self.0.get(profile).map(Vec::as_slice).unwrap_or_default();
        lost.iter().any(|it| it.is_same_content(version))
    }

    /// One that its source has to serve once more.
    pub(super) fn has_any(&self, profile: &Name) -> bool {
        self.0.contains_key(profile)
    }

    pub(super) fn add(&mut self, profile: &Name, version: Version) {
        if !self.has(profile, &version) {
            self.0.entry(profile.clone()).or_default().push(version);
        }
    }

    /// It is on the disk again.
    pub(super) fn remove(&mut self, profile: &Name, version: &Version) {
        if let Some(lost) = self.0.get_mut(profile) {
            lost.retain(|it| !it.is_same_content(version));
        }
        self.0.retain(|_, lost| !lost.is_empty());
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&Name) -> bool) {
        self.0.retain(|profile, _| keep(profile));
    }
}

impl Rollout {
    pub(super) fn has_content(&self, profile: &Name, version: &Version) -> bool {
        let is_known = self.kept.profiles.get(profile).is_some_and(|kept| {
            let KeptProfile { applied, retrieved, history, shared, .. } = kept;
            let earlier = history.iter().map(|it| &it.version);
            let mut all = applied.iter().chain(retrieved).chain(shared).chain(earlier);
            all.any(|it| it.is_same_content(version))
        });
        is_known && !self.lost.has(profile, version)
    }

    /// An update cannot be staged without it: it is asked for first. Once, for a disk that loses it
    /// again is no matter of the source.
    pub(super) fn regain(
        &mut self,
        step: &mut RolloutStep,
        profile: Name,
        version: Version,
        Trouble(why): Trouble,
    ) {
        self.lost.add(&profile, version);
        let RolloutStage::Updating(update) = &self.stage else { return };
        let is_served = match &update.cause {
            UpdateCause::Rollback(_) => false,
            UpdateCause::Boot | UpdateCause::Profile(_) | UpdateCause::Plan => {
                !self.is_fed(&profile)
            }
        };
        if !is_served || update.round.regained.contains(&profile) || self.ending {
            return self.fail_update(step, &Blame::Content(profile), why);
        }
        let (versions, mut round) = (update.versions.clone(), update.round.clone());
        round.regained.insert(profile.clone());
        let others = versions.keys().filter(|it| **it != profile).cloned();
        match round.purpose {
            RoundPurpose::Boot | RoundPurpose::Plan => {
                round.rest = VecDeque::from([profile.clone()]);
                round.got = versions;
                round.got.remove(&profile);
            }
            RoundPurpose::Refresh => {
                let rest = [profile.clone()].into_iter().chain(others);
                round.rest = rest.chain(round.rest).collect();
            }
        }
        self.go_round(step, round);
    }

    /// Another agent makes it anew.
    pub(super) fn wait_with(&mut self, round: Round) {
        self.boot = Some(round);
        self.kept.plan_due = true;
    }

    /// A boot or a plan whose update could not be staged: it is made again in its time, with what was
    /// loaded for it.
    pub(super) fn put_off(&mut self, versions: BTreeMap<Name, Version>, round: Round) {
        match round.purpose {
            RoundPurpose::Boot | RoundPurpose::Plan => {
                let (got, rest, missed) = (versions, VecDeque::new(), None);
                self.wait_with(Round { got, rest, missed, ..round });
            }
            RoundPurpose::Refresh => {}
        }
    }
}
