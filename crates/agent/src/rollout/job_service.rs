//! Jobs of this node as services: told through the node, and waited for until they are as they
//! should be.

use mainstay_core::{
    clock::Mono,
    event::{Event, Kind},
    job::{Health, Job, Phase},
    name::Name,
    node::Node,
    plan::ServiceTarget,
    rollout::{Op, ServiceFacts, Trouble},
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
}

/// What a job is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JobGoal {
    /// A later process than this one is healthy.
    Restarted { before: u64 },
    /// Its reload command has ended: the task with this number.
    TaskEnded { number: u64 },
}

impl JobWaits {
    pub(super) fn add(&mut self, op: Op, wait: JobWait) {
        self.0.insert(op, wait);
    }

    /// The number of the task that one waits for.
    pub(super) fn expect_task(&mut self, op: Op, number: u64) {
        if let Some(wait) = self.0.get_mut(&op) {
            wait.until = JobGoal::TaskEnded { number };
        }
    }

    pub(super) fn remove(&mut self, op: Op) {
        self.0.remove(&op);
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
        let trouble = |wait: &JobWait| match wait.until {
            JobGoal::Restarted { .. } => format!("job '{}' is not healthy in time", wait.job),
            JobGoal::TaskEnded { .. } => format!("the reload of job '{}' takes too long", wait.job),
        };
        late.map(|(op, wait)| (op, Trouble(trouble(&wait)))).collect()
    }

    /// Those that have come to an end, given how jobs are now.
    pub(super) fn ended(&mut self, node: &Node) -> Vec<(Op, Result<(), Trouble>)> {
        let mut ended = Vec::new();
        for (op, wait) in &self.0 {
            let JobGoal::Restarted { before } = wait.until else { continue };
            let outcome = match node.job(wait.job.as_str()) {
                None => Some(Err(Trouble(format!("job '{}' is gone", wait.job)))),
                Some(job) => restarted(job, before),
            };
            ended.extend(outcome.map(|outcome| (*op, outcome)));
        }
        for (op, _) in &ended {
            self.0.remove(op);
        }
        ended
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

/// What has become of a job that was restarted; `None`: that is not known yet.
fn restarted(job: &Job, before: u64) -> Option<Result<(), Trouble>> {
    if job.incarnation() <= before {
        return None;
    }
    let ended = |job: &Job| {
        let how = job.last_exit().map_or_else(String::new, |exit| format!(": {exit}"));
        Some(Err(Trouble(format!("its new process has ended{how}"))))
    };
    match job.phase() {
        Phase::Running if job.health() == Health::Healthy => Some(Ok(())),
        Phase::Running | Phase::Starting | Phase::Stopping | Phase::Unknown => None,
        Phase::Backoff | Phase::Exited | Phase::Fatal | Phase::Stopped => ended(job),
    }
}

/// How a job is, as a service.
pub(super) fn facts(node: &Node, target: &ServiceTarget) -> Result<ServiceFacts, Trouble> {
    let name = match target {
        ServiceTarget::Job(name) => name,
        ServiceTarget::Command | ServiceTarget::Unit(_) => {
            return Ok(ServiceFacts { running: true, healthy: true, ..ServiceFacts::default() });
        }
    };
    let Some(job) = node.job(name.as_str()) else {
        return Err(Trouble(format!("there is no job '{name}' here")));
    };
    let running = match job.phase() {
        Phase::Starting | Phase::Running | Phase::Backoff => true,
        Phase::Stopped | Phase::Stopping | Phase::Exited | Phase::Fatal | Phase::Unknown => false,
    };
    let healthy = running && job.health() != Health::Unhealthy && job.phase() != Phase::Backoff;
    Ok(ServiceFacts { running, healthy, main_pid: job.pid(), ..ServiceFacts::default() })
}
