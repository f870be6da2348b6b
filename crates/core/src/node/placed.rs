//! The jobs of this node that its fleet places: they start and stop by order alone, and show which
//! order they have last taken.

use super::{Node, Refusal};
use crate::{
    event::{Kind, Source},
    fleet::{CopyState, FleetEvent, JobCopy, Number, OrderKind, Term},
    job::{Desired, Force, Health, Job, JobInput, Phase},
    name::Name,
    outbox::Outbox,
    plan::JobPlan,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a node knows of a placed job beside the job itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The last order for it that was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    order: Option<Number>,
    /// Somebody has started it here since, whatever the fleet says.
    #[serde(default)]
    by_hand: bool,
}

impl Node {
    /// The fleet wants something of a job. Whatever comes of it, the order is taken.
    pub(super) fn ordered(
        &mut self,
        out: &mut Outbox,
        job: &Name,
        order: Number,
        what: OrderKind,
    ) -> Result<(), Refusal> {
        if self.job_plan(job.as_str()).is_none() {
            return Err(Refusal::NoSuchJob(job.to_string()));
        }
        self.placements.insert(job.clone(), Placement { order: Some(order), by_hand: false });
        match what {
            OrderKind::Start { args, fails_over } => {
                // It has run elsewhere: that is a restart by policy, which asks for no latches.
                let start = |_| JobInput::Start { args: Some(args.clone()), now: fails_over };
                self.wanted(out, std::slice::from_ref(job), start)
            }
            OrderKind::Stop => self.asked_to_stop(out, job, Force::Grace),
        }
    }

    /// Something has happened in the fleet, for observers.
    pub(super) fn fleet_said(&self, out: &mut Outbox, event: FleetEvent) {
        let (source, kind) = match event {
            FleetEvent::Joined { node } => (Source::NODE, Kind::NodeJoined { node }),
            FleetEvent::Lost { node } => (Source::NODE, Kind::NodeLost { node }),
            FleetEvent::Isolated { node } => (Source::NODE, Kind::NodeIsolated { node }),
            FleetEvent::Refused { node, run } => {
                (Source::NODE, Kind::NodeRefused { node, run: run.to_string() })
            }
            FleetEvent::Master { term: Term { number, master } } => {
                (Source::NODE, Kind::MasterChanged { master, term: number })
            }
            FleetEvent::Stage { stage } => {
                (Source::NODE, Kind::FleetState { state: stage.to_string() })
            }
            FleetEvent::Placed { job, node } => (Source::Job(job), Kind::Placed { node }),
            FleetEvent::NotPlaced { job, why } => {
                (Source::Job(job), Kind::NotPlaced { reason: why.to_string() })
            }
            FleetEvent::Conflict { job, nodes } => (Source::Job(job), Kind::Conflict { nodes }),
            FleetEvent::WavesStopped { app, job } => (Source::Job(job), Kind::WavesStopped { app }),
            // The loss of its node is told already, and where it goes to will be.
            FleetEvent::Failure { .. } => return,
        };
        out.emit(source, kind);
    }

    /// A user starts these on this node alone.
    pub(super) fn by_hand(&mut self, jobs: &[Name]) {
        for job in jobs {
            let plan = self.job_plan(job.as_str());
            if plan.is_some_and(|plan| self.plan().is_placed(plan)) {
                let order = self.placements.get(job.as_str()).and_then(|it| it.order.clone());
                self.placements.insert(job.clone(), Placement { order, by_hand: true });
            }
        }
    }

    /// The placed jobs as they are here, for the fleet.
    #[must_use]
    pub fn copies(&self) -> BTreeMap<Name, JobCopy> {
        let placed = self.jobs().filter(|(plan, _)| self.plan().is_placed(plan));
        placed.map(|(plan, job)| (plan.name.clone(), self.copy(plan, job))).collect()
    }

    fn copy(&self, plan: &JobPlan, job: &Job) -> JobCopy {
        let known = self.placements.get(plan.name.as_str()).cloned().unwrap_or_default();
        let checked = job.phase() == Phase::Running && !plan.checks.is_empty();
        JobCopy {
            state: copy_state(job),
            incarnation: job.incarnation(),
            since: job.up_since().unwrap_or_default(),
            args: job.args().to_vec(),
            by_hand: known.by_hand,
            order: known.order,
            awaits_health: checked && job.health() != Health::Healthy,
        }
    }
}

fn copy_state(job: &Job) -> CopyState {
    match (job.phase(), job.desired(), job.ended_for_good()) {
        (Phase::Starting, ..) => CopyState::Starting,
        (Phase::Running, ..) => CopyState::Running,
        (Phase::Backoff, ..) => CopyState::Backoff,
        (Phase::Stopping, ..) => CopyState::Stopping,
        // Between two runs of its trigger, or before its first.
        (Phase::Stopped | Phase::Exited | Phase::Fatal | Phase::Unknown, Desired::Run, None) => {
            match job.is_as_desired() {
                true => CopyState::Running,
                false => CopyState::Waiting,
            }
        }
        (Phase::Exited, _, well) => CopyState::Exited { well: well.unwrap_or(false) },
        (Phase::Fatal, ..) => CopyState::Fatal,
        (Phase::Stopped | Phase::Unknown, ..) => CopyState::Stopped,
    }
}
