//! Jobs of this node as services: told through the node, and waited for until they are as they
//! should be.

use mainstay_core::{
    clock::Mono,
    event::{Event, Kind},
    name::Name,
    node::Node,
    plan::ServiceTarget,
    rollout::{JobGoal, Op, RolloutCommand, ServiceFacts, Trouble},
    task::TaskOutcome,
};
use std::collections::BTreeMap;

/// Jobs that were told, and have not got there yet.
#[derive(Debug, Default)]
pub(super) struct JobWaits(BTreeMap<Op, JobWait>);

#[derive(Debug)]
pub(super) struct JobWait {
    pub(super) job: Name,
    pub(super) until: JobGoal,
    pub(super) deadline: Mono,
    /// What the job is told then, if it was not told yet.
    pub(super) then_tell: Option<RolloutCommand>,
}

impl JobWaits {
    pub(super) fn add(&mut self, op: Op, wait: JobWait) {
        self.0.insert(op, wait);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn deadline(&self) -> Option<Mono> {
        self.0.values().map(|wait| wait.deadline).min()
    }

    /// Those whose time is over.
    pub(super) fn overdue(&mut self, now: Mono) -> Vec<(Op, Trouble)> {
        let late = self.0.extract_if(.., |_, wait| wait.deadline <= now);
        late.map(|(op, wait)| (op, wait.until.late(&wait.job))).collect()
    }

    /// Those that have come to an end, given how jobs are now.
    pub(super) fn ended(&mut self, node: &Node) -> Vec<(Op, Result<(), Trouble>)> {
        let mut ended = Vec::new();
        for (op, wait) in &self.0 {
            let outcome = wait.until.outcome(&wait.job, node.job(wait.job.as_str()));
            ended.extend(outcome.map(|outcome| (*op, outcome)));
        }
        for (op, _) in &ended {
            self.0.remove(op);
        }
        ended
    }

    /// Those that were to be told once this task has ended.
    pub(super) fn take_earlier(&mut self, number: u64) -> Vec<RolloutCommand> {
        let goal = JobGoal::EarlierEnded { number };
        let waited = self.0.extract_if(.., |_, wait| wait.until == goal);
        waited.filter_map(|(_, wait)| wait.then_tell).collect()
    }

    /// Who waits for the end of this task.
    pub(super) fn take_task(&mut self, number: u64) -> Option<Op> {
        let goal = JobGoal::TaskEnded { number };
        self.0.extract_if(.., |_, wait| wait.until == goal).next().map(|(op, _)| op)
    }

    /// Those whose task an event tells the end of.
    pub(super) fn heard(&mut self, events: &[Event]) -> Vec<(Op, TaskOutcome)> {
        let mut ended = Vec::new();
        for event in events {
            let Kind::TaskEnded { number, exit, output, .. } = &event.kind else { continue };
            let goal = JobGoal::TaskEnded { number: *number };
            for (op, _) in self.0.extract_if(.., |_, wait| wait.until == goal) {
                let (exit, output) = (exit.clone(), output.clone());
                ended.push((op, TaskOutcome { exit, output, truncated: false }));
            }
        }
        ended
    }
}

/// How a job is, as a service.
pub(super) fn facts(node: &Node, target: &ServiceTarget) -> Result<ServiceFacts, Trouble> {
    match target {
        ServiceTarget::Command | ServiceTarget::Unit(_) => Ok(ServiceFacts::of_command()),
        ServiceTarget::Job(name) => match node.job(name.as_str()) {
            Some(job) => Ok(ServiceFacts::of_job(job)),
            None => Err(Trouble(format!("there is no job '{name}' here"))),
        },
    }
}
