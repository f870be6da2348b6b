//! Many nodes act as one.
//!
//! ```text
//!  what users ask ─┐                ┌─ Peers: who takes part ─────────┐
//!  facts of others ├─► Fleet::step ─┤  wishes, failures, requests     ├─► what to say, what to send,
//!  own jobs, time ─┘                └─ Master, on the node that is it ┘   what this node is to do
//! ```
//!
//! Every node runs one [`Fleet`]. It takes part as soon as it is in sync with the others: all that
//! are expected are there or isolated, or all core nodes are, or the time is up, or somebody who is
//! there is in sync already: then this one is late. The engine says who is master ([`engine`]); that node decides for
//! all of them (`master`), by what they say of themselves ([`NodeFacts`]).
//!
//! Each part owns its state and knows no other: peers, election, placement, wishes, failures,
//! conciliation, requests, orders. What outlives a boot is in [`Kept`].

pub mod conciliation;
pub mod election;
pub mod elsewhere;
pub mod engine;
pub mod facts;
pub mod failures;
pub mod input;
mod master;
pub mod number;
pub mod orders;
pub mod peers;
pub mod placement;
mod reign;
pub mod requests;
pub mod rules;
pub mod stage;
mod view;
mod waves;
pub mod wishes;

pub use conciliation::{Afterwards, Conciliation, Settlement, conciliate};
pub use election::Election;
pub(crate) use elsewhere::LastEvents;
pub use elsewhere::{Departed, JobSaid, RemoteCopy};
pub use engine::{EngineCommand, EngineEvent, FleetMember, MemberId, Role};
pub use facts::{CopyState, JobCopy, JobOrder, LaterFields, Message, NodeFacts, OrderKind, Shared};
pub use failures::{Answered, FailureKey, FailureQueue};
pub use input::{FleetCommand, FleetEvent, FleetInput, FleetOutcome, Identity, Kept};
pub use master::{JobStanding, OpenOrder, OpenOrders, PlannedFate, PlannedJob, Work};
pub use number::{Number, RunId, Term};
pub use orders::SeenOrders;
pub use peers::{PeerChange, PeerState, Peers};
pub use placement::{Loads, NotPlaced, Seat, Strategy};
pub use requests::{FleetRequest, OpenRequests, RequestAnswer, RequestId};
pub use rules::{Catalogue, FleetRules, JobRules};
pub use stage::FleetStage;
pub use view::{AppView, NodeView, PlacedView};
pub use waves::{WaveAnswer, WaveNode, WaveProfile};
pub use wishes::{AskedBy, JobWish, Wishes};

use crate::{app::AppPhase, clock::Mono, name::Name};
use master::{Master, Roster};
use rules::KnownJobs;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use waves::Waves;

/// An agent that takes over meets those that are there in this time, in which nobody gives it up.
const RESUME: Duration = Duration::from_millis(700);

#[derive(Debug, Clone)]
pub struct Fleet {
    me: Identity,
    rules: FleetRules,
    peers: Peers,
    stage: FleetStage,
    /// When those that never come are given up.
    sync_until: Mono,
    /// When this agent began to meet those that are there already.
    began: Mono,
    in_sync: bool,
    /// Until then the others go by what the agent before has said.
    resuming_until: Option<Mono>,
    term: Option<Term>,
    highest_term: Option<Term>,
    master: Option<Master>,
    /// This node has become master, and begins once all follow it.
    gathers_since: Option<Mono>,
    /// The last work of the master before, for whoever comes next.
    last_work: Option<Arc<Work>>,
    catalogue: Arc<Catalogue>,
    jobs: Shared<BTreeMap<Name, JobCopy>>,
    /// For the master: all jobs that are known, and the nodes that take part.
    known: KnownJobs,
    roster: Roster,
    wishes: Wishes,
    failures: FailureQueue,
    requests: OpenRequests,
    orders: SeenOrders,
    drained: bool,
    hands_over: bool,
    ending: bool,
    /// The last copies of nodes that are gone.
    departed: Departed,
    /// Profiles that go through the fleet in waves.
    waves: Waves,
    met_all: bool,
    /// A node that takes part, and one that it has met and this one has not.
    unmet: Option<(Name, Name)>,
    /// Another master was first heard of then.
    rival_since: Option<Mono>,
    /// What was said and campaigned for last, and the version before the first of them: an agent
    /// that takes over says something later than the one before.
    said: Option<Arc<NodeFacts>>,
    version_before: u64,
    /// Those that it has campaigned with, without itself, and whether it stood as well.
    among: Option<(Shared<BTreeSet<Name>>, bool)>,
    /// Nothing follows from what is known before something else is known, or it is time.
    at_rest: bool,
    wake: Option<Mono>,
}

impl Fleet {
    #[must_use]
    pub fn new(
        me: Identity,
        rules: FleetRules,
        catalogue: Arc<Catalogue>,
        kept: Kept,
        now: Mono,
    ) -> Fleet {
        let who = (me.name.clone(), me.run.clone());
        let peers = Peers::new(who, &rules.nodes, rules.auto_fence, &kept.isolates);
        Fleet {
            peers,
            stage: FleetStage::Initialization,
            sync_until: now.after(rules.sync_timeout),
            began: now,
            in_sync: false,
            resuming_until: None,
            term: None,
            highest_term: kept.highest_term,
            master: None,
            gathers_since: None,
            last_work: None,
            catalogue,
            jobs: Shared::default(),
            known: KnownJobs::default(),
            roster: Roster::default(),
            wishes: kept.wishes,
            failures: kept.failures,
            requests: OpenRequests::after(now),
            orders: SeenOrders::default(),
            drained: kept.drained,
            hands_over: false,
            ending: false,
            departed: Departed::default(),
            waves: Waves::new(kept.waves),
            met_all: false,
            unmet: None,
            rival_since: None,
            said: None,
            version_before: now.0,
            among: None,
            at_rest: false,
            wake: None,
            me,
            rules,
        }
    }

    /// There was an agent before in this run: that is neither the loss of a node nor a new one, so
    /// long as this one says nothing before it knows whom it takes part with.
    #[must_use]
    pub fn resuming(mut self, now: Mono) -> Fleet {
        self.resuming_until = Some(now.after(RESUME));
        self
    }

    /// What is to be on disk before anything of it becomes visible.
    #[must_use]
    pub fn kept(&self) -> Kept {
        Kept {
            highest_term: self.highest_term.clone(),
            isolates: BTreeSet::clone(self.peers.isolates()),
            drained: self.drained,
            wishes: self.wishes.clone(),
            failures: self.failures.clone(),
            waves: self.waves.facts().records.clone(),
        }
    }

    #[must_use]
    pub fn stage(&self) -> FleetStage {
        self.stage
    }

    /// The master that this node follows.
    #[must_use]
    pub fn term(&self) -> Option<&Term> {
        self.term.as_ref()
    }

    #[must_use]
    pub fn is_master(&self) -> bool {
        self.master.is_some()
    }

    pub fn peers(&self) -> impl Iterator<Item = (&Name, PeerState)> {
        self.peers.iter()
    }

    /// How this node sees another one.
    #[must_use]
    pub fn peer_state(&self, node: &Name) -> PeerState {
        self.peers.state(node)
    }

    /// What this node has said last.
    #[must_use]
    pub fn said(&self) -> Option<&Arc<NodeFacts>> {
        self.said.as_ref()
    }

    #[must_use]
    pub fn wishes(&self) -> &Wishes {
        &self.wishes
    }

    /// How the apps are; only the master knows.
    pub fn apps(&self) -> impl Iterator<Item = (&Name, AppPhase)> {
        self.master.iter().flat_map(Master::app_phases)
    }

    pub fn step(&mut self, now: Mono, input: FleetInput) -> FleetOutcome {
        let mut out = FleetOutcome::default();
        if self.at_rest && self.wake.is_none_or(|at| now < at) && self.has_heard(&input) {
            return FleetOutcome { wake: self.wake, ..out };
        }
        match input {
            FleetInput::Engine(event) => self.engine_said(now, &mut out, event),
            FleetInput::Jobs(jobs) => {
                let taken = jobs.iter().filter_map(|(job, copy)| Some((job, copy.order.as_ref()?)));
                taken.for_each(|(job, number)| self.orders.recall(job, number));
                self.jobs.set(jobs);
            }
            FleetInput::Known(catalogue) => self.catalogue = catalogue,
            FleetInput::Rules(rules) => {
                self.peers.expect(&rules.nodes, rules.auto_fence);
                self.master.iter_mut().for_each(Master::count_anew);
                self.rules = rules;
            }
            FleetInput::Asked(request) => {
                // Here at once: a master that is isolated itself could not tell it.
                if let FleetRequest::Readmit { node } = &request {
                    self.peers.readmit(node);
                }
                let id = self.requests.take(now, &self.me.name, &self.me.run, request);
                out.request = Some(id);
            }
            FleetInput::Readmit { node } => self.peers.readmit(&node),
            FleetInput::HandOver { on } => self.hands_over = on,
            FleetInput::Waves(report) => self.waves.report_is(report),
            FleetInput::Ending => self.ending = true,
            FleetInput::Tick => {}
        }
        self.go_on(now, &mut out);
        let FleetOutcome { engine, commands, events, answers, request, wake } = &out;
        self.at_rest = engine.is_empty() && commands.is_empty() && events.is_empty();
        self.at_rest &= answers.is_empty() && request.is_none();
        self.wake = *wake;
        out
    }

    /// It says nothing that this node has not heard.
    fn has_heard(&self, input: &FleetInput) -> bool {
        match input {
            FleetInput::Engine(EngineEvent::Said { node, facts }) => {
                self.peers.has_heard(node, facts)
            }
            FleetInput::Engine(
                EngineEvent::Members(_) | EngineEvent::Leader { .. } | EngineEvent::Sent { .. },
            )
            | FleetInput::Jobs(_)
            | FleetInput::Known(_)
            | FleetInput::Rules(_)
            | FleetInput::Asked(_)
            | FleetInput::Readmit { .. }
            | FleetInput::HandOver { .. }
            | FleetInput::Waves(_)
            | FleetInput::Ending
            | FleetInput::Tick => false,
        }
    }

    fn engine_said(&mut self, now: Mono, out: &mut FleetOutcome, event: EngineEvent) {
        match event {
            EngineEvent::Members(members) => {
                let expected = &self.rules.nodes;
                let allowed =
                    |it: &&FleetMember| expected.is_empty() || expected.contains(&it.node);
                let members: Vec<FleetMember> = members.iter().filter(allowed).cloned().collect();
                let changes = self.peers.members_are(&members);
                self.follow_peers(out, changes);
            }
            EngineEvent::Said { node, facts } => {
                let facts = self.shared(&node, &facts);
                let changes = self.peers.heard(now, &node, &facts);
                self.follow_peers(out, changes);
                self.listen(&node);
            }
            EngineEvent::Sent { from, message: Message::Order(order) } => {
                self.ordered(out, &from, &order);
            }
            EngineEvent::Sent { from, message: Message::WantProfile { profile, version } } => {
                self.profile_wanted(&from, profile, version);
            }
            EngineEvent::Sent { from, message: Message::Profile(delivery) } => {
                self.profile_arrived(out, &from, delivery);
            }
            EngineEvent::Leader { role: Role::Master, term } => self.follow_master(now, out, term),
        }
    }

    fn follow_peers(&mut self, out: &mut FleetOutcome, changes: Vec<PeerChange>) {
        for change in changes {
            match change {
                PeerChange::Joined { node } => {
                    if let Some(facts) = self.peers.facts(&node) {
                        self.failures.cancel(&node, &facts.run);
                    }
                    self.master.iter_mut().for_each(Master::joined);
                    self.waves.joined(&node);
                    out.events.push(FleetEvent::Joined { node });
                }
                PeerChange::Lost { node, facts } => {
                    // The end of a node on purpose is no failure.
                    if !facts.ending && !facts.stage.is_ending() {
                        self.failures.add(lost_with(&node, &facts));
                    }
                    self.departed.add(&facts);
                    self.waves.lost(&node, facts.ending || facts.stage.is_ending());
                    self.remember_work(facts.work.as_ref());
                    if self.term.as_ref().is_some_and(|term| term.master == node) {
                        self.term = None;
                    }
                    out.events.push(FleetEvent::Lost { node });
                }
                PeerChange::Isolated { node } => out.events.push(FleetEvent::Isolated { node }),
                PeerChange::Refused { node, run } => {
                    out.events.push(FleetEvent::Refused { node, run });
                }
            }
        }
    }

    /// The facts of a node, one with what is known where they say the same.
    fn shared(&self, node: &Name, facts: &NodeFacts) -> Arc<NodeFacts> {
        let mut facts = facts.clone();
        if let Some(known) = self.peers.facts(node) {
            facts.share(known);
        }
        facts.share_own(&self.wishes, &self.catalogue);
        Arc::new(facts)
    }

    /// What a node that takes part says of things that are everybody's.
    fn listen(&mut self, node: &Name) {
        let Some(facts) = self.peers.facts(node).cloned() else { return };
        self.wishes.merge(&facts.wishes);
        self.departed.merge(&facts.departed);
        self.merge_waves(&facts);
        // Whoever follows a master that has no part here passes on the terms of another fleet: the
        // two masters would outbid each other for ever.
        let follows = facts.term.as_ref().map(|term| &term.master);
        let ours = |it: &Name| *it == self.me.name || self.peers.state(it) == PeerState::Running;
        if follows.is_none_or(ours) {
            self.see_term(facts.highest_term.as_ref());
        }
        self.remember_work(facts.work.as_ref());
    }

    fn see_term(&mut self, term: Option<&Term>) {
        if term > self.highest_term.as_ref() {
            self.highest_term = term.cloned();
        }
    }

    /// The work of the master that this node follows counts more than any other.
    fn remember_work(&mut self, work: Option<&Arc<Work>>) {
        let Some(work) = work.filter(|it| !it.is_before(&self.me.name, &self.me.run)) else {
            return;
        };
        let followed = |work: &Work| Some(&work.number.term) == self.term.as_ref();
        let rank = |work: &Arc<Work>| (followed(work), work.number.clone());
        if self.last_work.as_ref().is_some_and(|last| Arc::ptr_eq(last, work)) {
            return;
        }
        if self.last_work.as_ref().is_none_or(|last| rank(work) > rank(last)) {
            self.last_work = Some(work.clone());
        }
    }

    fn ordered(&mut self, out: &mut FleetOutcome, from: &Name, order: &JobOrder) {
        let takes_part = *from == self.me.name || self.peers.state(from) == PeerState::Running;
        let known = self.catalogue.jobs.contains_key(&order.job);
        // A master that comes back from a cut has not seen what was decided under a later term.
        let seen = self.highest_term.as_ref().max(self.term.as_ref());
        let older = seen.is_some_and(|term| order.number.term.number < term.number);
        if !takes_part || !known || older || !self.orders.take(order) {
            return;
        }
        let (number, job) = (order.number.clone(), order.job.clone());
        out.commands.push(match &order.what {
            OrderKind::Start { args, fails_over } => {
                let (args, fails_over) = (args.clone(), *fails_over);
                let said = if fails_over { self.departed.said(&job) } else { JobSaid::default() };
                FleetCommand::Start { order: number, job, args, fails_over, said }
            }
            OrderKind::Stop => FleetCommand::Stop { order: number, job },
        });
    }

    fn follow_master(&mut self, now: Mono, out: &mut FleetOutcome, term: Term) {
        let isolated = self.peers.state(&term.master) == PeerState::Isolated;
        if self.term.as_ref() == Some(&term) || isolated {
            return;
        }
        self.see_term(Some(&term));
        let mine = term.master == self.me.name;
        match (&mut self.master, mine) {
            (Some(master), true) => {
                let other = self.last_work.as_deref().filter(|it| it.number.term != *master.term());
                master.reign_on(term.clone(), other, now);
            }
            (None, true) => {
                self.master = Some(Master::new(term.clone(), self.last_work.as_deref(), now));
                self.gathers_since = Some(now);
            }
            (Some(_), false) => (self.master, self.gathers_since) = (None, None),
            (None, false) => {}
        }
        out.events.push(FleetEvent::Master { term: term.clone() });
        self.term = Some(term);
        // What it has said before it was followed counts more from now on.
        let works: Vec<Arc<Work>> =
            self.peers.running().filter_map(|(_, facts)| facts.work.clone()).collect();
        works.iter().for_each(|work| self.remember_work(Some(work)));
    }

    /// Whatever follows from what is known now.
    fn go_on(&mut self, now: Mono, out: &mut FleetOutcome) {
        self.synchronize(now, out);
        self.resume(now);
        self.meet_all(now);
        self.forget_end();
        self.forget_departed();
        if self.resuming_until.is_none() {
            if self.in_sync {
                self.campaign(now, out);
            }
            self.lead(now, out);
            self.follow_work(out);
            self.go_on_in_waves(now, out);
            self.say(now, out);
        }
        let sync = Some(self.sync_until).filter(|at| now < *at && !self.in_sync);
        let work = self.master.as_ref().and_then(|it| it.next_wake(now));
        let wakes = sync.into_iter().chain(self.meets_until(now));
        let wakes = wakes.chain(work).chain(self.resuming_until);
        let reign = self.gathers_until().into_iter().chain(self.yields_until(now));
        out.wake = wakes.chain(reign).chain(self.waves.wake()).min();
    }

    /// It has met all those that there are, or had the time to.
    fn resume(&mut self, now: Mono) {
        if self.resuming_until.is_none() {
            return;
        }
        let nodes = &self.rules.nodes;
        let others = || nodes.iter().filter(|node| **node != self.me.name);
        let all = others().all(|node| self.peers.state(node) == PeerState::Running);
        let over = self.resuming_until.is_some_and(|until| now >= until);
        if over || (all && !nodes.is_empty()) {
            self.resuming_until = None;
        }
    }

    /// Whether those that are waited for have come.
    fn synchronize(&mut self, now: Mono, out: &mut FleetOutcome) {
        if self.in_sync {
            return;
        }
        let state = |node: &Name| match *node == self.me.name {
            true => PeerState::Running,
            false => self.peers.state(node),
        };
        // One that ends is not one to begin with, unless this run is to end with it.
        let with = |work: &Arc<Work>| work.ends_run(&self.me.name, &self.me.run);
        let ends = |facts: &NodeFacts| {
            (facts.ending || facts.stage.is_ending()) && !facts.work.as_ref().is_some_and(with)
        };
        let is_there = |node: &Name| match state(node) {
            PeerState::Running => !self.peers.facts(node).is_some_and(|it| ends(it)),
            PeerState::Isolated => true,
            PeerState::Unknown | PeerState::Checking | PeerState::Silent => false,
        };
        let nodes = &self.rules.nodes;
        let all = !nodes.is_empty() && nodes.iter().all(is_there);
        let core = &self.rules.core;
        let core = !core.is_empty() && core.iter().all(|node| state(node) == PeerState::Running);
        // Whoever is there is met before: it may have what this node would start.
        let core = core && !self.is_meeting() && self.meets_until(now).is_none();
        // Somebody is in sync already, with nobody whom this node has not met.
        let late = self.peers.running().any(|(_, facts)| {
            let met = || facts.peers.iter().all(|node| state(node) == PeerState::Running);
            !ends(facts) && (facts.term.is_some() || (facts.in_sync && met()))
        });
        let time_is_up = now >= self.sync_until;
        if time_is_up && !all {
            let changes = self.peers.give_up_waiting();
            self.follow_peers(out, changes);
        }
        // There is a fleet that takes it for its run before: it is let in when that is given up.
        self.in_sync = (all || core || late || time_is_up) && !self.peers.is_refused();
    }

    /// Before it has met those that are there it follows a master, and claims nothing itself.
    fn campaign(&mut self, now: Mono, out: &mut FleetOutcome) {
        let stands = self.meets_until(now).is_none();
        let others = self.peers.taking_part();
        if self.among.as_ref().is_some_and(|(with, stood)| with == others && *stood == stands) {
            return;
        }
        let mut among = BTreeSet::clone(others);
        among.extend(stands.then(|| self.me.name.clone()));
        self.among = Some((others.clone(), stands));
        out.engine.push(EngineCommand::Campaign { role: Role::Master, among });
    }

    /// What the master says holds here as well.
    fn follow_work(&mut self, out: &mut FleetOutcome) {
        let term = self.term.clone();
        let work = self.last_work.clone().filter(|work| Some(&work.number.term) == term.as_ref());
        let Some(work) = work else { return };
        self.failures.drop_answered(&work.answered);
        out.answers.extend(self.requests.close_answered(&work.answers));
        if let Some(on) = work.drains.get(&self.me.name) {
            self.drained = *on;
        }
        work.readmits.iter().for_each(|node| self.peers.readmit(node));
        if self.master.is_none() && self.stage != work.stage {
            self.stage = work.stage;
            out.events.push(FleetEvent::Stage { stage: work.stage });
        }
        if let FleetStage::Shutdown { again } = work.stage
            && !self.ending
        {
            self.ending = true;
            out.commands.push(FleetCommand::EndRun { again });
        }
    }
}

/// What ran there, and is gone with it.
fn lost_with<'a>(node: &'a Name, facts: &'a NodeFacts) -> impl Iterator<Item = FailureKey> + 'a {
    let active = facts.jobs.iter().filter(|(_, copy)| copy.state.is_active());
    active.map(move |(job, copy)| FailureKey {
        node: node.clone(),
        run: facts.run.clone(),
        job: job.clone(),
        incarnation: copy.incarnation,
    })
}
