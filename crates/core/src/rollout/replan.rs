//! Another plan: only what it changes is touched, as one update.

use super::{
    Rollout, RolloutStep, SourceState,
    round::{Round, RoundPurpose},
};
use crate::{
    name::Name,
    plan::{ProfilePlan, RolloutPlan, ServicePlan, TemplatePlan},
};
use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

impl Rollout {
    /// Takes a plan while nothing is under way.
    pub(super) fn replan(&mut self, step: &mut RolloutStep, plan: Arc<RolloutPlan>) {
        let before = std::mem::replace(&mut self.plan, plan);
        self.forget_those_gone();
        let sources = changed_profiles(&before, &self.plan);
        for name in &sources {
            self.sources.insert(name.clone(), SourceState::default());
            if let Some(boot) = &mut self.boot {
                boot.got.remove(name);
            }
        }
        self.retain(step);
        let forced = services_to_tell(&before, &self.plan);
        let templates = changed_templates(&before, &self.plan);
        let changes = !sources.is_empty() || !forced.is_empty() || templates;
        if changes && self.kept.booted && !self.is_resting() {
            let round = Round { forced, ..Round::new(RoundPurpose::Plan, sources) };
            self.go_round(step, round);
        }
    }
}

/// Those that are new or come from elsewhere, in the order of the file.
fn changed_profiles(before: &RolloutPlan, now: &RolloutPlan) -> VecDeque<Name> {
    let is_new = |profile: &&ProfilePlan| !before.profiles.contains(profile);
    now.profiles.iter().filter(is_new).map(|profile| profile.name.clone()).collect()
}

fn changed_templates(before: &RolloutPlan, now: &RolloutPlan) -> bool {
    let is_new = |template: &TemplatePlan| !before.templates.contains(template);
    now.templates.iter().any(is_new)
}

/// Those that are new, or are told of other templates or in another way.
fn services_to_tell(before: &RolloutPlan, now: &RolloutPlan) -> BTreeSet<Name> {
    let is_same = |one: &ServicePlan, other: &ServicePlan| {
        one.name == other.name && one.target == other.target && one.templates == other.templates
    };
    let is_new = |service: &&ServicePlan| !before.services.iter().any(|it| is_same(it, service));
    now.services.iter().filter(is_new).map(|service| service.name.clone()).collect()
}
