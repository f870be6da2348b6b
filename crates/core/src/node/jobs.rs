//! The jobs of a node: those of the plan, in its order, and behind them those that are leaving.
//!
//! A job that a new plan no longer has is a slot beside the plan until its process is gone, with
//! what the plan of before said about it. So the plan stays what was written, and the next agent
//! still knows the job.

use super::wiring::triggers;
use crate::{
    job::Job,
    name::Name,
    plan::{Awaited, Condition, JobPlan, Plan, SourceRef},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::{Index, IndexMut},
};

/// A job of the plan in force, or one that is leaving. Worth nothing once another plan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct JobId(usize);

/// A job that is gone from the plan, while its process is not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Leaving {
    plan: JobPlan,
    /// Jobs of the plan that run for its end, because the plan of before wanted it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hooks: Vec<(Name, Awaited)>,
}

#[derive(Debug, Clone)]
pub(super) struct Jobs {
    plan: Plan,
    leaving: Vec<Leaving>,
    /// Of the plan's jobs, then of those that are leaving.
    states: Vec<Job>,
    ids: BTreeMap<Name, JobId>,
}

/// A value for each job.
#[derive(Debug, Clone)]
pub(super) struct PerJob<T>(Vec<T>);

impl Leaving {
    pub(crate) fn new(plan: JobPlan) -> Leaving {
        Leaving { plan, hooks: Vec::new() }
    }

    pub(crate) fn name(&self) -> &Name {
        &self.plan.name
    }

    /// With those of its hooks that are still hooks in the new plan.
    fn hooked(mut self, before: &Plan, new: &Plan) -> Leaving {
        let source = SourceRef::Job(self.plan.name.clone());
        for job in &new.jobs {
            let before = before.job(job.name.as_str()).map_or(&[][..], triggers);
            let ends = before.iter().filter(|it| it.source == source && it.event.ends());
            self.hooks.extend(ends.map(|it| (job.name.clone(), it.event)));
        }
        self.still_hooked(new)
    }

    fn still_hooked(mut self, new: &Plan) -> Leaving {
        let hears = |job: &JobPlan, event| triggers(job).iter().any(|it| it.event == event);
        self.hooks
            .retain(|(name, event)| new.job(name.as_str()).is_some_and(|it| hears(it, *event)));
        self
    }
}

impl Jobs {
    pub(super) fn new(
        plan: Plan,
        leaving: Vec<Leaving>,
        mut state: impl FnMut(&JobPlan) -> Job,
    ) -> Jobs {
        let plans = || plan.jobs.iter().chain(leaving.iter().map(|it| &it.plan));
        let states = plans().map(&mut state).collect();
        let ids = plans().enumerate().map(|(at, it)| (it.name.clone(), JobId(at))).collect();
        Jobs { plan, leaving, states, ids }
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(super) fn id(&self, name: &str) -> Option<JobId> {
        self.ids.get(name).copied()
    }

    /// In the order of the plan; those that are leaving follow.
    pub(super) fn ids(&self) -> impl Iterator<Item = JobId> + use<> {
        (0..self.states.len()).map(JobId)
    }

    pub(super) fn len(&self) -> usize {
        self.states.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (JobId, &JobPlan, &Job)> {
        self.ids().map(|id| (id, self.plan_of(id), &self[id]))
    }

    /// What the plan says about the job, or said before it left.
    pub(super) fn plan_of(&self, id: JobId) -> &JobPlan {
        slot_plan(&self.plan, &self.leaving, id)
    }

    /// It is gone from the plan, and from here once its process is gone.
    pub(super) fn is_leaving(&self, id: JobId) -> bool {
        id.0 >= self.plan.jobs.len()
    }

    pub(super) fn leaving(&self) -> &[Leaving] {
        &self.leaving
    }

    /// Ends that a job of the plan runs for because the plan of before wanted it.
    pub(super) fn inherited_hooks(&self) -> impl Iterator<Item = (JobId, Condition)> {
        self.leaving.iter().flat_map(|source| {
            source.hooks.iter().filter_map(|(hook, event)| {
                let source = SourceRef::Job(source.plan.name.clone());
                Some((self.id(hook.as_str())?, Condition { source, event: *event }))
            })
        })
    }

    pub(super) fn name(&self, id: JobId) -> &Name {
        &self.plan_of(id).name
    }

    pub(super) fn both(&self, id: JobId) -> (&JobPlan, &Job) {
        (self.plan_of(id), &self[id])
    }

    pub(super) fn both_mut(&mut self, id: JobId) -> (&JobPlan, &mut Job) {
        (slot_plan(&self.plan, &self.leaving, id), &mut self.states[id.0])
    }

    /// Another plan is in force; what it does not have is leaving. Gives back what was said about
    /// each job before.
    pub(super) fn set_plan(
        &mut self,
        new: Plan,
        mut fresh: impl FnMut(&JobPlan) -> Job,
    ) -> BTreeMap<Name, JobPlan> {
        let mut states = self.take_states();
        let planned: BTreeSet<&Name> = new.jobs.iter().map(|job| &job.name).collect();
        let gone = |plan: &JobPlan| !planned.contains(&plan.name);
        let newly = self.plan.jobs.iter().filter(|plan| gone(plan));
        let newly = newly.map(|plan| Leaving::new(plan.clone()).hooked(&self.plan, &new));
        let still = self.leaving.iter().filter(|it| gone(&it.plan));
        let still = still.map(|it| it.clone().still_hooked(&new));
        let leaving = newly.chain(still).collect();
        let state = |plan: &JobPlan| states.remove(&plan.name).unwrap_or_else(|| fresh(plan));
        let Jobs { plan, leaving, .. } = std::mem::replace(self, Jobs::new(new, leaving, state));
        let before = plan.jobs.into_iter().chain(leaving.into_iter().map(|it| it.plan));
        before.map(|plan| (plan.name.clone(), plan)).collect()
    }

    /// Gives up those that have left.
    pub(super) fn forget(&mut self, gone: &[Name]) {
        let stays = |plan: &JobPlan| !gone.contains(&plan.name);
        let planned = self.plan.jobs.len();
        let left = self.states.drain(planned..).zip(std::mem::take(&mut self.leaving));
        let (states, leaving): (Vec<Job>, Vec<Leaving>) =
            left.filter(|(_, slot)| stays(&slot.plan)).unzip();
        self.states.extend(states);
        self.leaving = leaving;
        self.ids = self.ids().map(|id| (self.name(id).clone(), id)).collect();
    }

    fn take_states(&mut self) -> BTreeMap<Name, Job> {
        let names: Vec<Name> = self.ids().map(|id| self.name(id).clone()).collect();
        names.into_iter().zip(std::mem::take(&mut self.states)).collect()
    }

    pub(super) fn each<T>(&self, value: impl FnMut((JobId, &JobPlan, &Job)) -> T) -> PerJob<T> {
        PerJob(self.iter().map(value).collect())
    }
}

impl Index<JobId> for Jobs {
    type Output = Job;

    fn index(&self, id: JobId) -> &Job {
        &self.states[id.0]
    }
}

impl<T> Index<JobId> for PerJob<T> {
    type Output = T;

    fn index(&self, id: JobId) -> &T {
        &self.0[id.0]
    }
}

impl<T> IndexMut<JobId> for PerJob<T> {
    fn index_mut(&mut self, id: JobId) -> &mut T {
        &mut self.0[id.0]
    }
}

fn slot_plan<'a>(plan: &'a Plan, leaving: &'a [Leaving], id: JobId) -> &'a JobPlan {
    match plan.jobs.get(id.0) {
        Some(planned) => planned,
        None => &leaving[id.0 - plan.jobs.len()].plan,
    }
}
