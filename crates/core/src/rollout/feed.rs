//! Profiles that come from the fleet, in waves.
//!
//! ```text
//!  a delivery ─► Store ─► on the disk ─┐
//!                                      ├─► the fleet serves it here ─► an update like any other
//!  a feed: serves, stores ─────────────┘
//!
//!  on the conductor alone: Load ─► Store ─► an offer to the fleet
//! ```
//!
//! A version that the fleet serves and whose content is on the disk is taken as if a source had
//! served it. As long as there is none, what is applied stays, and that is no failure. The conductor
//! asks the real source beside that, whatever else is under way.

use super::{
    FailedAttempt, FailedVersion, KeptFailure, KeptProfile, LoadOutcome, Op, ProfileCopy, Rollout,
    RolloutCommand, RolloutStage, RolloutStep, Trouble, Version, WaveFeed, WaveOffer, WaveReport,
    round::Round,
};
use crate::{clock::Mono, fleet::Number, name::Name, rollout::Content};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// So many contents of a profile are kept that the fleet may serve.
const SHARED: usize = 4;

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Feeds {
    feeds: BTreeMap<Name, WaveFeed>,
    /// What was last taken of each.
    served: BTreeMap<Name, Version>,
    /// Contents that are being stored.
    arriving: BTreeMap<Name, ArrivingContent>,
    /// Of a conductor: sources that are being asked, and those that somebody wants to be.
    polls: BTreeMap<Name, Op>,
    asked: BTreeMap<Name, Mono>,
    offers: BTreeMap<Name, WaveOffer>,
    /// Attempts of the fleet that somebody wants to be made again.
    retried: BTreeMap<Name, Number>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ArrivingContent {
    op: Op,
    version: Version,
    /// Its own source has served it.
    is_offer: bool,
}

impl Feeds {
    pub(super) fn get(&self, profile: &Name) -> Option<&WaveFeed> {
        self.feeds.get(profile)
    }

    pub(super) fn is_poll(&self, op: Op) -> bool {
        self.polls.values().any(|it| *it == op)
    }

    pub(super) fn is_arriving(&self, op: Op) -> bool {
        self.arriving.values().any(|it| it.op == op)
    }

    /// Contents that nothing else knows of yet.
    pub(super) fn arriving(&self, profile: &Name) -> Option<&Version> {
        self.arriving.get(profile).map(|it| &it.version)
    }

    fn conducts(&self, profile: &Name) -> bool {
        self.feeds.get(profile).is_some_and(|feed| feed.conducts)
    }
}

impl Rollout {
    /// The fleet is the source of a profile.
    pub(super) fn is_fed(&self, profile: &Name) -> bool {
        self.plan.wave.is_some() && self.profile(profile).is_some()
    }

    /// What the fleet says of a profile that comes from it.
    #[must_use]
    pub fn feed(&self, profile: &Name) -> Option<&WaveFeed> {
        self.feeds.get(profile).filter(|_| self.is_fed(profile))
    }

    pub(super) fn fed(&mut self, feeds: BTreeMap<Name, WaveFeed>) {
        for (profile, _) in feeds.iter().filter(|(_, feed)| feed.conducts) {
            // A new conductor does not wait for the next interval.
            if let Some(source) =
                self.sources.get_mut(profile).filter(|_| !self.feeds.conducts(profile))
            {
                source.next = source.earliest;
            }
        }
        self.feeds.feeds = feeds;
        let Feeds { feeds, asked, offers, .. } = &mut self.feeds;
        let conducts = |profile: &Name| feeds.get(profile).is_some_and(|feed| feed.conducts);
        asked.retain(|profile, _| conducts(profile));
        offers.retain(|profile, _| conducts(profile));
        let profile = self.conducted_failure().and_then(|it| it.profile.as_ref());
        if profile.is_some_and(|it| self.is_conducted_elsewhere(it)) {
            self.kept.pending = None;
        }
    }

    /// The first profile whose source serves to this node what the fleet has come back from.
    pub(super) fn failed_in_fleet(&self) -> Option<(Name, FailedVersion)> {
        let names = self.plan.profiles.iter().map(|it| &it.name);
        let failed = |name: &Name| {
            let feed = self.feed(name).filter(|feed| feed.conducts)?;
            let (failed, offer) = (feed.failed.as_ref()?, self.feeds.offers.get(name)?);
            let is_served = offer.version.is_same_content(&failed.version);
            let is_retried = self.feeds.retried.get(name) == Some(&failed.begun);
            (is_served && !is_retried).then(|| (name.clone(), failed.clone()))
        };
        names.filter_map(failed).next()
    }

    /// The fleet goes on with another version than one that it had come back from, or its source
    /// serves another. Before both are known it is not over.
    pub(super) fn is_over_in_fleet(&self, pending: &KeptFailure) -> bool {
        let (Some(profile), Some(version)) = (&pending.profile, &pending.version) else {
            return false;
        };
        let is = |it: &Version| it.is_same_content(version);
        let goes_on = self.feed(profile).is_some_and(|feed| {
            feed.conducts && !feed.failed.as_ref().is_some_and(|it| is(&it.version))
        });
        let serves_another = self.feeds.offers.get(profile).is_some_and(|it| !is(&it.version));
        goes_on || serves_another
    }

    /// Another node asks the source of a profile. While the fleet has no master, nobody does.
    fn is_conducted_elsewhere(&self, profile: &Name) -> bool {
        self.feeds.get(profile).is_some_and(|feed| !feed.conducts && feed.conductor.is_some())
    }

    /// It is not known what the fleet serves, or that is still to come.
    pub(super) fn awaits_fleet(&self, profile: &Name) -> bool {
        let serves = self.feeds.get(profile).map(|feed| feed.serves.as_ref());
        let is_here = |version: &Version| self.has_content(profile, version);
        self.is_fed(profile) && !serves.is_some_and(|it| it.is_none_or(is_here))
    }

    /// What the fleet serves, if its content is here.
    fn served_here(&self, profile: &Name) -> Option<&Version> {
        let version = self.feeds.get(profile)?.serves.as_ref()?;
        self.has_content(profile, version).then_some(version)
    }

    /// When something is to be taken from the fleet. `None`: nothing is.
    pub(super) fn fed_at(&self, profile: &Name) -> Option<Mono> {
        let version = self.served_here(profile)?;
        if self.feeds.served.get(profile) != Some(version) {
            return Some(Mono(0));
        }
        // It could not be applied here, which is not its fault.
        let pending = self.own_failure()?;
        let again = pending.profile.as_ref() == Some(profile) && pending.version.is_none();
        self.sources.get(profile).filter(|_| again).map(|source| source.next)
    }

    /// As an answer of its source would be; without one the round goes on.
    pub(super) fn take_from_fleet(&mut self, step: &mut RolloutStep, profile: &Name, round: Round) {
        let Some(version) = self.served_here(profile).cloned() else {
            return self.go_round(step, round);
        };
        let interval = self.plan.refresh_interval;
        if let Some(source) =
            self.sources.get_mut(profile).filter(|_| !self.feeds.conducts(profile))
        {
            source.next = step.now.mono.after(interval);
        }
        self.feeds.served.insert(profile.clone(), version.clone());
        if !self.is_wanted(profile, &version, round.asked) {
            return self.served_known(step, profile, version, round);
        }
        self.kept_profile(profile).refuse_nothing();
        self.retrieved(step, profile.clone(), version, round);
    }

    /// The content of a version has come from another node.
    pub(super) fn arrived(
        &mut self,
        step: &mut RolloutStep,
        profile: Name,
        version: Version,
        content: Arc<Content>,
    ) {
        if self.is_fed(&profile) && !self.has_content(&profile, &version) {
            self.store_content(step, profile, version, content, false);
        }
    }

    fn store_content(
        &mut self,
        step: &mut RolloutStep,
        profile: Name,
        version: Version,
        content: Arc<Content>,
        is_offer: bool,
    ) {
        let (name, stored) = (profile.clone(), version.clone());
        let store = |op| RolloutCommand::Store { op, profile: name, version: stored, content };
        let op = self.ask(step, store);
        self.feeds.arriving.insert(profile, ArrivingContent { op, version, is_offer });
    }

    /// It is on the disk; if it is not, it is wanted or served again.
    pub(super) fn content_stored(
        &mut self,
        step: &mut RolloutStep,
        op: Op,
        outcome: Result<(), Trouble>,
    ) {
        let of_op = |(name, it): (&Name, &ArrivingContent)| (it.op == op).then(|| name.clone());
        let Some(profile) = self.feeds.arriving.iter().find_map(of_op) else { return };
        let Some(content) = self.feeds.arriving.remove(&profile) else { return };
        let ArrivingContent { version, is_offer, .. } = content;
        if let Err(trouble) = outcome {
            if is_offer {
                let why =
                    format!("version {version} of profile '{profile}' cannot be kept: {trouble}");
                self.feeds.asked.remove(&profile);
                self.pend_conducted(step, &profile, why);
            }
            if let Some(source) = self.sources.get_mut(&profile) {
                source.trouble = Some(trouble);
            }
            return;
        }
        self.lost.remove(&profile, &version);
        let shared = &mut self.kept_profile(&profile).shared;
        shared.retain(|it| !it.is_same_content(&version));
        shared.insert(0, version.clone());
        shared.truncate(SHARED);
        if is_offer {
            self.end_conducted(&profile);
            self.offer(&profile, version);
        }
    }

    /// Asks the sources that this node conducts and that are due.
    pub(super) fn poll(&mut self, step: &mut RolloutStep) {
        if self.ending || self.is_resting() {
            return;
        }
        let now = step.now.mono;
        let due: Vec<Name> =
            self.polls_at().filter(|(_, at)| *at <= now).map(|(name, _)| name.clone()).collect();
        for profile in due {
            let asks = self.feeds.asked.contains_key(&profile);
            let offered = self.feeds.offers.contains_key(&profile);
            let fresh = asks || !offered || self.lost.has_any(&profile);
            if let Some(source) = self.sources.get_mut(&profile) {
                source.noticed = false;
            }
            let name = profile.clone();
            let op = self.ask(step, |op| RolloutCommand::Load { op, profile: name, fresh });
            self.feeds.polls.insert(profile, op);
        }
    }

    /// When the next source is asked that this node conducts.
    pub(super) fn next_poll(&self) -> Option<Mono> {
        let rests = self.ending || self.is_resting();
        self.polls_at().map(|(_, at)| at).min().filter(|_| !rests)
    }

    fn polls_at(&self) -> impl Iterator<Item = (&Name, Mono)> {
        let names =
            self.plan.profiles.iter().map(|it| &it.name).filter(|_| self.plan.wave.is_some());
        let idle = |name: &&Name| {
            let Feeds { polls, arriving, .. } = &self.feeds;
            self.feeds.conducts(name) && !polls.contains_key(*name) && !arriving.contains_key(*name)
        };
        names.filter(idle).filter_map(|name| {
            let source = self.sources.get(name)?;
            let at_once = source.noticed || self.feeds.asked.contains_key(name);
            Some((name, if at_once { source.earliest } else { source.next }))
        })
    }

    /// The source of a profile that this node conducts has answered.
    pub(super) fn polled(
        &mut self,
        step: &mut RolloutStep,
        profile: &Name,
        outcome: LoadOutcome,
        not_before: Option<Duration>,
    ) {
        self.feeds.polls.remove(profile);
        self.note_answer(step, profile, &outcome, not_before);
        match outcome {
            LoadOutcome::Served { version, content } if self.feeds.conducts(profile) => {
                match self.has_content(profile, &version) {
                    true => {
                        self.end_conducted(profile);
                        self.offer(profile, version);
                    }
                    false => self.store_content(step, profile.clone(), version, content, true),
                }
            }
            LoadOutcome::Served { .. } => {}
            LoadOutcome::Unchanged => self.end_conducted(profile),
            LoadOutcome::Failed(trouble) => {
                self.feeds.asked.remove(profile);
                self.feeds.retried.remove(profile);
                if self.feeds.conducts(profile) {
                    let why = format!("profile '{profile}' cannot be loaded: {trouble}");
                    self.pend_conducted(step, profile, why);
                }
            }
        }
    }

    fn offer(&mut self, profile: &Name, version: Version) {
        let asked = self.feeds.asked.remove(profile);
        // What somebody wants back by hand is not asked for once its source serves it.
        let before = self.feeds.offers.remove(profile).filter(|it| it.version == version);
        let asked = asked.or(before.and_then(|it| it.asked));
        if self.feeds.conducts(profile) {
            let offer = WaveOffer { version, asked, by_hand: false };
            self.feeds.offers.insert(profile.clone(), offer);
        }
    }

    /// Somebody wants an earlier version back, everywhere.
    pub(super) fn offer_by_hand(&mut self, step: &RolloutStep, profile: &Name, version: Version) {
        let offer = WaveOffer { version, asked: Some(step.now.mono), by_hand: true };
        self.feeds.offers.insert(profile.clone(), offer);
    }

    /// A source is asked for the fleet, its answer is not on the disk yet, or the fleet, which knows
    /// this, has not heard of it.
    #[must_use]
    pub fn asks_for_fleet(&self, profile: &Name, known: Option<&WaveReport>) -> bool {
        let Feeds { polls, arriving, asked, offers, .. } = &self.feeds;
        let stores = arriving.get(profile).is_some_and(|it| it.is_offer);
        let is_heard = known.and_then(|it| it.offers.get(profile)) == offers.get(profile);
        stores || polls.contains_key(profile) || asked.contains_key(profile) || !is_heard
    }

    /// Somebody wants the sources to be asked now that this node conducts.
    pub(super) fn ask_to_poll(&mut self, step: &RolloutStep, profile: Option<&Name>) {
        let Feeds { feeds, asked, retried, .. } = &mut self.feeds;
        let conducted = feeds.iter().filter(|(_, feed)| feed.conducts);
        for (name, feed) in conducted.filter(|(name, _)| profile.is_none_or(|it| it == *name)) {
            asked.insert(name.clone(), step.now.mono);
            retried.extend(feed.failed.as_ref().map(|it| (name.clone(), it.begun.clone())));
        }
    }

    /// What the fleet is to know. `None`: nothing goes in waves here.
    #[must_use]
    pub fn wave_report(&self) -> Option<WaveReport> {
        let plan = self.plan.wave.filter(|_| self.stage != RolloutStage::New)?;
        let names = self.plan.profiles.iter().map(|it| &it.name);
        Some(WaveReport {
            plan,
            copies: names.clone().map(|name| (name.clone(), self.profile_copy(name))).collect(),
            rests: self.is_resting(),
            wants: names.filter_map(|name| Some((name.clone(), self.lacks(name)?))).collect(),
            offers: self.feeds.offers.clone(),
        })
    }

    /// The content that it is to have, has not, and is not storing.
    fn lacks(&self, profile: &Name) -> Option<Version> {
        let feed = self.feeds.get(profile)?;
        let mut needed = feed.serves.iter().chain(&feed.stores);
        let lacking = needed.find(|version| !self.has_content(profile, version))?;
        let arrives = self.feeds.arriving(profile).is_some_and(|it| it.is_same_content(lacking));
        (!arrives).then(|| lacking.clone())
    }

    fn profile_copy(&self, profile: &Name) -> ProfileCopy {
        let none = KeptProfile::default();
        let kept = self.kept.profiles.get(profile).unwrap_or(&none);
        let stores = self.feeds.get(profile).and_then(|feed| feed.stores.as_ref());
        let stored = stores.filter(|version| self.has_content(profile, version));
        let pending = self.own_failure();
        let pending = pending.filter(|it| it.profile.as_ref().is_none_or(|it| it == profile));
        ProfileCopy {
            applied: kept.applied.clone(),
            retrieved: stored.or(kept.retrieved.as_ref()).cloned(),
            failed: self.failed_attempt(profile, kept),
            pending: pending.map(|it| it.failure.clone()),
        }
    }

    /// It was served a version that is tried in the fleet, and has come back from it, or cannot take
    /// it.
    fn failed_attempt(&self, profile: &Name, kept: &KeptProfile) -> Option<FailedAttempt> {
        let feed = self.feeds.get(profile)?;
        let (version, begun) = (feed.serves.as_ref()?, feed.attempt.clone()?);
        if self.feeds.served.get(profile) != Some(version) {
            return None;
        }
        let is_refused = kept.refuses(version);
        let pending = self.own_failure();
        let of_it = |name: &Option<Name>| name.as_ref().is_none_or(|it| it == profile);
        let own = pending.filter(|it| of_it(&it.profile));
        let is_idle = self.stage == RolloutStage::Idle && self.kept.update.is_none();
        let failure = match (is_refused, own.filter(|_| is_idle), pending.filter(|it| it.failed)) {
            (true, Some(own), _) | (false, Some(own), _) => own.failure.clone(),
            (true, None, _) => format!("version {version} has failed there"),
            (false, None, Some(other)) => other.failure.clone(),
            (false, None, None) => return None,
        };
        Some(FailedAttempt { begun, failure })
    }
}
