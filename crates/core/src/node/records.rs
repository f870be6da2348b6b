//! What of a node is journaled: everything at one moment, and what one step has changed.

use super::{
    Node, NodeState, Placement, RemoteJob, StepState,
    jobs::{JobId, Jobs},
    wiring::Wiring,
};
use crate::{
    app::{App, AppRestarts, AppStage},
    discovery::Watch,
    environ::Environ,
    job::Job,
    name::Name,
    plan::Plan,
    record::{Journaled, JournaledMap, Memory, Record},
    rollout::RolloutSources,
    task::Tasks,
};
use std::sync::Arc;

impl Node {
    /// A node as an earlier agent left it. A job without a record is new.
    pub(crate) fn restore(plan: Plan, mut memory: Memory) -> Node {
        let begun = memory.has_begun();
        let mut added = Vec::new();
        let leaving = memory.take_leaving();
        let jobs = Jobs::new(plan, leaving, |plan| {
            memory.jobs.remove(&plan.name).unwrap_or_else(|| {
                added.push(plan.name.clone());
                Arc::new(Job::new(plan))
            })
        });
        let mut state = memory.state.take().unwrap_or_default();
        state.disabled_absent.extend(memory.take_disabled());
        let mut restarts = memory.app_restarts;
        let (mut stages, mut waves) = (memory.apps, memory.app_waves);
        for name in restarts.keys() {
            stages.entry(name.clone()).or_default();
        }
        let app = |(name, stage): (Name, AppStage)| {
            let restarts = restarts.remove(&name).unwrap_or_default();
            let mut app = App::restored(stage, restarts);
            app.recall_wave(waves.remove(&name));
            (name, app)
        };
        let mut node = Node {
            wiring: Arc::new(Wiring::new(&jobs)),
            jobs,
            seq: memory.seq,
            state: Journaled::new(state),
            environ: Journaled::new(memory.environ),
            tasks: Journaled::new(memory.tasks),
            apps: stages.into_iter().map(app).collect(),
            watches: JournaledMap::new(memory.watches),
            placements: JournaledMap::new(memory.placements),
            remotes: JournaledMap::new(memory.remotes),
            rollout: Journaled::new(memory.rollout),
            step: StepState::default(),
            stuck: Vec::new(),
            revision: 0,
        };
        for (job, reason) in memory.rests {
            node.recall_reason(job, reason);
        }
        node.forget_what_is_not_planned();
        node.admit(added);
        if !begun {
            // The boot has it journaled.
            node.apps.values_mut().for_each(|app| drop(app.take_reasons()));
        }
        node
    }

    /// Everything that the next agent must know, apart from the plan.
    #[must_use]
    pub fn snapshot(&self) -> Vec<Record> {
        let mut records =
            vec![Record::Seq(self.seq), Record::Node(Box::new(NodeState::clone(&self.state)))];
        if !self.environ.is_empty() {
            records.push(Record::Environ(Environ::clone(&self.environ)));
        }
        if !self.tasks.is_empty() {
            records.push(Record::Tasks(Tasks::clone(&self.tasks)));
        }
        records.extend(self.leaving_records());
        records.extend(self.jobs.ids().map(|id| self.job_record(id)));
        for (name, app) in &self.apps {
            if app.stage() != AppStage::Down {
                records.push(Record::App(name.clone(), app.stage()));
            }
            if *app.restarts() != AppRestarts::default() {
                records.push(Record::AppRestarts(name.clone(), app.restarts().clone()));
            }
            if let Some(wave) = app.wave() {
                records.push(Record::AppWave(name.clone(), Some(wave.clone())));
            }
            records.extend(app.reasons().map(|(job, it)| Record::Rest(job.clone(), Some(it))));
        }
        let watch = |(name, watch): (&Name, &Watch)| Record::Watch(name.clone(), watch.clone());
        records.extend(self.watches.iter().map(watch));
        let placed = |(job, it): (&Name, &Placement)| Record::Placed(job.clone(), it.clone());
        records.extend(self.placements.iter().map(placed));
        let remote = |(job, it): (&Name, &RemoteJob)| Record::Elsewhere(job.clone(), it.clone());
        records.extend(self.remotes.iter().map(remote));
        if !self.rollout.is_empty() {
            records.push(Record::RolloutSources(RolloutSources::clone(&self.rollout)));
        }
        records
    }

    /// The plan in force, for a journal that is the only one to have it.
    #[must_use]
    pub fn plan_record(&self) -> Record {
        Record::Plan(self.plan().clone().into())
    }

    fn leaving_records(&self) -> impl Iterator<Item = Record> {
        self.jobs.leaving().iter().map(|it| Record::Leaving(Box::new(it.clone())))
    }

    /// What this step has changed: `jobs`, and what knows by itself that it has changed.
    pub(super) fn take_records(&mut self, jobs: &[Name]) -> Vec<Record> {
        let mut records = Vec::new();
        if let Some(plan) = self.step.replanned.take() {
            records.push(Record::Plan(plan));
            records.extend(self.leaving_records());
        }
        let state = self.state.take_change().cloned();
        records.extend(state.map(|state| Record::Node(Box::new(state))));
        records.extend(self.environ.take_change().cloned().map(Record::Environ));
        records.extend(self.tasks.take_change().cloned().map(Record::Tasks));
        let jobs = jobs.iter().filter_map(|job| self.jobs.id(job.as_str()));
        records.extend(jobs.map(|id| self.job_record(id)));
        for (name, app) in &mut self.apps {
            records.extend(app.take_stage().map(|stage| Record::App(name.clone(), stage)));
            let restarts = app.take_restarts();
            records.extend(restarts.map(|it| Record::AppRestarts(name.clone(), it)));
            records.extend(app.take_wave().map(|it| Record::AppWave(name.clone(), it)));
            let reasons = app.take_reasons().into_iter();
            records.extend(reasons.map(|(job, reason)| Record::Rest(job, reason)));
        }
        let watches = self.watches.take_changes().into_iter();
        records.extend(watches.filter_map(|(name, watch)| Some(Record::Watch(name, watch?))));
        let placements = self.placements.take_changes().into_iter();
        records.extend(placements.filter_map(|(job, it)| Some(Record::Placed(job, it?))));
        let remotes = self.remotes.take_changes().into_iter();
        records.extend(remotes.filter_map(|(job, it)| Some(Record::Elsewhere(job, it?))));
        records.extend(self.rollout.take_change().cloned().map(Record::RolloutSources));
        records.extend(std::mem::take(&mut self.step.gone).into_iter().map(Record::JobGone));
        records
    }

    fn job_record(&self, id: JobId) -> Record {
        Record::Job(self.jobs.name(id).clone(), self.jobs.shared(id))
    }
}
