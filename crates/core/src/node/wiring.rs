//! Who listens to whom: worked out of the plan once, so that an event reaches only those whom it
//! concerns.
//!
//! A *hook* is a job that waits for another one's `stopping` or `stopped`: it runs on behalf of
//! that job's end. What a job *needs* is what its latches and its `while` name, apart from ends it
//! is a hook of: it stops before they do.

use super::jobs::{JobId, Jobs};
use crate::{
    event::During,
    name::Name,
    plan::{Condition, JobPlan, RolloutSource, SourceRef, Trigger},
};
use std::collections::BTreeMap;

#[derive(Debug, Clone)]
pub(super) struct Wiring {
    to_node: Vec<JobId>,
    to_watches: BTreeMap<Name, Vec<JobId>>,
    to_rollout: BTreeMap<RolloutSource, Vec<JobId>>,
    /// Of those jobs that have any.
    wires: BTreeMap<JobId, Wires>,
}

#[derive(Debug, Clone, Default)]
struct Wires {
    listeners: Vec<JobId>,
    /// Who runs before its stop signal.
    stopping_hooks: Vec<JobId>,
    needs: Vec<JobId>,
    /// Whose end it runs for.
    hook_of: Vec<JobId>,
    /// Who runs for its end.
    hooks: Vec<JobId>,
    /// Those of them who run after it.
    stopped_hooks: Vec<JobId>,
    /// Ends of jobs that are leaving, which its own plan no longer names.
    inherited: Vec<Condition>,
}

impl Wiring {
    pub(super) fn new(jobs: &Jobs) -> Wiring {
        let mut wiring = Wiring {
            to_node: Vec::new(),
            to_watches: BTreeMap::new(),
            to_rollout: BTreeMap::new(),
            wires: BTreeMap::new(),
        };
        for (id, plan, _) in jobs.iter() {
            wiring.add(jobs, id, plan);
        }
        for (id, condition) in jobs.inherited_hooks() {
            wiring.trigger(jobs, id, &condition);
            wiring.wires_of(id).inherited.push(condition);
        }
        wiring
    }

    fn add(&mut self, jobs: &Jobs, id: JobId, job: &JobPlan) {
        for condition in &job.when.once {
            self.listen(jobs, id, &condition.source);
            self.depend(jobs, id, condition);
        }
        for condition in triggers(job) {
            self.trigger(jobs, id, condition);
        }
        if let Some(follows) = &job.follows {
            self.listen(jobs, id, &follows.source);
            self.need(jobs, id, &follows.source);
        }
    }

    fn trigger(&mut self, jobs: &Jobs, id: JobId, condition: &Condition) {
        self.listen(jobs, id, &condition.source);
        self.hook(jobs, id, condition);
    }

    fn listen(&mut self, jobs: &Jobs, id: JobId, source: &SourceRef) {
        match source {
            SourceRef::Node => add(&mut self.to_node, id),
            SourceRef::Job(name) => {
                if let Some(source) = jobs.id(name.as_str()) {
                    add(&mut self.wires_of(source).listeners, id);
                }
            }
            SourceRef::Watch(name) => add(self.to_watches.entry(name.clone()).or_default(), id),
            SourceRef::Rollout(source) => {
                add(self.to_rollout.entry(source.clone()).or_default(), id);
            }
        }
    }

    fn depend(&mut self, jobs: &Jobs, id: JobId, condition: &Condition) {
        if condition.event.ends() {
            self.hook(jobs, id, condition);
        } else {
            self.need(jobs, id, &condition.source);
        }
    }

    fn hook(&mut self, jobs: &Jobs, id: JobId, condition: &Condition) {
        let SourceRef::Job(name) = &condition.source else { return };
        let Some(source) = jobs.id(name.as_str()) else { return };
        // A job cannot run before its own stop signal.
        if condition.event.during() == Some(During::Stop) && source != id {
            add(&mut self.wires_of(source).stopping_hooks, id);
        }
        if condition.event.ends() {
            add(&mut self.wires_of(id).hook_of, source);
            add(&mut self.wires_of(source).hooks, id);
        }
        if condition.event.during() == Some(During::Gone) && source != id {
            add(&mut self.wires_of(source).stopped_hooks, id);
        }
    }

    fn need(&mut self, jobs: &Jobs, id: JobId, source: &SourceRef) {
        let SourceRef::Job(name) = source else { return };
        let Some(source) = jobs.id(name.as_str()) else { return };
        if source != id {
            add(&mut self.wires_of(id).needs, source);
        }
    }

    fn wires_of(&mut self, id: JobId) -> &mut Wires {
        self.wires.entry(id).or_default()
    }

    fn ids(&self, id: JobId, which: impl Fn(&Wires) -> &Vec<JobId>) -> &[JobId] {
        self.wires.get(&id).map_or(&[], |wires| which(wires).as_slice())
    }

    pub(super) fn listeners_of_node(&self) -> &[JobId] {
        &self.to_node
    }

    pub(super) fn listeners_of_watch(&self, name: &str) -> &[JobId] {
        self.to_watches.get(name).map_or(&[], Vec::as_slice)
    }

    /// The jobs that somebody listens to.
    pub(super) fn sources(&self) -> impl Iterator<Item = JobId> {
        self.wires.iter().filter(|(_, wires)| !wires.listeners.is_empty()).map(|(id, _)| *id)
    }

    pub(super) fn listeners_of_rollout(&self, source: &RolloutSource) -> &[JobId] {
        self.to_rollout.get(source).map_or(&[], Vec::as_slice)
    }

    pub(super) fn listeners(&self, id: JobId) -> &[JobId] {
        self.ids(id, |it| &it.listeners)
    }

    pub(super) fn stopping_hooks(&self, id: JobId) -> &[JobId] {
        self.ids(id, |it| &it.stopping_hooks)
    }

    pub(super) fn hook_of(&self, id: JobId) -> &[JobId] {
        self.ids(id, |it| &it.hook_of)
    }

    /// Who runs for its end, before its signal or after.
    pub(super) fn hooks(&self, id: JobId) -> &[JobId] {
        self.ids(id, |it| &it.hooks)
    }

    /// Who runs after its end.
    pub(super) fn stopped_hooks(&self, id: JobId) -> &[JobId] {
        self.ids(id, |it| &it.stopped_hooks)
    }

    /// Its own runs are runs for the end of this one, near or far.
    pub(super) fn descends_from(&self, id: JobId, other: JobId) -> bool {
        let mut seen = vec![id];
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            for source in self.hook_of(id).iter().filter(|it| **it != id) {
                if *source == other {
                    return true;
                }
                if !seen.contains(source) {
                    seen.push(*source);
                    open.push(*source);
                }
            }
        }
        false
    }

    pub(super) fn needs(&self, id: JobId) -> &[JobId] {
        self.ids(id, |it| &it.needs)
    }

    /// The conditions that start the job each time.
    pub(super) fn triggers<'a>(
        &'a self,
        id: JobId,
        plan: &'a JobPlan,
    ) -> impl Iterator<Item = &'a Condition> {
        let inherited = self.wires.get(&id).map_or(&[][..], |wires| &wires.inherited);
        triggers(plan).iter().chain(inherited)
    }

    pub(super) fn is_hook(&self, id: JobId) -> bool {
        !self.hook_of(id).is_empty()
    }
}

/// The conditions of the plan that start the job each time.
pub(super) fn triggers(job: &JobPlan) -> &[Condition] {
    match &job.when.trigger {
        Some(Trigger::Each(conditions)) => conditions,
        Some(Trigger::Interval(_) | Trigger::Cron(_)) | None => &[],
    }
}

/// Most come in their order.
fn add(ids: &mut Vec<JobId>, id: JobId) {
    if ids.last().is_none_or(|last| *last < id) || !ids.contains(&id) {
        ids.push(id);
    }
}
