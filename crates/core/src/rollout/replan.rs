//! Another plan: only what it changes is touched, as one update.

use super::{
    Rollout, RolloutStep, SourceState, Trouble,
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
        if before.cloudwatch != self.plan.cloudwatch {
            self.published = None;
        }
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
        if !changes && self.plan_round.is_none() {
            self.plan_outcome = Some(Ok(()));
        } else if self.kept.booted {
            self.kept.plan_due = true;
            // One that waits for a resume comes to be a part of it.
            let none = || Round::new(RoundPurpose::Plan, VecDeque::new());
            let waiting = self.plan_round.take().or_else(|| self.resumed(step.now.mono));
            let mut round = waiting.unwrap_or_else(none);
            round.forced.extend(forced);
            round.rest.retain(|it| !sources.contains(it) && self.profile(it).is_some());
            round.rest.extend(sources);
            self.plan_round = Some(round);
            if self.is_resting() {
                self.plan_outcome = Some(Ok(()));
            }
        } else {
            self.try_all_again();
        }
    }

    /// Nothing is applied yet: what has failed may have failed of what is another one now.
    fn try_all_again(&mut self) {
        self.kept.profiles.values_mut().for_each(|kept| kept.refused = None);
        self.sources.values_mut().for_each(|source| source.noticed = true);
    }

    /// A new run: what has failed with other templates or services is tried with these.
    pub(super) fn try_with_others(&mut self) {
        let now = recipe(&self.plan);
        for kept in self.kept.profiles.values_mut() {
            if kept.refused_with.take_if(|with| *with != now).is_some() {
                kept.refused = None;
            }
        }
    }

    /// The update that a plan or a boot has led to is over.
    pub(super) fn end_plan(&mut self, outcome: Result<(), Trouble>) {
        if self.next_plan.is_none() && self.plan_round.is_none() {
            self.kept.plan_due = false;
            self.plan_outcome.get_or_insert(outcome);
        }
    }

    /// What the plan in force has led to; `None`: that is not known yet. One that nothing follows
    /// from, or not before somebody resumes it, is well.
    #[must_use]
    pub fn plan_outcome(&self) -> Option<&Result<(), Trouble>> {
        self.plan_outcome.as_ref()
    }
}

/// Tells one set of templates and services from another: FNV-1a of what they are written as.
pub(super) fn recipe(plan: &RolloutPlan) -> u64 {
    let written = serde_json::to_vec(&(&plan.templates, &plan.services)).unwrap_or_default();
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    written.into_iter().fold(0xcbf2_9ce4_8422_2325, mix)
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
