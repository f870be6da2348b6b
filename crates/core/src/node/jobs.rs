//! The jobs of a node: those of the plan, in its order, and behind them those that are leaving.
//!
//! A job that a new plan no longer has is a slot beside the plan until its process is gone, with
//! what the plan of before said about it. So the plan stays what was written, and the next agent
//! still knows the job.
//!
//! A copy of them shares all that neither changes: one is made for every preview, and one before
//! every request that can still be refused.

use super::{census::Census, wiring::triggers};
use crate::{
    job::Job,
    name::Name,
    plan::{Awaited, Condition, JobPlan, Plan, SourceRef},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::{Index, IndexMut},
    sync::Arc,
};

/// A job of the plan in force, or one that is leaving. Worth nothing once another plan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct JobId(usize);

/// A job that is gone from the plan, while its process is not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Leaving {
    plan: Arc<JobPlan>,
    /// Jobs of the plan that run for its end, because the plan of before wanted it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hooks: Vec<(Name, Awaited)>,
}

#[derive(Debug, Clone)]
pub(super) struct Jobs {
    plan: Plan,
    leaving: Vec<Leaving>,
    /// Of the plan's jobs, then of those that are leaving.
    states: Vec<Arc<Job>>,
    ids: Arc<BTreeMap<Name, JobId>>,
    /// Those that are main.
    mains: Vec<JobId>,
    /// Those whose end may be the end of the node.
    enders: Vec<JobId>,
    census: Census,
}

/// A value for each job.
#[derive(Debug, Clone)]
pub(super) struct PerJob<T>(Vec<T>);

impl Leaving {
    pub(crate) fn new(plan: Arc<JobPlan>) -> Leaving {
        Leaving { plan, hooks: Vec::new() }
    }

    pub(crate) fn name(&self) -> &Name {
        &self.plan.name
    }

    /// With those of its hooks that are still hooks in the new plan.
    fn still_hooked(mut self, new: &BTreeMap<&Name, &JobPlan>) -> Leaving {
        let hears = |job: &JobPlan, event| triggers(job).iter().any(|it| it.event == event);
        self.hooks.retain(|(name, event)| new.get(name).is_some_and(|it| hears(it, *event)));
        self
    }
}

impl Jobs {
    pub(super) fn new(
        plan: Plan,
        leaving: Vec<Leaving>,
        mut state: impl FnMut(&JobPlan) -> Arc<Job>,
    ) -> Jobs {
        let plans = || plan.jobs.iter().chain(leaving.iter().map(|it| &it.plan));
        let states: Vec<Arc<Job>> = plans().map(|plan| state(plan)).collect();
        let ids = plans().enumerate().map(|(at, it)| (it.name.clone(), JobId(at)));
        let ids = Arc::new(ids.collect());
        let mains =
            plans().enumerate().filter(|(_, it)| it.main).map(|(at, _)| JobId(at)).collect();
        let enders = enders(&plan);
        let census = count(&states);
        Jobs { plan, leaving, states, ids, mains, enders, census }
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

    /// A job as it is now, to be kept.
    pub(super) fn shared(&self, id: JobId) -> Arc<Job> {
        self.states[id.0].clone()
    }

    /// To change a job: [`Jobs::changed`] has to follow.
    pub(super) fn both_mut(&mut self, id: JobId) -> (&JobPlan, &mut Job) {
        (slot_plan(&self.plan, &self.leaving, id), Arc::make_mut(&mut self.states[id.0]))
    }

    /// A job is not as it was before.
    pub(super) fn changed(&mut self, id: JobId, before: &Job) {
        self.census.changed(id, before, &self.states[id.0]);
    }

    /// The jobs that are main.
    pub(super) fn mains(&self) -> impl Iterator<Item = JobId> {
        self.mains.iter().copied()
    }

    /// The jobs of the plan whose end may be the end of the node.
    pub(super) fn enders(&self) -> impl Iterator<Item = JobId> {
        self.enders.iter().copied()
    }

    pub(super) fn census(&self) -> &Census {
        &self.census
    }

    /// Those that are gone from the plan, and not from here.
    pub(super) fn leaving_ids(&self) -> impl Iterator<Item = JobId> + use<> {
        (self.plan.jobs.len()..self.states.len()).map(JobId)
    }

    /// Another plan is in force; what it does not have is leaving. Gives back what was said about
    /// each job before.
    pub(super) fn set_plan(
        &mut self,
        new: Plan,
        mut fresh: impl FnMut(&JobPlan) -> Job,
    ) -> BTreeMap<Name, Arc<JobPlan>> {
        let mut states = self.take_states();
        let planned: BTreeMap<&Name, &JobPlan> =
            new.jobs.iter().map(|job| (&job.name, job.as_ref())).collect();
        let gone = |plan: &JobPlan| !planned.contains_key(&plan.name);
        let mut hooks = self.hooks_of_ends(&new);
        let newly = self.plan.jobs.iter().filter(|plan| gone(plan)).map(|plan| Leaving {
            plan: plan.clone(),
            hooks: hooks.remove(&plan.name).unwrap_or_default(),
        });
        let still = self.leaving.iter().filter(|it| gone(&it.plan)).cloned();
        let leaving = newly.chain(still).map(|it| it.still_hooked(&planned)).collect();
        let state =
            |plan: &JobPlan| states.remove(&plan.name).unwrap_or_else(|| Arc::new(fresh(plan)));
        let Jobs { plan, leaving, .. } = std::mem::replace(self, Jobs::new(new, leaving, state));
        let before = plan.jobs.into_iter().chain(leaving.into_iter().map(|it| it.plan));
        before.map(|plan| (plan.name.clone(), plan)).collect()
    }

    /// The jobs of a new plan that run for the ends of others by the plan of before, by source.
    fn hooks_of_ends(&self, new: &Plan) -> BTreeMap<Name, Vec<(Name, Awaited)>> {
        let mut hooks: BTreeMap<Name, Vec<(Name, Awaited)>> = BTreeMap::new();
        for job in &new.jobs {
            let known = self.id(job.name.as_str()).filter(|id| !self.is_leaving(*id));
            let before = known.map_or(&[][..], |id| triggers(self.plan_of(id)));
            for condition in before.iter().filter(|it| it.event.ends()) {
                if let SourceRef::Job(source) = &condition.source {
                    let hook = (job.name.clone(), condition.event);
                    hooks.entry(source.clone()).or_default().push(hook);
                }
            }
        }
        hooks
    }

    /// Gives up those that have left.
    pub(super) fn forget(&mut self, gone: &[Name]) {
        let gone: BTreeSet<&Name> = gone.iter().collect();
        let stays = |plan: &JobPlan| !gone.contains(&plan.name);
        let planned = self.plan.jobs.len();
        let left = self.states.drain(planned..).zip(std::mem::take(&mut self.leaving));
        let (states, leaving): (Vec<Arc<Job>>, Vec<Leaving>) =
            left.filter(|(_, slot)| stays(&slot.plan)).unzip();
        self.states.extend(states);
        self.leaving = leaving;
        self.census = count(&self.states);
        self.mains = self.ids().filter(|id| self.plan_of(*id).main).collect();
        self.ids = Arc::new(self.ids().map(|id| (self.name(id).clone(), id)).collect());
    }

    /// By name, for a plan that has its own numbers.
    fn take_states(&mut self) -> BTreeMap<Name, Arc<Job>> {
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

fn enders(plan: &Plan) -> Vec<JobId> {
    let ends =
        |job: &JobPlan| [true, false].iter().any(|well| plan.node.exit.ends_with(job, *well));
    plan.jobs.iter().enumerate().filter(|(_, it)| ends(it)).map(|(at, _)| JobId(at)).collect()
}

fn count(states: &[Arc<Job>]) -> Census {
    Census::of(states.iter().enumerate().map(|(at, job)| (JobId(at), job.as_ref())))
}

fn slot_plan<'a>(plan: &'a Plan, leaving: &'a [Leaving], id: JobId) -> &'a JobPlan {
    match plan.jobs.get(id.0) {
        Some(planned) => planned,
        None => &leaving[id.0 - plan.jobs.len()].plan,
    }
}
