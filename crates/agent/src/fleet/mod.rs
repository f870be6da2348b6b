//! The room of the fleet: drives [`Fleet`] with what the engine, the disk, the clock and this node
//! have to say, and carries what it wants to them.
//!
//! ```text
//!  engine ──events──►┐                          ┌──► engine: what is said and sent
//!  own jobs, users ─►├─ Fleet::step ─► disk ────┼──► the node: orders
//!  clock, disk ─────►┘   (what outlives a boot) └──► those who asked, observers
//! ```
//!
//! Nothing here decides. What a step wants waits until what outlives a boot is on the disk, in the
//! order of the steps.

mod engine;
mod keeping;
mod kept_file;
mod node_link;
mod peers;
mod start;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use engine::Carrier;
pub(crate) use node_link::next_wake;
pub(crate) use peers::{FleetPeers, PeerStates};
pub(crate) use start::{JoinError, join};

use keeping::Keeping;
use kept_file::{KeptFound, open};
use mainstay_core::{
    clock::Mono,
    fleet::{
        Catalogue, EngineEvent, Fleet, FleetCommand, FleetEvent, FleetInput, FleetOutcome,
        FleetRequest, FleetRules, Identity, JobCopy, JobSaid, Number, OrderKind, RemoteCopy,
        RequestAnswer, RequestId, WaveProfile,
    },
    name::Name,
    node::Node,
    plan::{FleetPlan, Plan},
    rollout::{ProfileDelivery, Version, WaveFeed, WaveReport},
};
use mainstay_engine::Engine;
use std::{
    collections::{BTreeMap, VecDeque},
    io,
    path::Path,
    sync::Arc,
};
use tokio::{
    sync::{oneshot, watch},
    time::sleep,
};

#[derive(Debug)]
pub(crate) struct FleetRoom {
    fleet: Fleet,
    carrier: Carrier,
    keeping: Keeping,
    /// What earlier steps want, and which value has to be on the disk before.
    held: VecDeque<(u64, FleetOutcome)>,
    wake: Option<Mono>,
    /// Who waits for the master to answer.
    callers: BTreeMap<RequestId, oneshot::Sender<RequestAnswer>>,
    /// The last copies of its jobs that the fleet was told of.
    copies: BTreeMap<Name, JobCopy>,
    catalogue: Arc<Catalogue>,
    /// How the rollout of this node stands, as the fleet was told last.
    waves: Option<WaveReport>,
    rules: FleetRules,
    ending: bool,
    /// What the node has to do, and has not done.
    actions: VecDeque<FleetAction>,
    /// The other nodes, for those who look at them beside the loop.
    states: watch::Sender<PeerStates>,
    /// Counts the steps, for those who wait for what comes of one.
    changes: watch::Sender<u64>,
}

/// Something that the room has to look at.
#[derive(Debug)]
pub(crate) enum FleetWake {
    Engine(EngineEvent),
    Kept(io::Result<()>),
    Due,
}

/// What the node has to do.
#[derive(Debug, PartialEq)]
pub(crate) enum FleetAction {
    Order { job: Name, order: Number, what: OrderKind, said: JobSaid },
    EndRun { again: bool },
    Tell(FleetEvent),
    Give { to: Name, profile: Name, version: Version },
    Take(ProfileDelivery),
}

impl FleetRoom {
    pub(crate) fn new(
        now: Mono,
        me: Identity,
        (plan, fleet): (&Plan, &FleetPlan),
        (state_dir, found): (&Path, KeptFound),
        carrier: Carrier,
    ) -> FleetRoom {
        let (rules, catalogue) = (FleetRules::of(fleet), Arc::new(Catalogue::of(plan)));
        let kept = found.kept.clone();
        FleetRoom {
            fleet: Fleet::new(me, rules.clone(), catalogue.clone(), kept, now),
            carrier,
            keeping: Keeping::new(state_dir.to_owned(), found),
            held: VecDeque::new(),
            wake: Some(now),
            callers: BTreeMap::new(),
            copies: BTreeMap::new(),
            catalogue,
            waves: None,
            rules,
            ending: false,
            actions: VecDeque::new(),
            states: watch::Sender::default(),
            changes: watch::Sender::default(),
        }
    }

    /// As that of an agent before.
    pub(crate) fn resuming(self, now: Mono) -> FleetRoom {
        FleetRoom { fleet: self.fleet.resuming(now), ..self }
    }

    pub(crate) fn me(&self) -> &Name {
        &self.keeping.node_of().node
    }

    /// Returns when there is something to look at. May be dropped at any time.
    pub(crate) async fn next_wake(&mut self, now: impl Fn() -> Mono) -> FleetWake {
        let due = async {
            match self.wake {
                Some(at) => sleep(at.since(now())).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(event) = self.carrier.events.recv() => FleetWake::Engine(event),
            written = self.keeping.progress() => FleetWake::Kept(written),
            () = due => FleetWake::Due,
        }
    }

    pub(crate) fn take(&mut self, now: Mono, wake: FleetWake) {
        match wake {
            FleetWake::Engine(event) => self.step(now, FleetInput::Engine(event)),
            FleetWake::Due => self.step(now, FleetInput::Tick),
            FleetWake::Kept(written) => {
                self.keeping.progressed(written);
                self.release();
            }
        }
    }

    /// How the jobs of this node are, if that is news.
    pub(crate) fn tell_jobs(&mut self, now: Mono, copies: BTreeMap<Name, JobCopy>) {
        if copies != self.copies {
            self.copies = copies.clone();
            self.step(now, FleetInput::Jobs(copies));
        }
    }

    /// How profiles that go in waves stand here. Whether that is news.
    pub(crate) fn tell_waves(&mut self, now: Mono, report: Option<&WaveReport>) -> bool {
        let is_news = self.waves.as_ref() != report;
        if is_news {
            self.waves = report.cloned();
            self.step(now, FleetInput::Waves(report.cloned()));
        }
        is_news
    }

    /// What the fleet serves here in place of the sources of profiles.
    pub(crate) fn wave_feeds(&self) -> BTreeMap<Name, WaveFeed> {
        self.fleet.wave_feeds()
    }

    /// How a profile goes through the fleet.
    pub(crate) fn wave_profile(&self, profile: &Name) -> Option<WaveProfile> {
        self.fleet.wave_profile(profile)
    }

    pub(crate) fn engine(&self) -> Option<Arc<Engine>> {
        self.carrier.engine()
    }

    /// A plan is in force, another one or the same again.
    pub(crate) fn apply(&mut self, now: Mono, plan: &Plan) {
        let Some(fleet) = &plan.fleet else { return };
        let (rules, catalogue) = (FleetRules::of(fleet), Catalogue::of(plan));
        if rules != self.rules {
            self.rules = rules.clone();
            self.carrier.look_for(start::roster(fleet));
            self.step(now, FleetInput::Rules(rules));
        }
        if catalogue != *self.catalogue {
            self.catalogue = Arc::new(catalogue);
            self.step(now, FleetInput::Known(self.catalogue.clone()));
        }
    }

    /// A user asks for something; `answer` gets what the master makes of it.
    pub(crate) fn ask(
        &mut self,
        now: Mono,
        request: FleetRequest,
        answer: oneshot::Sender<RequestAnswer>,
    ) {
        self.callers.retain(|_, caller| !caller.is_closed());
        let outcome = self.fleet.step(now, FleetInput::Asked(request));
        if let Some(id) = &outcome.request {
            self.callers.insert(id.clone(), answer);
        }
        self.hold(outcome);
    }

    pub(crate) fn step(&mut self, now: Mono, input: FleetInput) {
        let outcome = self.fleet.step(now, input);
        self.hold(outcome);
    }

    /// This node has begun to end.
    pub(crate) fn end(&mut self, now: Mono) {
        if !std::mem::replace(&mut self.ending, true) {
            self.step(now, FleetInput::Ending);
        }
    }

    fn hold(&mut self, outcome: FleetOutcome) {
        self.wake = outcome.wake;
        let version = self.keeping.keep(self.fleet.kept());
        self.held.push_back((version, outcome));
        self.release();
        self.show();
    }

    /// Whoever waits for something of the fleet looks again.
    fn show(&self) {
        self.states.send_if_modified(|shown| {
            let now: PeerStates =
                self.fleet.peers().map(|(node, state)| (node.clone(), state)).collect();
            let is_news = *shown != now;
            *shown = now;
            is_news
        });
        self.changes.send_modify(|count| *count += 1);
    }

    /// What may become visible now.
    fn release(&mut self) {
        while let Some((_, outcome)) =
            self.held.pop_front_if(|(version, _)| self.keeping.is_settled(*version))
        {
            let FleetOutcome { engine, commands, events, answers, .. } = outcome;
            engine.into_iter().for_each(|command| self.carrier.command(command));
            self.actions.extend(commands.into_iter().map(action));
            self.actions.extend(events.into_iter().map(FleetAction::Tell));
            for (id, answer) in answers {
                if let Some(caller) = self.callers.remove(&id) {
                    // Nobody is left only when the client went away.
                    let _ = caller.send(answer);
                }
            }
        }
    }

    /// Tells the others that this node goes. What it has said before reaches them first, and what
    /// outlives a boot is on the disk.
    pub(crate) async fn leave(&mut self) {
        self.keeping.finish().await;
        self.release();
        if let Some(engine) = self.carrier.engine() {
            engine.leave().await;
        }
    }

    /// How jobs that somebody here waits for are on other nodes, where the node knows otherwise.
    pub(crate) fn news_for(&self, node: &Node) -> Vec<(Name, Option<RemoteCopy>)> {
        if !self.fleet.has_met_all() {
            return Vec::new();
        }
        let copies = node.placed_sources().map(|job| (job.clone(), self.fleet.elsewhere(job)));
        let is_news = |(job, copy): &(Name, Option<RemoteCopy>)| {
            node.remote(job.as_str()).is_none_or(|known| known.copy() != copy.as_ref())
        };
        copies.filter(is_news).collect()
    }

    pub(crate) fn next_action(&mut self) -> Option<FleetAction> {
        self.actions.pop_front()
    }
}

fn action(command: FleetCommand) -> FleetAction {
    match command {
        FleetCommand::Start { order, job, args, fails_over, said } => {
            FleetAction::Order { job, order, what: OrderKind::Start { args, fails_over }, said }
        }
        FleetCommand::Stop { order, job } => {
            FleetAction::Order { job, order, what: OrderKind::Stop, said: JobSaid::default() }
        }
        FleetCommand::EndRun { again } => FleetAction::EndRun { again },
        FleetCommand::GiveProfile { to, profile, version } => {
            FleetAction::Give { to, profile, version }
        }
        FleetCommand::TakeProfile(delivery) => FleetAction::Take(delivery),
    }
}
