//! Profiles and templates as sources of events: what they have said is made of how they stand, and
//! journaled, so that each thing is said once.
//!
//! ```text
//!              in place: healthy
//!  unknown ─────────────────────► in place ──┐ another version: changed
//!                                  │  ▲ ▲────┘
//!              a way back failed:  │  │
//!                    unhealthy     ▼  │ healthy
//!                                 adrift
//! ```

use super::{FailureFact, RolloutFacts, SourceFact};
use crate::{
    event::{History, Kind, Source, cut},
    name::Name,
    plan::{Awaited, RolloutSource},
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What profiles and templates have said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct RolloutSources {
    profiles: BTreeMap<Name, SourceHistory>,
    templates: BTreeMap<Name, SourceHistory>,
    /// The last failure that was told.
    failure: u64,
    /// Jobs that an update under way concerns.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    told: BTreeSet<Name>,
    /// The one of them that is told now.
    #[serde(skip_serializing_if = "Option::is_none")]
    telling: Option<Name>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
struct SourceHistory {
    is_up: bool,
    /// Of the version that was told.
    mark: String,
    history: History,
}

impl RolloutSources {
    pub(crate) fn is_empty(&self) -> bool {
        *self == RolloutSources::default()
    }

    fn of(&self, source: &RolloutSource) -> Option<&SourceHistory> {
        match source {
            RolloutSource::Profile(name) => self.profiles.get(name),
            RolloutSource::Template(name) => self.templates.get(name),
        }
    }

    pub(crate) fn has_said(&self, source: &RolloutSource, event: Awaited) -> bool {
        self.of(source).is_some_and(|it| it.history.has(event))
    }

    pub(crate) fn is_up(&self, source: &RolloutSource) -> bool {
        self.of(source).is_some_and(|it| it.is_up)
    }

    /// An update under way concerns this job: whether it comes back from its end is not known yet.
    pub(crate) fn tells(&self, job: &Name) -> bool {
        self.told.contains(job)
    }

    /// This job is told of an update now, which it is to finish before it stops.
    pub(crate) fn is_telling(&self, job: &Name) -> bool {
        self.telling.as_ref() == Some(job)
    }

    /// An update under way concerns some job.
    pub(crate) fn tells_any(&self) -> bool {
        !self.told.is_empty()
    }

    /// A job that was told is not any more: its update, or the way back, is over.
    pub(crate) fn releases_any(&self, facts: &RolloutFacts) -> bool {
        !self.told.is_subset(&facts.told)
    }

    /// Takes how they stand, and gives back what that means.
    pub(crate) fn stand(&mut self, facts: &RolloutFacts) -> Vec<(Source, Kind)> {
        let of = |source: RolloutSource| Source::rollout(&source);
        // Whoever waits for a profile finds its files in place.
        let templates = stand(&mut self.templates, &facts.templates).into_iter();
        let templates = templates.map(|(name, kind)| (of(RolloutSource::Template(name)), kind));
        let profiles = stand(&mut self.profiles, &facts.profiles).into_iter();
        let profiles = profiles.map(|(name, kind)| (of(RolloutSource::Profile(name)), kind));
        let failure = facts.failure.as_ref().filter(|it| it.number > self.failure);
        self.failure = failure.map_or(self.failure, |it| it.number);
        self.told.clone_from(&facts.told);
        self.telling.clone_from(&facts.telling);
        templates.chain(profiles).chain(failure.and_then(failed)).collect()
    }

    pub(crate) fn note(&mut self, source: &RolloutSource, event: Awaited) {
        let of = match source {
            RolloutSource::Profile(name) => self.profiles.get_mut(name),
            RolloutSource::Template(name) => self.templates.get_mut(name),
        };
        if let Some(source) = of {
            source.history.note(event);
        }
    }
}

impl SourceHistory {
    /// Takes how it stands, and gives back what that means.
    fn stands(&mut self, fact: &SourceFact) -> Vec<Kind> {
        let mut kinds = Vec::new();
        let known = !self.mark.is_empty();
        let mark = fact.applied.mark();
        if self.mark != mark && fact.in_place {
            self.mark = mark;
            if known {
                let version = Some(fact.applied.version());
                kinds.push(Kind::Changed { instances: None, version });
            }
        }
        if std::mem::replace(&mut self.is_up, fact.in_place) != fact.in_place {
            kinds.push(Kind::of_health(fact.in_place));
        }
        kinds
    }
}

/// What follows from how they stand; those that are gone are forgotten.
fn stand(
    known: &mut BTreeMap<Name, SourceHistory>,
    facts: &BTreeMap<Name, SourceFact>,
) -> Vec<(Name, Kind)> {
    known.retain(|name, _| facts.contains_key(name));
    let mut said = Vec::new();
    for (name, fact) in facts {
        let kinds = known.entry(name.clone()).or_default().stands(fact);
        said.extend(kinds.into_iter().map(|kind| (name.clone(), kind)));
    }
    said
}

fn failed(fact: &FailureFact) -> Option<(Source, Kind)> {
    let source = fact.profile.clone().map(RolloutSource::Profile);
    let source = source.map_or(Source::NODE, |source| Source::rollout(&source));
    let mut failure = fact.failure.clone();
    cut(&mut failure);
    let version = fact.version.as_ref().map(ToString::to_string);
    match (fact.failed, fact.came_back, fact.switched) {
        (true, _, _) => Some((source, Kind::RolloutFailed { failure, version })),
        (false, true, true) => Some((source, Kind::RolledBack { failure, version })),
        (false, true, false) => Some((source, Kind::UpdateFailed { failure, version })),
        // Its source does not answer: nothing has changed.
        (false, false, _) => None,
    }
}
