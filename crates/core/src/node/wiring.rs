//! Who listens to whom: worked out of the plan once, so that an event reaches only those whom it
//! concerns.
//!
//! A *hook* is a job that waits for another one's `stopping` or `stopped`: it runs on behalf of
//! that job's end. What a job *needs* is what its latches and its `while` name, apart from ends it
//! is a hook of: it stops before they do.

use crate::{
    event::During,
    name::Name,
    plan::{Condition, JobPlan, Plan, SourceRef, Trigger},
};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Default)]
pub(super) struct Wiring {
    places: BTreeMap<Name, usize>,
    to_node: Vec<usize>,
    to_watches: BTreeMap<Name, Vec<usize>>,
    jobs: Vec<Wires>,
}

#[derive(Debug, Clone, Default)]
struct Wires {
    listeners: Vec<usize>,
    /// Who runs before its stop signal.
    stopping_hooks: Vec<usize>,
    /// Whose stop signal it runs before.
    stopping_hook_of: Vec<usize>,
    needs: Vec<usize>,
    /// Whose end it runs for.
    hook_of: Vec<usize>,
    hook: bool,
}

impl Wiring {
    pub(super) fn new(plan: &Plan) -> Wiring {
        let jobs = &plan.jobs;
        let places = jobs.iter().enumerate().map(|(at, job)| (job.name.clone(), at)).collect();
        let wires = vec![Wires::default(); jobs.len()];
        let (to_node, to_watches) = (Vec::new(), BTreeMap::new());
        let mut wiring = Wiring { places, to_node, to_watches, jobs: wires };
        for (at, job) in jobs.iter().enumerate() {
            wiring.add(at, job);
        }
        wiring
    }

    fn add(&mut self, at: usize, job: &JobPlan) {
        for condition in &job.when.once {
            self.listen(at, &condition.source);
            self.depend(at, condition);
        }
        for condition in triggers(job) {
            self.listen(at, &condition.source);
            self.hook(at, condition);
        }
        if let Some(follows) = &job.follows {
            self.listen(at, &follows.source);
            self.need(at, &follows.source);
        }
    }

    fn listen(&mut self, at: usize, source: &SourceRef) {
        match source {
            SourceRef::Node => add(&mut self.to_node, at),
            SourceRef::Job(name) => {
                if let Some(source) = self.place(name.as_str()) {
                    add(&mut self.jobs[source].listeners, at);
                }
            }
            SourceRef::Watch(name) => add(self.to_watches.entry(name.clone()).or_default(), at),
        }
    }

    fn depend(&mut self, at: usize, condition: &Condition) {
        if condition.event.ends() {
            self.hook(at, condition);
        } else {
            self.need(at, &condition.source);
        }
    }

    fn hook(&mut self, at: usize, condition: &Condition) {
        let SourceRef::Job(name) = &condition.source else { return };
        let Some(source) = self.place(name.as_str()) else { return };
        // A job cannot run before its own stop signal.
        if condition.event.during() == Some(During::Stop) && source != at {
            add(&mut self.jobs[source].stopping_hooks, at);
            add(&mut self.jobs[at].stopping_hook_of, source);
        }
        if condition.event.ends() {
            add(&mut self.jobs[at].hook_of, source);
            self.jobs[at].hook = true;
        }
    }

    fn need(&mut self, at: usize, source: &SourceRef) {
        let SourceRef::Job(name) = source else { return };
        let Some(source) = self.place(name.as_str()) else { return };
        if source != at {
            add(&mut self.jobs[at].needs, source);
        }
    }

    pub(super) fn place(&self, job: &str) -> Option<usize> {
        self.places.get(job).copied()
    }

    pub(super) fn listeners_of_node(&self) -> &[usize] {
        &self.to_node
    }

    pub(super) fn listeners_of_watch(&self, name: &str) -> &[usize] {
        self.to_watches.get(name).map_or(&[], Vec::as_slice)
    }

    pub(super) fn listeners(&self, at: usize) -> &[usize] {
        self.jobs.get(at).map_or(&[], |it| &it.listeners)
    }

    pub(super) fn stopping_hooks(&self, at: usize) -> &[usize] {
        self.jobs.get(at).map_or(&[], |it| &it.stopping_hooks)
    }

    pub(super) fn stopping_hook_of(&self, at: usize) -> &[usize] {
        self.jobs.get(at).map_or(&[], |it| &it.stopping_hook_of)
    }

    pub(super) fn hook_of(&self, at: usize) -> &[usize] {
        self.jobs.get(at).map_or(&[], |it| &it.hook_of)
    }

    pub(super) fn needs(&self, at: usize) -> &[usize] {
        self.jobs.get(at).map_or(&[], |it| &it.needs)
    }

    pub(super) fn is_hook(&self, at: usize) -> bool {
        self.jobs.get(at).is_some_and(|it| it.hook)
    }
}

/// The conditions that start the job each time.
pub(super) fn triggers(job: &JobPlan) -> &[Condition] {
    match &job.when.trigger {
        Some(Trigger::Each(conditions)) => conditions,
        Some(Trigger::Interval(_) | Trigger::Cron(_)) | None => &[],
    }
}

fn add(places: &mut Vec<usize>, at: usize) {
    if places.last() != Some(&at) && !places.contains(&at) {
        places.push(at);
    }
}
