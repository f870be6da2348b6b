//! The master: the one node that acts for the fleet.
//!
//! After everything that is heard it goes the same way, until nothing moves any more:
//!
//! 1. **observe**: what has become of orders and jobs, by the facts of the nodes that take part;
//! 2. **lost**: what stands in the failure queues, each once;
//! 3. **apps**: crashes and losses go to the apps they concern, the others go on with their sequences
//!    ([`crate::app`] decides, as on a node alone);
//! 4. **stage**: deploy, conciliate, end.
//!
//! What an app orders becomes an order to a node (`start`, `stop`): the starter chooses where, the
//! stopper finds where it runs. An order is sent again until its node shows that it has taken it; one
//! that is not taken within `order_timeout` has failed.

mod arguments;
mod load_count;
mod members;
mod moves;
mod observe;
mod open_orders;
mod roster;
mod stages;
mod start_plan;
mod starter;
mod work;

use open_orders::OrderKey;
pub use open_orders::{OpenOrder, OpenOrders};
pub(in crate::fleet) use roster::{Roster, RosterChange};
pub(in crate::fleet) use start_plan::KnownFleet;
pub use start_plan::{PlannedFate, PlannedJob};
pub use work::{JobStanding, Work};

use super::{
    Afterwards, Answered, AskedBy, FleetEvent, FleetRequest, FleetRules, FleetStage, JobOrder,
    LaterFields, Message, Number, OrderKind, RequestAnswer, RequestId, RunId, Shared, Term, Wishes,
    conciliation::Conciliation, rules::KnownJobs,
};
use crate::{
    app::{App, AppFailure, AppInput, AppState, BootSequence},
    clock::Mono,
    job::Desired,
    name::Name,
};
use load_count::LoadCount;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

/// An order that was not taken is sent again after so long.
const SEND_AGAIN: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub(super) struct Master {
    term: Term,
    counter: u64,
    stage: FleetStage,
    boot: BootSequence,
    apps: BTreeMap<Name, App>,
    /// The apps as the other nodes are told of them; `None`: one of them has changed.
    app_states: Option<Shared<BTreeMap<Name, AppState>>>,
    jobs: Shared<BTreeMap<Name, JobStanding>>,
    orders: OpenOrders,
    load_count: LoadCount,
    then: BTreeMap<Name, Afterwards>,
    answered: Answered,
    answers: BTreeMap<RequestId, RequestAnswer>,
    repair: bool,
    moves: BTreeMap<Name, Option<Name>>,
    drains: BTreeMap<Name, bool>,
    readmits: BTreeSet<Name>,
    ends: BTreeMap<Name, RunId>,
    failed: BTreeMap<Name, BTreeMap<Name, AppFailure>>,
    asked_on: BTreeMap<Name, Name>,
    /// Where a user has taken a node from the candidates of a job.
    disabled: BTreeSet<(Name, Name)>,
    /// When apps want to be woken.
    wakes: BTreeMap<Name, Mono>,
    sent: BTreeMap<OrderKey, Mono>,
    /// When the next job is overdue that was to exit.
    overdue_at: Option<Mono>,
    /// The last work that the other nodes were told.
    said: Option<Arc<Work>>,
}

/// What the master sees while it decides, and what it wants.
pub(super) struct MasterCtx<'a> {
    pub(super) now: Mono,
    pub(super) me: &'a Name,
    pub(super) rules: &'a FleetRules,
    pub(super) catalogue: &'a KnownJobs,
    /// Those that take part, this node among them.
    pub(super) nodes: &'a Roster,
    /// How long ago one of them has said so.
    pub(super) age: &'a dyn Fn(&Name) -> Duration,
    pub(super) wishes: &'a mut Wishes,
    pub(super) sends: Vec<(Name, Message)>,
    pub(super) events: Vec<FleetEvent>,
}

impl Master {
    /// A new master goes on with what the last one had in hand.
    pub(super) fn new(term: Term, last: Option<&Work>, now: Mono) -> Master {
        let stage = last.map(|work| work.stage).filter(|stage| stage.is_ending());
        let mut jobs = last.map(|work| work.jobs.clone()).unwrap_or_default();
        for standing in jobs.edit().values_mut() {
            if let JobStanding::Up { since, .. } = standing {
                *since = now;
            }
        }
        let mut master = Master {
            term,
            counter: 0,
            stage: stage.unwrap_or(FleetStage::Deployment),
            boot: BootSequence::default(),
            apps: last.map(|work| work.take_apps(now)).unwrap_or_default(),
            app_states: None,
            jobs,
            load_count: LoadCount::default(),
            orders: last.map(|work| work.orders.clone()).unwrap_or_default(),
            then: last.map(|work| work.then.clone()).unwrap_or_default(),
            answered: last.map(|work| work.answered.clone()).unwrap_or_default(),
            answers: last.map(|work| work.answers.clone()).unwrap_or_default(),
            repair: true,
            moves: last.map(|work| work.moves.clone()).unwrap_or_default(),
            drains: last.map(|work| work.drains.clone()).unwrap_or_default(),
            readmits: last.map(|work| work.readmits.clone()).unwrap_or_default(),
            ends: last.map(|work| work.ends.clone()).unwrap_or_default(),
            failed: BTreeMap::new(),
            asked_on: last.map(|work| work.asked_on.clone()).unwrap_or_default(),
            disabled: BTreeSet::new(),
            wakes: BTreeMap::new(),
            sent: BTreeMap::new(),
            overdue_at: None,
            said: None,
        };
        master.order_anew(now);
        master
    }

    /// What was ordered under an earlier term is ordered again: nobody obeys that any more.
    fn order_anew(&mut self, now: Mono) {
        for key in self.orders.keys() {
            let number = self.next_number();
            if let Some(order) = self.orders.edit(&key) {
                (order.number, order.since, order.taken) = (number, now, false);
            }
        }
        self.sent.clear();
    }

    pub(super) fn term(&self) -> &Term {
        &self.term
    }

    pub(super) fn stage(&self) -> FleetStage {
        self.stage
    }

    /// The same node under a later term: a cut has healed, and this master stays.
    pub(super) fn reign_on(&mut self, term: Term, other: Option<&Work>, now: Mono) {
        (self.term, self.counter) = (term, 0);
        self.order_anew(now);
        if let Some(other) = other {
            self.answered.merge(&other.answered);
        }
        self.repair = true;
    }

    /// A node has joined: what waits for one is looked at again.
    pub(super) fn joined(&mut self) {
        self.repair = true;
    }

    /// Whatever follows from what is known now.
    pub(super) fn go_on(&mut self, ctx: &mut MasterCtx<'_>) {
        self.recover_apps(ctx);
        self.drains.retain(|node, on| ctx.nodes.get(node).is_none_or(|it| it.drained != *on));
        self.readmits.retain(|node| ctx.nodes.values().any(|it| it.isolates.contains(node)));
        self.look_at_candidates(ctx);
        let crashed = self.observe(ctx);
        for job in crashed {
            if let Some(app) = ctx.catalogue.jobs.get(&job).map(|it| it.app.clone()) {
                self.step_app(ctx, &app, AppInput::Failed { job: &job }, Some(AskedBy::Rule));
            }
        }
        self.answer_losses(ctx);
        if !self.stage.is_ending() {
            self.stop_unwanted(ctx);
            self.follow_up(ctx);
        }
        self.wake_apps(ctx);
        self.go_on_with_apps(ctx);
        self.go_on_with_stage(ctx);
        self.failed = self.failed_of_apps(ctx);
        self.forget_who_was_asked(ctx);
        self.overdue_at = self.next_overdue(ctx);
        self.send_orders(ctx);
    }

    /// What a user has asked for, once.
    pub(super) fn take_request(
        &mut self,
        ctx: &mut MasterCtx<'_>,
        id: &RequestId,
        request: &FleetRequest,
    ) {
        // What this version does not know waits for a master that does.
        if self.answers.contains_key(id) || matches!(request, FleetRequest::Unknown(_)) {
            return;
        }
        let answer = self.requested(ctx, &id.node, request);
        self.answers.insert(id.clone(), answer);
    }

    /// Those who asked have their answers.
    pub(super) fn forget_answers(&mut self, is_open: impl Fn(&RequestId) -> bool) {
        self.answers.retain(|id, _| is_open(id));
    }

    /// `asked`: the node that was.
    fn requested(
        &mut self,
        ctx: &mut MasterCtx<'_>,
        asked: &Name,
        request: &FleetRequest,
    ) -> RequestAnswer {
        let starts_nothing = self.starts_nothing();
        let jobs = jobs_to_start(ctx.catalogue, request);
        self.asked_on.extend(jobs.into_iter().map(|job| (job, asked.clone())));
        match request {
            FleetRequest::StartApp { app }
            | FleetRequest::StopApp { app }
            | FleetRequest::RestartApp { app, .. }
            | FleetRequest::MoveApp { app, .. }
                if ctx.catalogue.app(app).is_none() =>
            {
                return RequestAnswer::NoSuchApp;
            }
            FleetRequest::StartJob { job, .. }
            | FleetRequest::StopJob { job }
            | FleetRequest::RestartJob { job, .. }
            | FleetRequest::DisableJob { job }
            | FleetRequest::EnableJob { job }
            | FleetRequest::MoveJob { job, .. }
                if !ctx.catalogue.jobs.contains_key(job) =>
            {
                return RequestAnswer::NoSuchJob;
            }
            FleetRequest::StartApp { .. }
            | FleetRequest::RestartApp { .. }
            | FleetRequest::StartJob { .. }
            | FleetRequest::RestartJob { .. }
            | FleetRequest::EnableJob { .. }
            | FleetRequest::MoveJob { .. }
            | FleetRequest::MoveApp { .. }
                if starts_nothing =>
            {
                return RequestAnswer::NotNow;
            }
            FleetRequest::StartJob { job, .. } | FleetRequest::RestartJob { job, .. }
                if ctx.wishes.is_disabled(job) =>
            {
                return RequestAnswer::Disabled;
            }
            FleetRequest::StartApp { app } => {
                self.want_all(ctx, app);
                self.step_app(ctx, app, AppInput::Start, Some(AskedBy::User));
            }
            FleetRequest::StopApp { app } => {
                self.rest_all(ctx, app);
                self.step_app(ctx, app, AppInput::Stop, Some(AskedBy::User));
            }
            FleetRequest::RestartApp { app, wave } => {
                self.want_all(ctx, app);
                let waves = wave.map(|size| AppInput::RestartInWaves { size });
                let input = waves.unwrap_or(AppInput::Restart);
                self.step_app(ctx, app, input, Some(AskedBy::Rule));
            }
            FleetRequest::StartJob { job, args } => {
                self.release(ctx, job);
                self.start(ctx, job, false, Some(AskedBy::User), args.clone());
            }
            FleetRequest::StopJob { job } => {
                self.release(ctx, job);
                self.stop(ctx, job, Some(AskedBy::User));
            }
            FleetRequest::RestartJob { job, args } => {
                self.release(ctx, job);
                self.restart(ctx, job, args.clone());
            }
            FleetRequest::DisableJob { job } => {
                self.release(ctx, job);
                self.stop(ctx, job, Some(AskedBy::User));
                self.wish(ctx, job, Some(AskedBy::User), Desired::Disabled, None);
            }
            FleetRequest::EnableJob { job } => {
                if ctx.wishes.is_disabled(job) {
                    self.wish(ctx, job, Some(AskedBy::User), Desired::Run, None);
                    self.start(ctx, job, false, Some(AskedBy::User), None);
                }
            }
            FleetRequest::MoveJob { job, to } => {
                return self.move_all(ctx, &BTreeSet::from([job.clone()]), to);
            }
            FleetRequest::MoveApp { app, to } => {
                return self.move_all(ctx, &members_of(ctx.catalogue, app), to);
            }
            FleetRequest::Unknown(_) => {}
            FleetRequest::Readmit { node } => drop(self.readmits.insert(node.clone())),
            FleetRequest::Drain { node, on } => return self.drain(ctx, node, *on),
            FleetRequest::HandOver { node } => return self.empty(ctx, node),
            FleetRequest::Conciliate { job, rule } => self.conciliate(ctx, job.as_ref(), *rule),
            FleetRequest::EndFleet { again } => {
                if !self.stage.is_ending() {
                    let runs = ctx.nodes.iter().map(|(node, it)| (node.clone(), it.run.clone()));
                    self.ends = runs.collect();
                    self.stage =
                        if *again { FleetStage::Restarting } else { FleetStage::ShuttingDown };
                }
            }
        }
        RequestAnswer::Begun
    }

    /// It has something else to do first, or ends.
    fn starts_nothing(&self) -> bool {
        match self.stage {
            FleetStage::Initialization
            | FleetStage::Conciliation
            | FleetStage::Restarting
            | FleetStage::ShuttingDown
            | FleetStage::Shutdown { .. } => true,
            FleetStage::Deployment | FleetStage::Operation => false,
        }
    }

    /// A user wants an app: also those of its jobs that a user had stopped, but not what is disabled.
    fn want_all(&mut self, ctx: &mut MasterCtx<'_>, app: &Name) {
        for job in members_of(ctx.catalogue, app) {
            let rules = ctx.catalogue.jobs.get(&job).filter(|_| !ctx.wishes.is_disabled(&job));
            if rules.is_some_and(|it| it.place.start_sequence > 0) {
                self.wish(ctx, &job, Some(AskedBy::User), Desired::Run, None);
            }
        }
    }

    /// A user wants an app to rest: all of its jobs, also those that the fleet stops anyway.
    fn rest_all(&mut self, ctx: &mut MasterCtx<'_>, app: &Name) {
        for job in members_of(ctx.catalogue, app) {
            if !ctx.wishes.is_disabled(&job) {
                self.wish(ctx, &job, Some(AskedBy::User), Desired::Rest, None);
            }
        }
    }

    /// A user decides about a job itself: its app has no reason for it any more.
    fn release(&mut self, ctx: &MasterCtx<'_>, job: &Name) {
        let app = ctx.catalogue.jobs.get(job).map(|it| &it.app);
        if let Some(app) = app.and_then(|app| self.apps.get_mut(app)) {
            app.release(job);
            self.app_states = None;
        }
    }

    fn next_number(&mut self) -> Number {
        self.counter += 1;
        Number { term: self.term.clone(), counter: self.counter }
    }

    fn order(&mut self, ctx: &MasterCtx<'_>, job: &Name, node: &Name, what: OrderKind) {
        let key = OrderKey { job: job.clone(), node: node.clone() };
        let number = self.next_number();
        self.sent.remove(&key);
        let order = OpenOrder { number, what, since: ctx.now, taken: false };
        self.orders.insert(key.clone(), order);
        self.count_order(ctx, &key);
    }

    /// It is done, or given up.
    fn close_order(&mut self, ctx: &MasterCtx<'_>, key: &OrderKey) {
        self.orders.remove(key);
        self.count_order(ctx, key);
    }

    /// Where a job is from now on.
    fn stands(&mut self, job: &Name, standing: JobStanding) {
        if self.jobs.get(job) != Some(&standing) {
            self.jobs.edit().insert(job.clone(), standing);
        }
    }

    fn wish(
        &mut self,
        ctx: &mut MasterCtx<'_>,
        job: &Name,
        asked: Option<AskedBy>,
        desired: Desired,
        args: Option<Vec<String>>,
    ) {
        let Some(asked) = asked else { return };
        let same =
            ctx.wishes.of(job).is_some_and(|it| it.desired == desired && it.waits_for.is_none());
        if same && asked == AskedBy::Rule && args.is_none() {
            return;
        }
        let number = self.next_number();
        ctx.wishes.write(number, job, asked, desired, args);
    }

    /// What is not taken yet, in time and again.
    fn send_orders(&mut self, ctx: &mut MasterCtx<'_>) {
        for (job, node, order) in self.orders.iter().filter(|(_, _, it)| !it.taken) {
            let key = OrderKey { job: job.clone(), node: node.clone() };
            if self.sent.get(&key).is_some_and(|at| ctx.now.since(*at) < SEND_AGAIN) {
                continue;
            }
            self.sent.insert(key, ctx.now);
            let (number, job, what) = (order.number.clone(), job.clone(), order.what.clone());
            ctx.sends.push((node.clone(), Message::Order(JobOrder { number, job, what })));
        }
        self.sent.retain(|key, _| self.orders.get(&key.job, &key.node).is_some());
    }

    /// What it has in hand, under a new number if that has changed.
    pub(super) fn work(&mut self, now: Mono) -> Arc<Work> {
        let apps = &self.apps;
        let states = || apps.iter().map(|(name, app)| (name.clone(), app.hand_over())).collect();
        let apps = self.app_states.get_or_insert_with(|| Shared::new(states())).clone();
        let mut work = Work {
            number: Number { term: self.term.clone(), counter: self.counter },
            now,
            stage: self.stage,
            boot: self.boot,
            apps,
            jobs: self.jobs.clone(),
            orders: self.orders.clone(),
            then: self.then.clone(),
            answered: self.answered.clone(),
            answers: self.answers.clone(),
            repair: self.repair,
            moves: self.moves.clone(),
            drains: self.drains.clone(),
            readmits: self.readmits.clone(),
            ends: self.ends.clone(),
            failed: self.failed.clone(),
            asked_on: self.asked_on.clone(),
            later: LaterFields::default(),
        };
        if let Some(said) = &self.said
            && said.number.term == self.term
            && said.is_same(&work)
        {
            return said.clone();
        }
        work.number = self.next_number();
        let work = Arc::new(work);
        self.said = Some(work.clone());
        work
    }

    /// When something is to happen without anybody saying anything.
    pub(super) fn next_wake(&self, ctx_now: Mono) -> Option<Mono> {
        let again = (!self.orders.is_empty()).then(|| ctx_now.after(SEND_AGAIN));
        let overdue = self.overdue_at.filter(|at| *at > ctx_now);
        self.wakes.values().copied().chain(again).chain(overdue).min()
    }

    fn is_busy(&self) -> bool {
        !self.orders.is_empty() || self.apps.values().any(App::is_moving)
    }
}

/// What a user wants to start.
fn jobs_to_start(catalogue: &KnownJobs, request: &FleetRequest) -> BTreeSet<Name> {
    match request {
        FleetRequest::StartApp { app } | FleetRequest::RestartApp { app, .. } => {
            members_of(catalogue, app)
        }
        FleetRequest::StartJob { job, .. }
        | FleetRequest::RestartJob { job, .. }
        | FleetRequest::EnableJob { job } => BTreeSet::from([job.clone()]),
        FleetRequest::StopApp { .. }
        | FleetRequest::StopJob { .. }
        | FleetRequest::DisableJob { .. }
        | FleetRequest::MoveJob { .. }
        | FleetRequest::MoveApp { .. }
        | FleetRequest::Drain { .. }
        | FleetRequest::HandOver { .. }
        | FleetRequest::Readmit { .. }
        | FleetRequest::Conciliate { .. }
        | FleetRequest::EndFleet { .. }
        | FleetRequest::Unknown(_) => BTreeSet::new(),
    }
}

/// What concerns all members of an app.
fn members_of(catalogue: &KnownJobs, app: &Name) -> BTreeSet<Name> {
    catalogue.members(app).map(|(job, _)| job.clone()).collect()
}
