//! The jobs of this node that its fleet places: they start and stop by order alone, and show which
//! order they have last taken, and what they have said.
//!
//! Who waits here for a job that is placed means its copy in the fleet: the one here if there is
//! something of it, else the one that the fleet tells of ([`RemoteJob`]). What belongs to the end of
//! a job is heard only where it runs.

use super::{Held, JobId, Node, Refusal};
use crate::{
    event::{History, Kind, Outbox, Source},
    fleet::{
        CopyState, FleetEvent, JobCopy, JobSaid, LastEvents, Number, OrderKind, RemoteCopy, RunId,
        Term,
    },
    job::{Desired, Force, Health, Job, JobInput, Phase},
    name::Name,
    plan::{Awaited, Condition, JobPlan, SourceRef},
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
    /// What it has said in this life on nodes that were lost.
    #[serde(default, skip_serializing_if = "History::is_empty")]
    before: History,
    /// What it has said in this life on this node.
    #[serde(default, skip_serializing_if = "LastEvents::is_empty")]
    last: LastEvents,
    /// The incarnation whose arguments were lost with the journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    args_lost: Option<u64>,
}

/// What is known of a placed job that somebody here waits for, apart from what there is of it here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteJob {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    copy: Option<RemoteCopy>,
    /// The last event of it that was heard, of which run of a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    heard: Option<(Name, RunId, u64)>,
}

impl RemoteJob {
    #[must_use]
    pub fn copy(&self) -> Option<&RemoteCopy> {
        self.copy.as_ref()
    }

    /// Events of this copy up to this number are no news.
    fn heard_of(&self, copy: &RemoteCopy) -> u64 {
        let known = self.heard.as_ref().zip(copy.home.as_ref());
        let same = known.filter(|((node, run, _), home)| (node, run) == (&home.0, &home.1));
        same.map_or(0, |((_, _, seq), _)| *seq)
    }

    fn take(&mut self, copy: Option<RemoteCopy>) {
        if let Some((copy, (node, run))) =
            copy.as_ref().and_then(|it| Some((it, it.home.as_ref()?)))
        {
            let seq = self.heard_of(copy).max(copy.said.last().highest());
            self.heard = Some((node.clone(), run.clone(), seq));
        }
        self.copy = copy;
    }
}

impl Node {
    /// The fleet wants something of a job. Whatever comes of it, the order is taken.
    pub(super) fn ordered(
        &mut self,
        out: &mut Outbox,
        job: &Name,
        order: Number,
        (what, said): (OrderKind, &JobSaid),
    ) -> Result<(), Refusal> {
        if self.job_plan(job.as_str()).is_none() {
            return Err(Refusal::NoSuchJob(job.to_string()));
        }
        let known = self.placements.get(job.as_str()).cloned().unwrap_or_default();
        let placement =
            Placement { order: Some(order), by_hand: false, before: said.latches(), ..known };
        self.placements.insert(job.clone(), placement);
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

    /// A user starts or stops these on this node alone.
    pub(super) fn by_hand(&mut self, jobs: &[Name]) {
        for job in jobs {
            let plan = self.job_plan(job.as_str());
            if plan.is_some_and(|plan| self.plan().is_placed(plan)) {
                let known = self.placements.get(job.as_str()).cloned().unwrap_or_default();
                let placement = Placement { by_hand: true, before: History::default(), ..known };
                self.placements.insert(job.clone(), placement);
            }
        }
    }

    /// A job says something: if it is placed, others hear of it.
    pub(super) fn note_placed(&mut self, id: JobId, event: Awaited, seq: u64) {
        let plan = self.jobs.plan_of(id);
        if event.name().is_none() || !self.plan().is_placed(plan) {
            return;
        }
        let name = plan.name.clone();
        let mut known = self.placements.get(name.as_str()).cloned().unwrap_or_default();
        known.last.note(event, seq);
        if event.ends() {
            known.before.forget_health();
        }
        self.placements.insert(name, known);
    }

    /// A job begins a life, in which it has said nothing yet.
    pub(super) fn forget_last_life(&mut self, id: JobId) {
        let name = self.jobs.name(id).clone();
        if let Some(known) = self.placements.edit(name.as_str()) {
            known.last = LastEvents::default();
        }
    }

    /// The journal is lost, or a part of it: a process that it does not know of has whatever arguments
    /// it was started with.
    pub(super) fn forget_args(&mut self, held: &BTreeMap<&Name, &Held>) {
        for id in self.jobs.ids() {
            let (plan, known_of) = (self.jobs.plan_of(id), self.jobs[id].incarnation());
            let live =
                held.get(&plan.name).and_then(|it| it.live).map(|(incarnation, _)| incarnation);
            let Some(incarnation) = live.filter(|it| *it > known_of) else { continue };
            if !self.plan().is_placed(plan) {
                continue;
            }
            let name = plan.name.clone();
            let known = self.placements.get(name.as_str()).cloned().unwrap_or_default();
            let placement = Placement { args_lost: Some(incarnation), ..known };
            self.placements.insert(name, placement);
        }
    }

    /// The placed jobs that somebody here waits for or follows.
    pub fn placed_sources(&self) -> impl Iterator<Item = &Name> {
        let sources = self.wiring.sources().map(|id| self.jobs.plan_of(id));
        sources.filter(|plan| self.plan().is_placed(plan)).map(|plan| &plan.name)
    }

    /// What is known of a placed job on other nodes; `None`: nobody has told yet.
    #[must_use]
    pub fn remote(&self, job: &str) -> Option<&RemoteJob> {
        self.remotes.get(job)
    }

    /// The copy of a placed job that counts here, if it is on another node.
    #[must_use]
    pub fn copy_elsewhere(&self, job: &str) -> Option<&RemoteCopy> {
        let here = self.job(job).is_some_and(|it| copy_state(it).is_active());
        self.remotes.get(job)?.copy().filter(|_| !here)
    }

    /// How a placed job is on other nodes. What is heard of it for the first time is no trigger.
    pub(super) fn heard_of(&mut self, out: &mut Outbox, job: &Name, copy: Option<RemoteCopy>) {
        let Some(id) = self.jobs.id(job.as_str()) else { return };
        let source = SourceRef::Job(job.clone());
        let known = self.remotes.get(job.as_str()).cloned();
        let was_up = known.as_ref().map(|_| self.is_up(&source));
        let since = known.as_ref().zip(copy.as_ref()).map(|(known, copy)| known.heard_of(copy));
        let said = copy.as_ref().map(|copy| copy.said.clone()).unwrap_or_default();
        let mut remote = known.unwrap_or_default();
        remote.take(copy);
        self.remotes.insert(job.clone(), remote);
        let is_up = self.is_up(&source);
        for listener in self.wiring.listeners(id).to_vec() {
            let plan = self.jobs.plan_of(listener);
            let is_news = |it: &Condition| {
                let last = said.last();
                it.source == source && since.is_some_and(|since| last.has_after(it.event, since))
            };
            let triggered = self.wiring.triggers(listener, plan).any(is_news);
            let follows = plan.follows.as_ref().filter(|it| it.source == source);
            let on_loss = follows.map(|it| it.on_loss);
            if triggered {
                self.step_job(out, listener, JobInput::Triggered);
            }
            match (on_loss, was_up) {
                (Some(on_loss), Some(was_up)) if was_up != is_up => {
                    self.follow(out, listener, on_loss, is_up);
                }
                (Some(on_loss), None) if !is_up => self.follow(out, listener, on_loss, false),
                (Some(_) | None, _) => {}
            }
            self.try_launch(out, listener);
        }
    }

    /// Whether a job has said something in its life, wherever it runs.
    pub(super) fn job_has_said(&self, job: &str, event: Awaited) -> bool {
        match self.copy_elsewhere(job).filter(|_| !event.ends()) {
            Some(copy) => copy.said.has(event),
            None => {
                let before = self.placements.get(job).map(|it| it.before).unwrap_or_default();
                before.has(event) || self.job(job).is_some_and(|job| job.has_said(event))
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
            args_lost: known.args_lost == Some(job.incarnation()),
            by_hand: known.by_hand,
            order: known.order.clone(),
            awaits_health: checked && job.health() != Health::Healthy,
            disabled: job.desired() == Desired::Disabled,
            said: said(job, known.before, known.last),
        }
    }
}

/// What it has said, where that is more than its state says.
fn said(job: &Job, before: History, last: LastEvents) -> Option<Box<JobSaid>> {
    let mut latches = job.history();
    latches.merge(before);
    let is_up = job.health() == Health::Healthy && job.phase() != Phase::Stopping;
    let said = JobSaid::new(latches, last, is_up);
    let is_plain = said == JobSaid::default() && copy_state(job) != CopyState::Running;
    (!is_plain).then(|| Box::new(said))
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
