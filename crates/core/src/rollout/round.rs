//! A round of questions to sources: at the boot and after a reload of several profiles, of which one
//! update is made; later of those that are due, one update each.

use super::{
    KeptFailure, LoadOutcome, Rollout, RolloutCommand, RolloutStage, RolloutStep, Trouble,
    UpdateCause, Version,
};
use crate::{clock::Mono, name::Name};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Round {
    pub(super) purpose: RoundPurpose,
    /// Those that are still to be asked, in the order of the file.
    pub(super) rest: VecDeque<Name>,
    /// What was served, of a round that makes one update.
    pub(super) got: BTreeMap<Name, Version>,
    /// The first that could not be had, of a round that makes one update: what was applied before
    /// has to do.
    pub(super) missed: Option<MissedProfile>,
    /// A user asks: what has failed before is tried again.
    pub(super) asked: bool,
    /// A user wants what somebody else has edited to be overwritten.
    pub(super) force: bool,
    /// Services that are told in any case.
    pub(super) forced: BTreeSet<Name>,
    /// Profiles whose content was gone, and that were asked for once more.
    pub(super) regained: BTreeSet<Name>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum RoundPurpose {
    /// All profiles, then one update of all templates.
    Boot,
    /// Those whose source is another one, then one update of all templates.
    Plan,
    /// An update for each that has changed.
    Refresh,
}

/// A profile that could not be had.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct MissedProfile {
    pub(super) profile: Name,
    /// The version that is not wanted again; `None`: it could not be loaded.
    pub(super) version: Option<Version>,
    pub(super) trouble: Trouble,
}

impl Round {
    pub(super) fn new(purpose: RoundPurpose, rest: VecDeque<Name>) -> Round {
        Round {
            purpose,
            rest,
            got: BTreeMap::new(),
            missed: None,
            asked: false,
            force: false,
            forced: BTreeSet::new(),
            regained: BTreeSet::new(),
        }
    }
}

impl Rollout {
    /// The boot, or what is left of it or of a plan, once the profile that it waits for is due.
    /// `false`: not yet.
    pub(super) fn begin_boot(&mut self, step: &mut RolloutStep) -> bool {
        let now = step.now.mono;
        if self.next_question().is_none_or(|at| at > now) {
            return false;
        }
        let round = self.resumed(now).unwrap_or_else(|| {
            let all = self.plan.profiles.iter().map(|profile| profile.name.clone());
            let forced = self.services_of_interrupted();
            Round { forced, ..Round::new(RoundPurpose::Boot, all.collect()) }
        });
        self.go_round(step, round);
        true
    }

    /// What had to wait, with those to be asked that it lacks or that are due.
    pub(super) fn resumed(&mut self, now: Mono) -> Option<Round> {
        let mut round = self.boot.take()?;
        let due: BTreeSet<&Name> =
            self.askable().filter(|(_, at)| *at <= now).map(|(name, _)| name).collect();
        let is_news = |name: &Name| !round.got.contains_key(name) || due.contains(name);
        let all = self.plan.profiles.iter().map(|profile| profile.name.clone());
        round.rest = all.filter(is_news).collect();
        Some(round)
    }

    /// Services of profiles whose update was under way when the last run ended: they are told even if
    /// their files are right.
    fn services_of_interrupted(&self) -> BTreeSet<Name> {
        let profiles = self.kept.profiles.iter().filter(|(_, kept)| {
            let is_applied =
                |it: &Version| kept.applied.as_ref().is_some_and(|one| one.is_same_content(it));
            let open = |it: &Version| !is_applied(it) && !kept.refuses(it);
            kept.retrieved.as_ref().is_some_and(open)
        });
        profiles.flat_map(|(name, _)| self.services_of(name)).collect()
    }

    /// Asks those that are due. `false`: none is.
    pub(super) fn begin_refresh(&mut self, step: &mut RolloutStep) -> bool {
        let now = step.now.mono;
        let due: VecDeque<Name> =
            self.askable().filter(|(_, at)| *at <= now).map(|(name, _)| name.clone()).collect();
        if due.is_empty() {
            return false;
        }
        self.go_round(step, Round::new(RoundPurpose::Refresh, due));
        true
    }

    /// When the next profile is due, of those that may be asked.
    pub(super) fn next_question(&self) -> Option<Mono> {
        // One that waits for the fleet goes on when that serves something.
        if !self.kept.booted && self.own_failure().is_none() && self.boot.is_none() {
            return Some(Mono(0));
        }
        self.askable().map(|(_, at)| at).min()
    }

    /// The profiles that may be asked, each with when: while one is pending, nobody else.
    fn askable(&self) -> impl Iterator<Item = (&Name, Mono)> {
        let pending = self.own_failure().and_then(|it| it.profile.as_ref());
        let may = move |name: &Name| pending.is_none_or(|pending| pending == name);
        let names = self.plan.profiles.iter().map(|profile| &profile.name);
        let with_time = |name| self.asked_at(name).map(|at| (name, at));
        names.filter(move |name| may(name)).filter_map(with_time)
    }

    /// `None`: the fleet has nothing for it.
    fn asked_at(&self, profile: &Name) -> Option<Mono> {
        if self.is_fed(profile) {
            return self.fed_at(profile);
        }
        Some(
            self.sources.get(profile).map_or(Mono(0), |source| {
                if source.noticed { source.earliest } else { source.next }
            }),
        )
    }

    /// Asks the next profile of a round, or ends it.
    pub(super) fn go_round(&mut self, step: &mut RolloutStep, mut round: Round) {
        self.stage = RolloutStage::Idle;
        if self.ending {
            return;
        }
        let Some(profile) = round.rest.pop_front() else { return self.end_round(step, round) };
        if self.is_fed(&profile) {
            return self.take_from_fleet(step, &profile, round);
        }
        let fresh = round.purpose != RoundPurpose::Refresh || !self.is_settled(&profile);
        let fresh = fresh || round.asked;
        // What it notices while it is asked may be news to the answer.
        if let Some(source) = self.sources.get_mut(&profile) {
            source.noticed = false;
        }
        let name = profile.clone();
        let op = self.ask(step, |op| RolloutCommand::Load { op, profile: name, fresh });
        self.stage = RolloutStage::Loading { op, profile, round };
    }

    /// What the source has served last needs nothing more: it is applied, or not wanted.
    fn is_settled(&self, profile: &Name) -> bool {
        let served = self.sources.get(profile).and_then(|source| source.served.as_ref());
        let kept = self.kept.profiles.get(profile);
        let is_lost = self.lost.has_any(profile);
        !is_lost
            && served.zip(kept).is_some_and(|(served, kept)| {
                kept.applied.iter().chain(kept.all_refused()).any(|it| it.is_same_content(served))
            })
    }

    pub(super) fn loaded(
        &mut self,
        step: &mut RolloutStep,
        op: super::Op,
        profile: &Name,
        outcome: LoadOutcome,
        not_before: Option<Duration>,
    ) {
        let RolloutStage::Loading { op: mine, round, .. } = &self.stage else { return };
        if *mine != op {
            return;
        }
        let round = round.clone();
        self.stage = RolloutStage::Idle;
        // One that comes from the fleet by now is taken from there.
        if !self.note_answer(step, profile, &outcome, not_before) || self.is_fed(profile) {
            return self.go_round(step, round);
        }
        match outcome {
            LoadOutcome::Unchanged => self.unchanged(step, profile, round),
            LoadOutcome::Served { version, content } => {
                if self.is_wanted(profile, &version, round.asked) {
                    self.kept_profile(profile).refuse_nothing();
                    let (name, stored) = (profile.clone(), version.clone());
                    let op = self.ask(step, |op| RolloutCommand::Store {
                        op,
                        profile: name,
                        version: stored,
                        content,
                    });
                    let profile = profile.clone();
                    self.stage = RolloutStage::Storing { op, profile, version, round };
                } else {
                    self.served_known(step, profile, version, round);
                }
            }
            LoadOutcome::Failed(trouble) => self.not_loaded(step, profile, trouble, round),
        }
    }

    /// What is known of a source once it has answered. `false`: there is no such source any more.
    pub(super) fn note_answer(
        &mut self,
        step: &RolloutStep,
        profile: &Name,
        outcome: &LoadOutcome,
        not_before: Option<Duration>,
    ) -> bool {
        let interval = self.plan.refresh_interval;
        let Some(source) = self.sources.get_mut(profile) else { return false };
        let now = step.now.mono;
        source.earliest = now.after(not_before.unwrap_or_default());
        source.next = now.after(interval).max(source.earliest);
        match outcome {
            LoadOutcome::Unchanged => {
                (source.trouble, source.answered_at) = (None, Some(step.now.wall))
            }
            LoadOutcome::Served { version, .. } => {
                (source.trouble, source.answered_at) = (None, Some(step.now.wall));
                source.served = Some(version.clone());
            }
            LoadOutcome::Failed(trouble) => source.trouble = Some(trouble.clone()),
        }
        true
    }

    /// It is neither the applied version nor one that has failed; or its content is gone.
    pub(super) fn is_wanted(&self, profile: &Name, version: &Version, asked: bool) -> bool {
        self.kept.profiles.get(profile).is_none_or(|kept| {
            let is =
                |it: &Option<Version>| it.as_ref().is_some_and(|it| it.is_same_content(version));
            match is(&kept.applied) {
                true => self.lost.has(profile, version),
                false => asked || !kept.refuses(version),
            }
        })
    }

    /// The source has served what is applied, perhaps under another label, or what has failed.
    pub(super) fn served_known(
        &mut self,
        step: &mut RolloutStep,
        profile: &Name,
        version: Version,
        mut round: Round,
    ) {
        let kept = self.kept_profile(profile);
        let is_applied = kept.applied.as_ref().is_some_and(|it| it.is_same_content(&version));
        let by_hand = kept.rolled_back.is_some() && kept.refuses(&version);
        if let Some(applied) = kept.applied.clone().filter(|_| by_hand && !is_applied) {
            // Nothing has failed since somebody wanted that back, and it stays.
            match round.purpose {
                RoundPurpose::Boot | RoundPurpose::Plan => {
                    round.got.insert(profile.clone(), applied);
                }
                RoundPurpose::Refresh => {}
            }
            return self.go_round(step, round);
        }
        if !is_applied {
            let why = format!("version {version} of profile '{profile}' has failed before");
            return self.missed(step, profile, Some(version), Trouble(why), round);
        }
        (kept.applied, kept.retrieved) = (Some(version.clone()), Some(version.clone()));
        kept.refuse_nothing();
        let is_adrift = self.end_pending_of(profile);
        match round.purpose {
            RoundPurpose::Boot | RoundPurpose::Plan => {
                round.got.insert(profile.clone(), version);
                self.go_round(step, round);
            }
            RoundPurpose::Refresh if is_adrift => {
                round.forced = self.services_of(profile);
                let versions = BTreeMap::from([(profile.clone(), version)]);
                self.begin_update(step, UpdateCause::Profile(profile.clone()), versions, round);
            }
            RoundPurpose::Refresh => self.go_round(step, round),
        }
    }

    fn unchanged(&mut self, step: &mut RolloutStep, profile: &Name, round: Round) {
        match round.purpose {
            RoundPurpose::Boot | RoundPurpose::Plan => {
                let why = Trouble("its source has served nothing".to_owned());
                self.missed(step, profile, None, why, round);
            }
            RoundPurpose::Refresh => {
                let serves = self.sources.get(profile).and_then(|source| source.served.clone());
                let applied = serves.filter(|version| {
                    self.applied(profile).is_some_and(|it| it.is_same_content(version))
                });
                // What has failed is something else, which somebody wanted back by hand.
                if let Some(version) = applied.filter(|_| self.own_failure().is_some()) {
                    return self.served_known(step, profile, version, round);
                }
                // It could not be loaded, and now it can be.
                if self.own_failure().is_some_and(|it| it.version.is_none()) {
                    self.end_pending_of(profile);
                }
                self.go_round(step, round);
            }
        }
    }

    fn not_loaded(
        &mut self,
        step: &mut RolloutStep,
        profile: &Name,
        trouble: Trouble,
        round: Round,
    ) {
        let why = Trouble(format!("profile '{profile}' cannot be loaded: {trouble}"));
        self.missed(step, profile, None, why, round);
    }

    /// A profile cannot be had, or only a version that has failed.
    fn missed(
        &mut self,
        step: &mut RolloutStep,
        profile: &Name,
        version: Option<Version>,
        trouble: Trouble,
        mut round: Round,
    ) {
        let missed = MissedProfile { profile: profile.clone(), version, trouble };
        match round.purpose {
            RoundPurpose::Boot | RoundPurpose::Plan => {
                if missed.version.is_none() {
                    round.rest.clear();
                }
                round.missed.get_or_insert(missed);
                self.go_round(step, round);
            }
            RoundPurpose::Refresh => {
                // It still cannot be had, perhaps for another reason than before.
                let is_it =
                    |it: &KeptFailure| it.version.is_none() && it.profile.as_ref() == Some(profile);
                let pends = self.own_failure().is_none_or(is_it);
                // A version that was rolled back by hand is not wanted: nothing is wrong.
                if pends && missed.version.is_none() {
                    return self.pend(step, missed);
                }
                self.go_round(step, round);
            }
        }
    }

    pub(super) fn stored(
        &mut self,
        step: &mut RolloutStep,
        op: super::Op,
        outcome: Result<(), Trouble>,
    ) {
        let RolloutStage::Storing { op: mine, profile, version, round } = &self.stage else {
            return;
        };
        if *mine != op {
            return;
        }
        let (profile, version, round) = (profile.clone(), version.clone(), round.clone());
        self.stage = RolloutStage::Idle;
        if let Err(trouble) = outcome {
            let why = Trouble(format!(
                "version {version} of profile '{profile}' cannot be kept: {trouble}"
            ));
            return self.missed(step, &profile, None, why, round);
        }
        self.lost.remove(&profile, &version);
        self.retrieved(step, profile, version, round);
    }

    /// The content of a version that is wanted is on the disk.
    pub(super) fn retrieved(
        &mut self,
        step: &mut RolloutStep,
        profile: Name,
        version: Version,
        mut round: Round,
    ) {
        self.kept_profile(&profile).retrieved = Some(version.clone());
        match round.purpose {
            RoundPurpose::Boot | RoundPurpose::Plan => {
                round.got.insert(profile, version);
                self.go_round(step, round);
            }
            RoundPurpose::Refresh => {
                let versions = BTreeMap::from([(profile.clone(), version)]);
                self.begin_update(step, UpdateCause::Profile(profile), versions, round);
            }
        }
    }

    /// Every profile was asked.
    fn end_round(&mut self, step: &mut RolloutStep, mut round: Round) {
        let cause = match round.purpose {
            RoundPurpose::Boot => UpdateCause::Boot,
            RoundPurpose::Plan => UpdateCause::Plan,
            RoundPurpose::Refresh => return,
        };
        let record = self.kept.update.as_ref();
        let fallback = |name: &Name| record.and_then(|it| it.versions.get(name));
        let lacks = |name: &Name| {
            let mut known = self.applied(name).into_iter().chain(fallback(name));
            !round.got.contains_key(name) && !known.any(|it| !self.lost.has(name, it))
        };
        if self.plan.profiles.iter().any(|profile| lacks(&profile.name)) {
            if let Some(missed) = round.missed.take() {
                self.end_plan(Err(missed.trouble.clone()));
                self.pend(step, missed);
            }
            return self.wait_with(round);
        }
        let mut versions = record.map(|it| it.versions.clone()).unwrap_or_default();
        versions.extend(std::mem::take(&mut round.got));
        let cause = record.map_or(cause, |record| record.cause.clone());
        self.begin_update(step, cause, versions, round);
    }

    pub(super) fn services_of(&self, profile: &Name) -> BTreeSet<Name> {
        let uses = |template: &Name| {
            self.template(template).is_some_and(|it| it.profiles.contains(profile))
        };
        let services = self.plan.services.iter();
        services.filter(|it| it.templates.iter().any(uses)).map(|it| it.name.clone()).collect()
    }
}
