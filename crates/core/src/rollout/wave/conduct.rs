//! What a conductor decides of one profile: it takes the version under way further, or begins with
//! what its source serves.

use super::{
    MemberPresence, Version, WaveMember, WaveRecord, WaveSize, WaveStage, WaveView, is_same,
};
use crate::{clock::Mono, fleet::LaterFields, name::Name};
use std::collections::BTreeMap;

/// What the source of a profile has served to its conductor, on whose disk it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WaveOffer {
    pub version: Version,
    /// When somebody has last asked for it, by the clock of the node: what has failed before is tried
    /// again.
    pub asked: Option<Mono>,
    /// No source has served it: somebody wants an earlier version back.
    pub by_hand: bool,
}

/// The next record of a profile. `None`: nothing is to be decided.
///
/// `asks`: somebody wants what has failed to be tried again. `own`: what the conductor itself has
/// applied, for a fleet that has no record.
#[must_use]
pub fn conduct(
    view: &WaveView<'_>,
    record: Option<&WaveRecord>,
    offer: Option<&WaveOffer>,
    asks: bool,
    own: Option<&Version>,
    (size, master): (WaveSize, &Name),
) -> Option<WaveRecord> {
    if let Some(next) = record.and_then(|record| record.decide(view)) {
        return Some(next);
    }
    let WaveOffer { version, by_hand, .. } = offer?;
    let begin = |before: Option<&Version>| {
        let before = before.filter(|it| !it.is_same_content(version)).cloned();
        let mut next = WaveRecord::begin(view, version.clone(), before, size, master);
        (next.by_hand, next.rolled_back) = (*by_hand, next.before.clone().filter(|_| *by_hand));
        // Nobody could take it: nobody could go on with it, either.
        (!next.waves.is_empty()).then_some(next)
    };
    let Some(record) = record else { return begin(own) };
    if !record.has_majority(view.members) || !record.may_be_followed(view.members) {
        return None;
    }
    let is_its_own = record.version.is_same_content(version);
    match &record.stage {
        // The same under another name is nothing to tell a service of. A source that has gone back
        // as well may serve later what was rolled back.
        WaveStage::Applied if is_its_own => {
            let is_news = record.version != *version || record.rolled_back.is_some();
            (is_news && !by_hand).then(|| record.settled(view, version))
        }
        WaveStage::Applied if is_same(&record.rolled_back, version) && !asks => None,
        WaveStage::Applied => begin(Some(&record.version)),
        WaveStage::Storing if is_its_own => None,
        WaveStage::Back(_) if is_its_own => asks.then(|| begin(record.before.as_ref())).flatten(),
        // Its source has gone back as well: what has failed may come again.
        WaveStage::Back(_) if is_same(&record.before, version) => {
            Some(record.settled(view, version))
        }
        WaveStage::Storing
        | WaveStage::Wave { .. }
        | WaveStage::Resting { .. }
        | WaveStage::Back(_) => begin(record.before.as_ref()),
    }
}

impl WaveRecord {
    /// Another version may begin after it.
    fn may_be_followed(&self, members: &BTreeMap<Name, WaveMember>) -> bool {
        let has = |it: &WaveMember| is_same(&it.copy.retrieved, &self.version);
        match &self.stage {
            // Whoever had it is gone: nobody can get it any more.
            WaveStage::Storing => {
                let mut present =
                    members.values().filter(|it| it.presence == MemberPresence::Present);
                !present.any(has)
            }
            WaveStage::Wave { .. }
            | WaveStage::Resting { .. }
            | WaveStage::Applied
            | WaveStage::Back(_) => !self.is_under_way(members),
        }
    }

    /// This version is applied in the fleet already.
    fn settled(&self, view: &WaveView<'_>, version: &Version) -> WaveRecord {
        WaveRecord {
            number: view.number.clone(),
            conductor: view.conductor.clone(),
            begun: view.number.clone(),
            version: version.clone(),
            before: None,
            waves: self.waves.clone(),
            skipped: self.skipped.clone(),
            by_hand: false,
            rolled_back: None,
            stage: WaveStage::Applied,
            later: LaterFields::default(),
        }
    }
}

/// Nothing is going to follow from what the source has served last, once there is a majority; the
/// arguments are those of [`conduct`].
#[must_use]
pub fn is_settled(
    members: &BTreeMap<Name, WaveMember>,
    record: Option<&WaveRecord>,
    offer: Option<&WaveOffer>,
    asks: bool,
) -> bool {
    let is_open = record.is_some_and(|record| record.is_under_way(members));
    if is_open {
        return false;
    }
    // Nobody could take another one.
    let is_empty = !members.values().any(|it| it.presence == MemberPresence::Present);
    let (Some(WaveOffer { version, .. }), false) = (offer, is_empty) else { return true };
    let Some(record) = record else { return false };
    match &record.stage {
        WaveStage::Storing | WaveStage::Wave { .. } | WaveStage::Resting { .. } => false,
        WaveStage::Applied => {
            let is_unwanted = is_same(&record.rolled_back, version) && !asks;
            record.version.is_same_content(version) || is_unwanted
        }
        WaveStage::Back(_) => {
            let has_failed = record.version.is_same_content(version) && !asks;
            has_failed || is_same(&record.before, version)
        }
    }
}
