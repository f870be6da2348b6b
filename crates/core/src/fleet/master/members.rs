//! Apps of a fleet: facts about their jobs, wherever they run, go into [`crate::app`], its orders
//! become orders to nodes.

use super::{AskedBy, Desired, JobStanding, Master, MasterCtx, OrderKind, members_of};
use crate::{
    app::{
        App, AppFailure, AppInput, AppOrder, Facts as AppFacts, LIVES, Member, MemberProcess,
        MemberState,
    },
    clock::Mono,
    fleet::{Afterwards, CopyState, FleetEvent},
    name::Name,
};
use std::collections::{BTreeMap, BTreeSet};

impl Master {
    /// One decision of an app, and whatever it decides because of what has come of that.
    pub(super) fn step_app(
        &mut self,
        ctx: &mut MasterCtx<'_>,
        app: &Name,
        input: AppInput<'_>,
        asked: Option<AskedBy>,
    ) {
        let mut next = Some(input);
        while let Some(input) = next.take() {
            // What follows from a start is nobody's wish.
            let stops = match input {
                AppInput::Stop => asked,
                AppInput::Start
                | AppInput::Restart
                | AppInput::RestartInWaves { .. }
                | AppInput::Failed { .. }
                | AppInput::Lost { .. }
                | AppInput::Moved
                | AppInput::Next
                | AppInput::Due => asked.map(|_| AskedBy::Rule),
            };
            for order in self.decide_app(ctx, app, input) {
                match order {
                    AppOrder::Prepare { .. } => {}
                    AppOrder::Start { job } => {
                        self.start(ctx, &job, false, asked, None);
                        next = Some(AppInput::Moved);
                    }
                    AppOrder::FailOver { job } => self.start(ctx, &job, true, asked, None),
                    AppOrder::Stop { job } => self.stop(ctx, &job, stops),
                    AppOrder::Restart { job } => {
                        self.restart_in_wave(ctx, &job);
                        next = Some(AppInput::Moved);
                    }
                    AppOrder::StopWaves { job } => {
                        ctx.events.push(FleetEvent::WavesStopped { app: app.clone(), job });
                    }
                    AppOrder::Wake { at } => drop(self.wakes.insert(app.clone(), at)),
                }
            }
        }
    }

    fn decide_app(
        &mut self,
        ctx: &MasterCtx<'_>,
        app: &Name,
        input: AppInput<'_>,
    ) -> Vec<AppOrder> {
        let Some(rules) = ctx.catalogue.app(app) else { return Vec::new() };
        let mut machine = self.apps.remove(app).unwrap_or_else(|| new_app(ctx, app));
        let starts = machine.starting().is_some() && self.boot.starts_now(rules);
        let in_step = starts || self.stage.is_ending();
        let orders =
            self.with_facts(ctx, app, in_step, |facts| machine.step(ctx.now, rules, facts, input));
        self.apps.insert(app.clone(), machine);
        self.app_states = None;
        orders
    }

    fn with_facts<T>(
        &self,
        ctx: &MasterCtx<'_>,
        app: &Name,
        in_step: bool,
        ask: impl FnOnce(&AppFacts<'_>) -> T,
    ) -> T {
        let member = |(name, rules)| {
            let (state, process) = self.member(ctx, name);
            let rules: &crate::fleet::JobRules = rules;
            let healthy_at = self.healthy_at(ctx, name);
            Member { name, place: &rules.place, state, process, healthy_at }
        };
        let members = ctx.catalogue.members(app).map(member).collect();
        ask(&AppFacts { members, needed: &BTreeSet::new, in_step })
    }

    pub(super) fn awaits(&self, ctx: &MasterCtx<'_>, app: &Name) -> bool {
        let machine = self.apps.get(app);
        machine.is_some_and(|it| self.with_facts(ctx, app, true, |facts| it.awaits(facts)))
    }

    /// By app: what is wrong with its jobs.
    pub(super) fn failed_of_apps(
        &self,
        ctx: &MasterCtx<'_>,
    ) -> BTreeMap<Name, BTreeMap<Name, AppFailure>> {
        let failed = |(app, machine): (&Name, &App)| {
            let failed: BTreeMap<Name, AppFailure> = self.with_facts(ctx, app, false, |facts| {
                let failed = machine.failed(facts.members.iter().copied());
                failed.map(|(job, failure)| (job.clone(), failure)).collect()
            });
            (!failed.is_empty()).then(|| (app.clone(), failed))
        };
        self.apps.iter().filter_map(failed).collect()
    }

    pub(super) fn has_process(&self, ctx: &MasterCtx<'_>, app: &Name) -> bool {
        let mut members = ctx.catalogue.members(app);
        members.any(|(job, _)| self.member(ctx, job).1 != MemberProcess::None)
    }

    /// A job as its app sees it.
    fn member(&self, ctx: &MasterCtx<'_>, job: &Name) -> (MemberState, MemberProcess) {
        let ordered = self.orders.of(job).any(|(_, order)| match order.what {
            OrderKind::Start { .. } => !order.taken,
            OrderKind::Stop => false,
        });
        if ordered {
            return (MemberState::UnderWay, MemberProcess::Up);
        }
        let copies: Vec<(&Name, CopyState)> = ctx.active(job).collect();
        if copies.is_empty() && self.is_taken_back(job) {
            return (MemberState::UnderWay, MemberProcess::Stopping);
        }
        if copies.is_empty() {
            return (self.at_rest(job), MemberProcess::None);
        }
        if self.is_going(ctx, job) {
            return (MemberState::UnderWay, MemberProcess::Stopping);
        }
        let runs = copies.iter().any(|(_, state)| *state == CopyState::Running);
        match (runs, self.is_overdue(ctx, job)) {
            // It was to exit, and has not in its time.
            (true, true) => (MemberState::Ended { well: false }, MemberProcess::Up),
            (true, false) => (MemberState::Up, MemberProcess::Up),
            (false, _) => (MemberState::UnderWay, MemberProcess::Up),
        }
    }

    /// When a job that runs is healthy, on the clock of the master.
    fn healthy_at(&self, ctx: &MasterCtx<'_>, job: &Name) -> Option<Mono> {
        let mut copies = ctx.nodes.copies(job);
        if copies.any(|(_, copy)| copy.state.is_active() && copy.awaits_health) {
            return None;
        }
        match self.jobs.get(job) {
            Some(JobStanding::Up { since, .. }) => Some(since.after(LIVES)),
            None
            | Some(
                JobStanding::Rest
                | JobStanding::Ended { .. }
                | JobStanding::Lost { .. }
                | JobStanding::NotPlaced(_)
                | JobStanding::OrderFailed { .. },
            ) => Some(ctx.now),
        }
    }

    /// All of its copies are on their way out.
    pub(super) fn is_going(&self, ctx: &MasterCtx<'_>, job: &Name) -> bool {
        ctx.active(job).all(|(node, state)| {
            let order = self.orders.get(job, node);
            let stopped = order.is_some_and(|it| it.what == OrderKind::Stop);
            stopped || state == CopyState::Stopping
        })
    }

    /// It was to start somewhere, and is to stop there before anybody has seen it: it may run.
    pub(super) fn is_taken_back(&self, job: &Name) -> bool {
        self.orders.of(job).any(|(_, order)| order.what == OrderKind::Stop && !order.taken)
    }

    fn at_rest(&self, job: &Name) -> MemberState {
        match self.jobs.get(job) {
            None | Some(JobStanding::Rest) => MemberState::AtRest,
            Some(JobStanding::Ended { well }) => MemberState::Ended { well: *well },
            Some(
                JobStanding::Lost { .. }
                | JobStanding::NotPlaced(_)
                | JobStanding::OrderFailed { .. },
            ) => MemberState::Ended { well: false },
            // Its node is gone, and that has not been answered yet.
            Some(JobStanding::Up { .. }) => MemberState::UnderWay,
        }
    }

    fn is_overdue(&self, ctx: &MasterCtx<'_>, job: &Name) -> bool {
        self.overdue_at(ctx, job).is_some_and(|at| ctx.now >= at)
    }

    /// When the next one is.
    pub(super) fn next_overdue(&self, ctx: &MasterCtx<'_>) -> Option<Mono> {
        let exits = ctx.catalogue.jobs.iter().filter(|(_, rules)| rules.place.wait_exit);
        let due = exits.filter_map(|(job, _)| self.overdue_at(ctx, job));
        due.filter(|at| *at > ctx.now).min()
    }

    /// When a job that is to exit and runs should have.
    fn overdue_at(&self, ctx: &MasterCtx<'_>, job: &Name) -> Option<Mono> {
        let rules = ctx.catalogue.jobs.get(job).filter(|it| it.place.wait_exit)?;
        match self.jobs.get(job) {
            Some(JobStanding::Up { since, .. }) => Some(since.after(rules.place.wait_timeout)),
            None
            | Some(
                JobStanding::Rest
                | JobStanding::Ended { .. }
                | JobStanding::Lost { .. }
                | JobStanding::NotPlaced(_)
                | JobStanding::OrderFailed { .. },
            ) => None,
        }
    }

    /// Apps of which something runs that this master has not started are up.
    pub(super) fn recover_apps(&mut self, ctx: &MasterCtx<'_>) {
        for app in &ctx.catalogue.apps {
            let name = &app.name;
            if self.apps.contains_key(name) {
                continue;
            }
            let mut members = ctx.catalogue.members(name);
            if members.any(|(job, _)| ctx.active(job).next().is_some()) {
                let mut machine = App::default();
                machine.recover_up(ctx.now);
                self.apps.insert(name.clone(), machine);
                self.app_states = None;
            }
        }
        let apps = self.apps.len();
        self.apps.retain(|name, _| ctx.catalogue.app(name).is_some());
        if self.apps.len() != apps {
            self.app_states = None;
        }
        if !self.jobs.keys().all(|job| ctx.catalogue.jobs.contains_key(job)) {
            self.jobs.edit().retain(|job, _| ctx.catalogue.jobs.contains_key(job));
        }
    }

    pub(super) fn wake_apps(&mut self, ctx: &mut MasterCtx<'_>) {
        let due: Vec<Name> = self
            .wakes
            .iter()
            .filter(|(_, at)| **at <= ctx.now)
            .map(|(app, _)| app.clone())
            .collect();
        for app in due {
            self.wakes.remove(&app);
            self.step_app(ctx, &app, AppInput::Due, Some(AskedBy::Rule));
        }
        // One that was taken over from another master.
        for (app, machine) in &self.apps {
            if let Some(at) = machine.comes_back_at() {
                self.wakes.entry(app.clone()).or_insert(at);
            }
        }
    }

    pub(super) fn go_on_with_apps(&mut self, ctx: &mut MasterCtx<'_>) {
        let asked = (!self.stage.is_ending()).then_some(AskedBy::Rule);
        let starts = !self.starts_nothing();
        let moving: Vec<Name> = self
            .apps
            .iter()
            .filter(|(_, app)| app.is_moving() || (starts && app.is_in_waves()))
            .map(|(name, _)| name.clone())
            .collect();
        for app in moving {
            self.step_app(ctx, &app, AppInput::Moved, asked);
        }
    }

    /// The stopper: wherever it runs, and wherever it is about to.
    pub(super) fn stop(&mut self, ctx: &mut MasterCtx<'_>, job: &Name, asked: Option<AskedBy>) {
        let wanted = ctx.wishes.of(job).is_some_and(|it| it.desired == Desired::Run);
        if wanted || (asked == Some(AskedBy::User) && !ctx.wishes.is_disabled(job)) {
            self.wish(ctx, job, asked, Desired::Rest, None);
        }
        self.then.remove(job);
        self.moves.remove(job);
        let ordered = self.orders.of(job).map(|(node, _)| node.clone());
        let running = ctx.active(job).map(|(node, _)| node.clone());
        let nodes: BTreeSet<Name> = ordered.chain(running).collect();
        if nodes.is_empty() && asked == Some(AskedBy::User) {
            self.stands(job, JobStanding::Rest);
        }
        for node in nodes {
            self.stop_there(ctx, job, &node);
        }
    }

    /// As if a user had asked for it alone.
    fn restart_in_wave(&mut self, ctx: &mut MasterCtx<'_>, job: &Name) {
        if !ctx.wishes.is_disabled(job) {
            self.release(ctx, job);
            self.restart(ctx, job, None);
        }
    }

    /// A user wants it anew: it is started once nothing of it is left.
    pub(super) fn restart(
        &mut self,
        ctx: &mut MasterCtx<'_>,
        job: &Name,
        args: Option<Vec<String>>,
    ) {
        // One that is about to start runs as well.
        let starts = self.orders.of(job).filter(|(_, order)| order.what != OrderKind::Stop);
        let starts = starts.map(|(node, _)| node.clone());
        let running: BTreeSet<Name> =
            ctx.active(job).map(|(node, _)| node.clone()).chain(starts).collect();
        if running.is_empty() {
            return self.start(ctx, job, false, Some(AskedBy::User), args);
        }
        self.wish(ctx, job, Some(AskedBy::User), Desired::Run, args);
        running.iter().for_each(|node| self.stop_there(ctx, job, node));
        self.then.insert(job.clone(), Afterwards::Start);
    }

    /// What nobody wants and no app has in hand: it ran on the other side of a cut.
    pub(super) fn stop_unwanted(&mut self, ctx: &MasterCtx<'_>) {
        let mut unwanted = Vec::new();
        let rests = |job: &&Name| ctx.wishes.of(job).is_some_and(|it| it.desired != Desired::Run);
        let known = |job: &&Name| ctx.catalogue.jobs.contains_key(*job);
        for job in ctx.nodes.jobs().filter(rests).filter(known) {
            let runs = ctx.nodes.copies(job).filter(|(_, it)| it.state.is_up() && !it.by_hand);
            let free = runs.filter(|(node, _)| self.orders.get(job, node).is_none());
            unwanted.extend(free.map(|(node, _)| (node.clone(), job.clone())));
        }
        // Node by node.
        unwanted.sort();
        for (node, job) in unwanted {
            self.stop_there(ctx, &job, &node);
        }
    }

    pub(super) fn stop_there(&mut self, ctx: &MasterCtx<'_>, job: &Name, node: &Name) {
        let told = self.orders.get(job, node).is_some_and(|it| it.what == OrderKind::Stop);
        if !told {
            self.order(ctx, job, node, OrderKind::Stop);
        }
    }
}

/// Its members rest until their sequence has come.
fn new_app(ctx: &MasterCtx<'_>, app: &Name) -> App {
    let mut machine = App::default();
    members_of(ctx.catalogue, app).into_iter().for_each(|job| machine.admit(job));
    machine
}

impl<'a> MasterCtx<'a> {
    /// Where a job runs, in a broad sense.
    pub(super) fn active<'b>(
        &'b self,
        job: &'b Name,
    ) -> impl Iterator<Item = (&'b Name, CopyState)> {
        self.nodes.active(job)
    }
}
