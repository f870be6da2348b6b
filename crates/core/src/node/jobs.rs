//! The jobs of a node, in the order of the plan, and what the plan says about each.

use crate::{
    job::Job,
    name::Name,
    plan::{JobPlan, Plan},
};
use std::{
    collections::BTreeMap,
    ops::{Index, IndexMut},
};

/// A job of the plan in force. Worth nothing once another plan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct JobId(usize);

#[derive(Debug, Clone)]
pub(super) struct Jobs {
    plan: Plan,
    /// In the order of the plan.
    states: Vec<Job>,
    ids: BTreeMap<Name, JobId>,
}

/// A value for each job.
#[derive(Debug, Clone)]
pub(super) struct PerJob<T>(Vec<T>);

impl Jobs {
    pub(super) fn new(plan: Plan, state: impl FnMut(&JobPlan) -> Job) -> Jobs {
        let states = plan.jobs.iter().map(state).collect();
        let ids = plan.jobs.iter().enumerate();
        let ids = ids.map(|(at, job)| (job.name.clone(), JobId(at))).collect();
        Jobs { plan, states, ids }
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(super) fn id(&self, name: &str) -> Option<JobId> {
        self.ids.get(name).copied()
    }

    /// In the order of the plan.
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
        self.ids().map(|id| (id, &self.plan.jobs[id.0], &self.states[id.0]))
    }

    /// What the plan says about the job.
    pub(super) fn plan_of(&self, id: JobId) -> &JobPlan {
        &self.plan.jobs[id.0]
    }

    pub(super) fn name(&self, id: JobId) -> &Name {
        &self.plan_of(id).name
    }

    pub(super) fn both(&self, id: JobId) -> (&JobPlan, &Job) {
        (&self.plan.jobs[id.0], &self.states[id.0])
    }

    pub(super) fn both_mut(&mut self, id: JobId) -> (&JobPlan, &mut Job) {
        (&self.plan.jobs[id.0], &mut self.states[id.0])
    }

    /// All of them, by name, for whom another plan follows.
    pub(super) fn take_states(&mut self) -> BTreeMap<Name, Job> {
        let names = self.plan.jobs.iter().map(|job| job.name.clone());
        names.zip(std::mem::take(&mut self.states)).collect()
    }

    /// Gives back the plan of before.
    pub(super) fn set_plan(&mut self, plan: Plan, state: impl FnMut(&JobPlan) -> Job) -> Plan {
        std::mem::replace(self, Jobs::new(plan, state)).plan
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
