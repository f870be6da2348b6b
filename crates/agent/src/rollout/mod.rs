//! The room of the rollout: drives [`Rollout`] with what sources, disks, services, users and the
//! clock have to say, and carries what it wants to them.
//!
//! ```text
//!  sources, disk, units ──answers──►┐                          ┌──► beside the loop (`perform`)
//!  own jobs, tasks, users ─────────►├─ Rollout::step ─► disk ──┼──► the node: jobs, tasks, facts
//!  clock ──────────────────────────►┘      (what is kept)      └──► those who asked
//! ```
//!
//! Nothing here decides. What a step wants waits until what outlives the agent is on the disk, in the
//! order of the steps. Without `[rollout]` there is no room.

mod asked;
mod job_service;
mod keeping;
mod node_link;
mod open;
mod perform;
mod preview;
mod probe;
mod tasks;
mod view;
mod waves;
mod why;

pub(crate) use open::{OpenError, RolloutSlot};
pub(crate) use tasks::RolloutTask;

use job_service::JobWaits;
use keeping::RolloutKeeping;
use mainstay_core::{
    clock::{Mono, Now},
    name::Name,
    plan::RolloutPlan,
    rollout::{
        ReadyHold, Rollout, RolloutCommand, RolloutFacts, RolloutInput, RolloutKept,
        RolloutRefusal, RolloutRequest, WaveFeed, WaveReport,
    },
};
use open::OpenedStore;
use perform::Performers;
use std::{
    collections::{BTreeMap, VecDeque},
    io,
    sync::Arc,
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::sleep,
};

#[derive(Debug)]
pub(crate) struct RolloutRoom {
    /// When it was opened (CLOCK_BOOTTIME, ns): tells its tasks from those of a room before, which
    /// counted its operations from the beginning as well.
    begun: u64,
    rollout: Rollout,
    /// The last one that the rollout was told of.
    plan: Arc<RolloutPlan>,
    keeping: RolloutKeeping,
    held: VecDeque<HeldStep>,
    wake: Option<Mono>,
    performers: Performers,
    answers: mpsc::UnboundedReceiver<RolloutInput>,
    /// What the node has to do, and has not done.
    actions: VecDeque<RolloutAction>,
    job_waits: JobWaits,
    /// What the node was told last.
    facts: RolloutFacts,
    /// What the fleet serves, and what it may know of how profiles stand here.
    fed: BTreeMap<Name, WaveFeed>,
    report: Option<WaveReport>,
    /// Counts the steps, for those who wait for what comes of one.
    changes: watch::Sender<u64>,
    /// The service manager hears that the node is ready once that is so.
    hold: ReadyHold,
    maintenance: bool,
    /// The node ends: the service that is told has until then.
    ends_by: Option<Mono>,
}

/// What a step wants, until the disk has what is kept.
#[derive(Debug)]
struct HeldStep {
    /// The value that has to be there.
    version: u64,
    commands: Vec<RolloutCommand>,
    answer: Option<HeldAnswer>,
}

/// Whoever asked, and what there is to answer.
#[derive(Debug)]
struct HeldAnswer {
    answer: RequestOutcome,
    caller: RequestCaller,
}

type RequestOutcome = Result<(), RolloutRefusal>;
pub(crate) type RequestCaller = oneshot::Sender<RequestOutcome>;

/// Something that the room has to look at.
#[derive(Debug)]
pub(crate) enum RolloutWake {
    /// What was left is read: there can be a room.
    Opened(Box<OpenedStore>),
    Answer(RolloutInput),
    Kept(io::Result<()>),
    Due,
}

/// What the node has to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RolloutAction {
    /// Make events of it.
    Tell(Box<RolloutFacts>),
    /// What jobs, tasks and the node itself are wanted for.
    Perform(RolloutCommand),
}

impl RolloutRoom {
    fn new(
        plan: Arc<RolloutPlan>,
        kept: RolloutKept,
        keeping: RolloutKeeping,
        performers: Performers,
        answers: mpsc::UnboundedReceiver<RolloutInput>,
        changes: watch::Sender<u64>,
    ) -> RolloutRoom {
        RolloutRoom {
            begun: mainstay_sys::clock::boottime(),
            rollout: Rollout::new(plan.clone(), kept),
            plan,
            keeping,
            held: VecDeque::new(),
            wake: None,
            performers,
            answers,
            actions: VecDeque::new(),
            job_waits: JobWaits::default(),
            facts: RolloutFacts::default(),
            fed: BTreeMap::new(),
            report: None,
            changes,
            hold: ReadyHold::Over,
            maintenance: false,
            ends_by: None,
        }
    }

    /// Returns when there is something to look at. May be dropped at any time.
    pub(crate) async fn next_wake(&mut self, now: impl Fn() -> Mono) -> RolloutWake {
        let ends_by = self.ends_by.filter(|by| *by > now());
        let wake = self.wake.into_iter().chain(self.job_waits.deadline()).chain(ends_by).min();
        let due = async {
            match wake {
                Some(at) => sleep(at.since(now())).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(answer) = self.answers.recv() => RolloutWake::Answer(answer),
            profile = self.performers.noticed() => {
                RolloutWake::Answer(RolloutInput::Noticed { profile })
            }
            written = self.keeping.progress() => RolloutWake::Kept(written),
            () = due => RolloutWake::Due,
        }
    }

    pub(crate) fn take(&mut self, now: Now, wake: RolloutWake) {
        match wake {
            // There is one.
            RolloutWake::Opened(_) => {}
            RolloutWake::Answer(input) => self.step(now, input),
            RolloutWake::Kept(written) => {
                self.keeping.progressed(written);
                self.release();
            }
            RolloutWake::Due => {
                for (op, trouble) in self.job_waits.overdue(now.mono) {
                    self.step(now, RolloutInput::Told { op, outcome: Err(trouble) });
                }
                self.step(now, RolloutInput::Tick);
            }
        }
    }

    /// Somebody asks: answered once the disk has what follows.
    fn ask(&mut self, now: Now, request: RolloutRequest, caller: RequestCaller) {
        self.step_for(now, RolloutInput::Asked(request), Some(caller));
    }

    fn step(&mut self, now: Now, input: RolloutInput) {
        self.step_for(now, input, None);
    }

    fn step_for(&mut self, now: Now, input: RolloutInput, caller: Option<RequestCaller>) {
        let before = self.rollout.plan().clone();
        let outcome = self.rollout.step(now, input);
        if !Arc::ptr_eq(&before, self.rollout.plan()) {
            // Not before nothing is under way by the old one.
            self.performers.replan(self.rollout.plan());
        }
        self.wake = outcome.wake;
        let version = self.keeping.keep(self.rollout.kept());
        let answer = outcome.answer.zip(caller);
        let answer = answer.map(|(answer, caller)| HeldAnswer { answer, caller });
        self.held.push_back(HeldStep { version, commands: outcome.commands, answer });
        self.release();
        self.changes.send_modify(|count| *count += 1);
    }

    /// What may be done now. What is told of a step is on the disk.
    fn release(&mut self) {
        // Before a job is told that may die of it.
        let told = self.rollout.told_jobs();
        if !told.is_subset(&self.facts.told) {
            self.facts.told.extend(told);
            self.actions.push_back(RolloutAction::Tell(Box::new(self.facts.clone())));
        }
        while let Some(HeldStep { commands, answer, .. }) =
            self.held.pop_front_if(|held| self.keeping.is_settled(held.version))
        {
            if let Some(HeldAnswer { answer, caller }) = answer {
                // Nobody is left only when the client went away.
                let _ = caller.send(answer);
            }
            for command in commands {
                if let Some(command) = self.performers.perform(self.rollout.plan(), command) {
                    self.actions.push_back(RolloutAction::Perform(command));
                }
            }
        }
        if self.held.is_empty() {
            self.report = self.rollout.wave_report();
            let facts = self.rollout.facts();
            if facts != self.facts {
                self.facts = facts.clone();
                self.actions.push_back(RolloutAction::Tell(Box::new(facts)));
            }
        }
    }

    /// Until when the node is not ready.
    pub(crate) fn held_until(&self) -> Option<Mono> {
        self.hold.bound(&self.rollout)
    }

    /// The node is about to end, and a service is told for which there is still time.
    fn finishes(&self, now: Mono) -> bool {
        self.ends_by.is_some_and(|by| now < by) && self.rollout.is_telling()
    }

    /// Another plan is in force, or the same again.
    fn apply(&mut self, now: Now, plan: &Arc<RolloutPlan>) {
        if self.plan != *plan {
            self.plan = plan.clone();
            self.step(now, RolloutInput::Planned(plan.clone()));
        }
    }

    fn next_action(&mut self) -> Option<RolloutAction> {
        self.actions.pop_front()
    }
}
