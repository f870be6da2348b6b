//! What people ask of a rollout.

use super::{
    KeptFailure, KeptProfile, Rollout, RolloutRequest, RolloutStep, UpdateCause, Version,
    round::{Round, RoundPurpose},
};
use crate::name::Name;
use std::collections::{BTreeMap, VecDeque};

/// Why a request is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RolloutRefusal {
    #[error("there is no profile '{0}'")]
    UnknownProfile(Name),
    #[error("the rollout is paused: resume it first")]
    Paused,
    #[error("no rollout begins during maintenance")]
    Maintenance,
    #[error("the node is stopping")]
    Ending,
    #[error("profile '{0}' is pending, and comes first")]
    Pending(Name),
    #[error("profile '{0}' has no earlier version")]
    NoEarlier(Name),
    #[error("version {1} is not in the history of profile '{0}'")]
    NotInHistory(Name, Version),
    #[error("profile '{0}' has version {1} already")]
    IsApplied(Name, Version),
    #[error("the first update of this run is still to come")]
    NotBooted,
    #[error("node '{1}' asks the source of profile '{0}' for the fleet: ask for it there")]
    AskedElsewhere(Name, Name),
    #[error("no node asks the source of profile '{0}': the fleet has no master yet")]
    NobodyAsks(Name),
    #[error("a version of profile '{0}' is on its way through the fleet, and comes first")]
    InWaves(Name),
    #[error("profile '{0}' goes through the fleet in waves: files are overwritten node by node")]
    ForcedInWaves(Name),
}

impl Rollout {
    pub(super) fn asked(
        &mut self,
        step: &mut RolloutStep,
        request: RolloutRequest,
    ) -> Result<(), RolloutRefusal> {
        match &request {
            RolloutRequest::Pause => {
                self.kept.paused = true;
                return Ok(());
            }
            RolloutRequest::Resume => {
                if std::mem::take(&mut self.kept.paused) {
                    self.grant_time(step.now.mono);
                    self.sources.values_mut().for_each(|source| source.noticed = true);
                }
                return Ok(());
            }
            RolloutRequest::Refresh { profile, .. } => {
                self.may_refresh(profile.as_ref())?;
                self.ask_to_poll(step, profile.as_ref());
            }
            RolloutRequest::Rollback { profile, to, force } => {
                self.may_begin(Some(profile))?;
                let version = self.earlier_version(profile, to.as_ref());
                if self.is_fed(profile) {
                    self.may_roll_back_fleet(profile, *force)?;
                    self.offer_by_hand(step, profile, version?);
                    return Ok(());
                }
                version?;
            }
        }
        self.requests.push_back(request);
        Ok(())
    }

    fn may_begin(&self, profile: Option<&Name>) -> Result<(), RolloutRefusal> {
        match profile {
            Some(name) if self.profile(name).is_none() => {
                Err(RolloutRefusal::UnknownProfile(name.clone()))
            }
            _ if self.ending => Err(RolloutRefusal::Ending),
            _ if self.kept.paused => Err(RolloutRefusal::Paused),
            _ if self.maintenance => Err(RolloutRefusal::Maintenance),
            Some(_) | None => Ok(()),
        }
    }

    fn may_refresh(&self, profile: Option<&Name>) -> Result<(), RolloutRefusal> {
        self.may_begin(profile)?;
        let pending = self.own_failure().and_then(|it| it.profile.as_ref());
        match (profile, pending) {
            (Some(asked), Some(pending)) if asked != pending => {
                Err(RolloutRefusal::Pending(pending.clone()))
            }
            (Some(_) | None, Some(_) | None) => self.may_ask_source(profile),
        }
    }

    /// Of profiles that come from the fleet one node asks the source; but what has failed here can
    /// be tried again here.
    fn may_ask_source(&self, profile: Option<&Name>) -> Result<(), RolloutRefusal> {
        let asked = |name: &&Name| profile.is_none_or(|it| it == *name);
        let names = self.plan.profiles.iter().map(|it| &it.name).filter(asked);
        let fed: Vec<&Name> = names.filter(|name| self.is_fed(name)).collect();
        let failed = |name: &Name| {
            let refused = self.kept.profiles.get(name);
            let refused = refused.is_some_and(|it| it.all_refused().next().is_some());
            refused || self.own_failure().is_some()
        };
        let conducts = |name: &Name| self.feed(name).is_some_and(|feed| feed.conducts);
        if fed.is_empty() || fed.iter().any(|name| failed(name) || conducts(name)) {
            return Ok(());
        }
        let first = fed[0].clone();
        Err(match self.feed(&first).and_then(|feed| feed.conductor.clone()) {
            Some(node) => RolloutRefusal::AskedElsewhere(first, node),
            None => RolloutRefusal::NobodyAsks(first),
        })
    }

    /// Whoever asks the source of a profile takes an earlier version for the fleet, once that has come
    /// to rest and this node has what it serves.
    fn may_roll_back_fleet(&self, profile: &Name, force: bool) -> Result<(), RolloutRefusal> {
        let none = || RolloutRefusal::NobodyAsks(profile.clone());
        let feed = self.feed(profile).ok_or_else(none)?;
        let serves = feed.serves.as_ref().zip(self.applied(profile));
        match &feed.conductor {
            None => Err(none()),
            Some(node) if !feed.conducts => {
                Err(RolloutRefusal::AskedElsewhere(profile.clone(), node.clone()))
            }
            Some(_) if force => Err(RolloutRefusal::ForcedInWaves(profile.clone())),
            Some(_) if self.own_failure().is_some() => {
                let pending = self.own_failure().and_then(|it| it.profile.as_ref());
                Err(RolloutRefusal::Pending(pending.unwrap_or(profile).clone()))
            }
            Some(_)
                if feed.under_way
                    || serves.is_none_or(|(serves, has)| !has.is_same_content(serves)) =>
            {
                Err(RolloutRefusal::InWaves(profile.clone()))
            }
            Some(_) => Ok(()),
        }
    }

    fn earlier_version(
        &self,
        profile: &Name,
        to: Option<&Version>,
    ) -> Result<Version, RolloutRefusal> {
        if !self.kept.booted {
            return Err(RolloutRefusal::NotBooted);
        }
        let none = KeptProfile::default();
        let kept = self.kept.profiles.get(profile).unwrap_or(&none);
        let mut history = kept.history.iter().map(|it| &it.version);
        let found = match to {
            None => history.next().ok_or_else(|| RolloutRefusal::NoEarlier(profile.clone()))?,
            Some(to) if kept.applied.as_ref().is_some_and(|it| it.is_same_content(to)) => {
                return Err(RolloutRefusal::IsApplied(profile.clone(), to.clone()));
            }
            Some(to) => history
                .find(|it| it.is_same_content(to))
                .ok_or_else(|| RolloutRefusal::NotInHistory(profile.clone(), to.clone()))?,
        };
        Ok(found.clone())
    }

    /// Begins what was asked for, now that nothing is under way.
    pub(super) fn begin_request(&mut self, step: &mut RolloutStep, request: RolloutRequest) {
        match request {
            RolloutRequest::Refresh { profile, force } => self.refresh(step, profile, force),
            RolloutRequest::Rollback { profile, to, force } => {
                // What has changed since it was asked for is refused in silence: `status` shows it.
                let Ok(version) = self.earlier_version(&profile, to.as_ref()) else { return };
                let round = Round { force, ..Round::new(RoundPurpose::Refresh, VecDeque::new()) };
                let versions = BTreeMap::from([(profile.clone(), version)]);
                self.begin_update(step, UpdateCause::Rollback(profile), versions, round);
            }
            RolloutRequest::Pause | RolloutRequest::Resume => {}
        }
    }

    fn refresh(&mut self, step: &mut RolloutStep, profile: Option<Name>, force: bool) {
        let all = self.plan.profiles.iter().map(|it| it.name.clone());
        let names: VecDeque<Name> =
            all.filter(|name| profile.as_ref().is_none_or(|it| it == name)).collect();
        // What is pending is tried again, and pending anew if that fails. A source that is asked for
        // the fleet is another matter than what another profile is refreshed for.
        let is_asked = |it: &KeptFailure| {
            !it.conducted || profile.as_ref().is_none_or(|name| it.profile.as_ref() == Some(name))
        };
        let tried = self.kept.pending.take_if(|it| is_asked(it));
        let was_adrift = tried.is_some_and(|it| it.adrift);
        let all = self.plan.profiles.iter().map(|it| it.name.clone()).collect();
        let mut round = match (self.boot.take(), was_adrift) {
            (_, _) if !self.kept.booted => Round::new(RoundPurpose::Boot, all),
            (None, false) => Round::new(RoundPurpose::Refresh, names),
            (Some(Round { purpose, forced, .. }), false) => {
                Round { forced, ..Round::new(purpose, all) }
            }
            (Some(_) | None, true) => {
                let forced = self.plan.services.iter().map(|it| it.name.clone()).collect();
                Round { forced, ..Round::new(RoundPurpose::Plan, names) }
            }
        };
        (round.asked, round.force) = (true, force);
        self.go_round(step, round);
    }
}
