//! The apps of one node: facts about its jobs go into [`crate::app`], its orders go to the jobs.

use super::{Command, JobId, Node, Refusal, Token, state::NodeStage};
use crate::{
    app::{
        App, AppFailure, AppInput, AppOrder, AppPhase, Facts, LIVES, Member, MemberProcess,
        MemberState, RestReason,
    },
    clock::Mono,
    event::{Kind, Outbox, Source},
    job::{Desired, Force, Health, Job, JobInput, Phase},
    name::Name,
    plan::{AppPlan, JobPlan},
};
use std::collections::BTreeSet;

/// An app as observers see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppSummary<'a> {
    pub plan: &'a AppPlan,
    pub phase: AppPhase,
    pub failure: AppFailure,
}

impl Node {
    /// In the order of the file.
    pub fn apps(&self) -> impl Iterator<Item = AppSummary<'_>> {
        self.jobs.plan().apps.iter().map(|plan| {
            let machine = self.app(&plan.name);
            let members = self.members(&plan.name).map(|(_, member)| member);
            AppSummary {
                plan,
                phase: machine.map_or(AppPhase::Stopped, App::phase),
                failure: machine.map(|app| app.failure(members)).unwrap_or_default(),
            }
        })
    }

    /// The jobs of an app that something is wrong with.
    #[must_use]
    pub fn failed_of_app(&self, app: &str) -> Vec<(Name, AppFailure)> {
        let Some(name) = self.jobs.plan().app(app).map(|plan| &plan.name) else {
            return Vec::new();
        };
        let members = self.members(name).map(|(_, member)| member);
        let failed = self.app(name).map(|machine| machine.failed(members));
        failed.into_iter().flatten().map(|(job, failure)| (job.clone(), failure)).collect()
    }

    /// An app that rests since it has failed more often than it may be restarted.
    #[must_use]
    pub fn is_app_used_up(&self, app: &str) -> bool {
        self.apps.get(app).is_some_and(App::is_used_up)
    }

    /// When an app that failed starts again by itself.
    #[must_use]
    pub fn app_comes_back_at(&self, app: &str) -> Option<Mono> {
        self.apps.get(app)?.comes_back_at()
    }

    /// Whether an app that is down is about to start again.
    pub(super) fn is_app_coming_back(&self) -> bool {
        self.apps.values().any(App::will_come_back)
    }

    /// The wait of an app is over.
    pub(super) fn app_due(&mut self, out: &mut Outbox, app: &Name) {
        match self.state.stage {
            NodeStage::Starting | NodeStage::Stopping(_) => {}
            NodeStage::Running => self.step_app(out, app, AppInput::Due),
        }
    }

    /// A new agent goes on waiting.
    pub(super) fn resume_apps(&self, out: &mut Outbox) {
        for (app, machine) in &self.apps {
            if let Some(at) = machine.comes_back_at() {
                out.command(Command::SetTimer { token: Token::App { app: app.clone() }, at });
            }
        }
    }

    /// The jobs that an app which is starting waits for, and their sequence.
    #[must_use]
    pub fn starting(&self, app: &str) -> Option<(u32, Vec<&Name>)> {
        let app = &self.jobs.plan().app(app)?.name;
        let sequence = self.app(app)?.starting()?;
        let members = self.members(app).map(|(_, member)| member);
        let awaited = members.filter(|it| it.place.start_sequence == sequence && it.is_awaited());
        Some((sequence, awaited.map(|member| member.name).collect()))
    }

    /// Why a job rests, where that is the doing of its app.
    #[must_use]
    pub fn rest_reason(&self, job: &str) -> Option<RestReason> {
        self.rest_reason_of(self.job_plan(job)?, self.job(job)?)
    }

    pub(super) fn rest_reason_of(&self, plan: &JobPlan, job: &Job) -> Option<RestReason> {
        self.app(plan.app.as_ref()?)?.reason(&plan.name).filter(|_| job.rests())
    }

    pub(super) fn app_asked(
        &mut self,
        out: &mut Outbox,
        app: &Name,
        input: AppInput<'_>,
    ) -> Result<(), Refusal> {
        if self.jobs.plan().app(app.as_str()).is_none() {
            return Err(Refusal::NoSuchApp(app.to_string()));
        }
        if self.state.shutting().is_some() {
            return Err(Refusal::NodeStopping);
        }
        let of_app = self.jobs.plan().jobs.iter().filter(|job| job.app.as_ref() == Some(app));
        let of_app: Vec<Name> = of_app.map(|job| job.name.clone()).collect();
        self.leave_out_of_joint_stop(&of_app);
        self.step_app(out, app, input);
        Ok(())
    }

    /// The apps that start by themselves, lowest sequence first.
    pub(super) fn start_apps(&mut self, out: &mut Outbox) {
        if self.plan().fleet.is_some() {
            return self.order_hooks(out);
        }
        self.state.edit().boot.begin(&self.jobs.plan().apps);
        self.go_on_with_boot(out);
    }

    /// In a fleet its master has the apps in hand. Jobs of theirs that it does not place wait for the
    /// ends of others, on every node.
    fn order_hooks(&mut self, out: &mut Outbox) {
        for id in self.jobs.ids() {
            let plan = self.jobs.plan_of(id);
            if plan.app.is_some() && !self.plan().is_placed(plan) {
                self.step_job(out, id, JobInput::Ordered);
            }
        }
    }

    /// The journal is lost: an app of which something was started is up.
    pub(super) fn recover_apps(&mut self, out: &Outbox) {
        self.apps.values_mut().for_each(App::begin);
        let started = |(plan, job): (&JobPlan, &Job)| {
            let runs = job.desired() == Desired::Run && job.incarnation() > 0;
            plan.app.clone().filter(|_| runs)
        };
        let up: BTreeSet<Name> = self.jobs().filter_map(started).collect();
        for app in up {
            self.apps.entry(app).or_default().recover_up(out.now.mono);
        }
    }

    /// What may go on because something has moved.
    pub(super) fn go_on_with_apps(&mut self, out: &mut Outbox) {
        match self.state.stage {
            NodeStage::Starting | NodeStage::Stopping(_) => return,
            NodeStage::Running => {}
        }
        let moving = |app: &&AppPlan| {
            self.app(&app.name).is_some_and(|it| it.is_moving() || it.is_in_waves())
        };
        let moving: Vec<Name> =
            self.plan().apps.iter().filter(moving).map(|app| app.name.clone()).collect();
        moving.iter().for_each(|app| self.step_app(out, app, AppInput::Moved));
        self.go_on_with_boot(out);
    }

    /// The apps that start now come to their next sequence together. `true`: they have.
    fn go_on_in_step(&mut self, out: &mut Outbox) -> bool {
        let starting = |app: &&AppPlan| {
            self.state.boot.starts_now(app)
                && self.app(&app.name).is_some_and(|it| it.starting().is_some())
        };
        let group: Vec<Name> =
            self.plan().apps.iter().filter(starting).map(|app| app.name.clone()).collect();
        if group.is_empty() || group.iter().any(|app| self.is_app_awaiting(app)) {
            return false;
        }
        group.iter().for_each(|app| self.step_app(out, app, AppInput::Next));
        true
    }

    fn is_app_awaiting(&self, app: &Name) -> bool {
        self.app(app).is_some_and(|machine| self.with_facts(app, true, |it| machine.awaits(it)))
    }

    fn go_on_with_boot(&mut self, out: &mut Outbox) {
        loop {
            while self.go_on_in_step(out) {}
            let mut boot = self.state.boot;
            let due = boot.step(&self.jobs.plan().apps, |app| {
                self.app(app).is_some_and(|app| app.starting().is_some())
            });
            if boot != self.state.boot {
                self.state.edit().boot = boot;
            }
            let Some(due) = due else { return };
            due.iter().for_each(|app| self.step_app(out, app, AppInput::Start));
        }
    }

    /// A job has come to another phase: has its app lost it?
    pub(super) fn tell_app_of_failure(&mut self, out: &mut Outbox, id: JobId) {
        let (plan, job) = self.jobs.both(id);
        let Some(app) = &plan.app else { return };
        let here = !self.jobs.is_leaving(id) && self.plan().fleet.is_none();
        let failed = job.ended_for_good() == Some(false) && here;
        if failed && self.state.shutting().is_none() {
            let (app, job) = (app.clone(), plan.name.clone());
            self.step_app(out, &app, AppInput::Failed { job: &job });
        }
    }

    /// One decision of an app, and whatever it decides because of what has come of that.
    fn step_app(&mut self, out: &mut Outbox, app: &Name, input: AppInput<'_>) {
        let mut next = Some(input);
        while let Some(input) = next.take() {
            for order in self.decide_app(out, app, input) {
                match order {
                    AppOrder::Prepare { jobs } => self.announce_launches(out, &jobs),
                    // Here is the only node: nothing fails over from it.
                    AppOrder::Start { job } | AppOrder::FailOver { job } => {
                        self.tell_job(out, &job, JobInput::Ordered);
                        next = Some(AppInput::Moved);
                    }
                    AppOrder::Stop { job } => {
                        self.order(out, &job, JobInput::Stop(Force::Grace));
                    }
                    AppOrder::Restart { job } => {
                        self.restart_in_wave(out, &job);
                        next = Some(AppInput::Moved);
                    }
                    AppOrder::StopWaves { job } => {
                        out.emit(Source::Job(job), Kind::WavesStopped { app: app.clone() });
                    }
                    AppOrder::Wake { at } => {
                        let token = Token::App { app: app.clone() };
                        out.command(Command::SetTimer { token, at });
                    }
                }
            }
        }
    }

    /// As if a user had asked for it alone.
    fn restart_in_wave(&mut self, out: &mut Outbox, job: &Name) {
        let disabled = self.job(job.as_str()).is_none_or(|it| it.desired() == Desired::Disabled);
        if !disabled {
            self.announce_launches(out, &BTreeSet::from([job.clone()]));
            self.tell_job(out, job, JobInput::Restart { args: None });
        }
    }

    fn decide_app(&mut self, out: &mut Outbox, app: &Name, input: AppInput<'_>) -> Vec<AppOrder> {
        let mut machine = self.apps.remove(app).unwrap_or_default();
        let orders = self.jobs.plan().app(app.as_str()).map(|plan| {
            let in_step = machine.starting().is_some() && self.state.boot.starts_now(plan);
            self.with_facts(app, in_step, |facts| machine.step(out.now.mono, plan, facts, input))
        });
        self.apps.insert(app.clone(), machine);
        orders.unwrap_or_default()
    }

    /// What an app may know of its members now.
    fn with_facts<T>(&self, app: &Name, in_step: bool, ask: impl FnOnce(&Facts<'_>) -> T) -> T {
        let (ids, members): (Vec<JobId>, Vec<Member<'_>>) = self.members(app).unzip();
        let name = |id: JobId| self.jobs.name(id).clone();
        let needed = || self.needed(&ids).into_iter().map(name).collect();
        ask(&Facts { members, needed: &needed, in_step })
    }

    /// As `tell_job`, but nothing is launched because of it.
    fn order(&mut self, out: &mut Outbox, job: &Name, input: JobInput<'_>) {
        if let Some(id) = self.jobs.id(job.as_str()) {
            self.step_job(out, id, input);
        }
    }

    /// Somebody else than its app has decided about a job.
    pub(super) fn release(&mut self, job: &Name) {
        let plan = self.jobs.id(job.as_str()).map(|id| self.jobs.plan_of(id));
        let app = plan.and_then(|plan| plan.app.as_ref());
        if let Some(app) = app.and_then(|app| self.apps.get_mut(app)) {
            app.release(job);
        }
    }

    /// The node stops: no app has a say any more.
    pub(super) fn release_all(&mut self) {
        self.apps.values_mut().for_each(App::release_all);
    }

    /// A new plan: new apps start, those that are gone are forgotten, and a new job of an app that
    /// is up starts with it.
    pub(super) fn change_apps(&mut self, out: &mut Outbox, before: &[AppPlan]) {
        if self.plan().fleet.is_some() {
            return;
        }
        let apps: Vec<AppPlan> = self.jobs.plan().apps.clone();
        for app in &apps {
            let known = before.iter().any(|other| other.name == app.name);
            if !known && app.start_sequence > 0 {
                self.step_app(out, &app.name, AppInput::Start);
            }
        }
    }

    /// Another plan is in force: apps and watches that are gone are forgotten, and jobs that have
    /// changed their app rest for the reason they had.
    pub(super) fn forget_what_is_not_planned(&mut self) {
        let jobs = &self.jobs;
        let mut moved = Vec::new();
        for (name, app) in &mut self.apps {
            let is_member = |job: &Name| {
                let job = jobs.id(job.as_str()).filter(|id| !jobs.is_leaving(*id));
                job.is_some_and(|id| jobs.plan_of(id).app.as_ref() == Some(name))
            };
            moved.extend(app.dismiss(is_member));
        }
        self.apps.retain(|name, _| jobs.plan().app(name.as_str()).is_some());
        self.watches.retain_known(|name| jobs.plan().watch(name.as_str()).is_some());
        self.remotes.retain_known(|job| {
            let id = jobs.id(job.as_str()).filter(|id| !jobs.is_leaving(*id));
            id.is_some_and(|id| jobs.plan_of(id).app.is_some())
        });
        moved.into_iter().for_each(|(job, reason)| self.recall_reason(job, reason));
    }

    pub(super) fn recall_reason(&mut self, job: Name, reason: RestReason) {
        if let Some(app) = self.app_of(&job) {
            app.recall(job, reason);
        }
    }

    /// Jobs that are new in an app wait for their sequence.
    pub(super) fn admit(&mut self, jobs: Vec<Name>) {
        for job in jobs {
            if let Some(app) = self.app_of(&job) {
                app.admit(job);
            }
        }
    }

    fn app_of(&mut self, job: &Name) -> Option<&mut App> {
        let id = self.jobs.id(job.as_str()).filter(|id| !self.jobs.is_leaving(*id))?;
        let app = self.jobs.plan().app_of(self.jobs.plan_of(id))?;
        Some(self.apps.entry(app.name.clone()).or_default())
    }

    /// A job that is new in the plan is let go at once if its app has started.
    pub(super) fn is_ordered_at_once(&self, job: &JobPlan) -> bool {
        match (&job.app, self.jobs.plan().app_of(job)) {
            (None, _) => job.autostart,
            (Some(_), None) => false,
            (Some(_), Some(_)) if self.plan().fleet.is_some() => !self.plan().is_placed(job),
            (Some(app), Some(_)) => {
                self.app(app).is_some_and(|app| app.starts_newcomer(&job.place))
            }
        }
    }

    /// The sequence in which its app will come to it, while the app is on its way there.
    pub(super) fn awaited_sequence(&self, id: JobId) -> Option<u32> {
        let (plan, job) = self.jobs.both(id);
        let app = self.jobs.plan().app_of(plan)?;
        let machine = self.app(&app.name)?;
        let comes = machine.awaited_sequence(app, &self.state.boot, &plan.name, &plan.place);
        comes.filter(|_| job.rests())
    }

    /// What is on its way out of the plan belongs to no app any more.
    fn members(&self, app: &Name) -> impl Iterator<Item = (JobId, Member<'_>)> {
        let mates = self.jobs.iter().filter(move |(id, plan, _)| {
            plan.app.as_ref() == Some(app) && !self.jobs.is_leaving(*id)
        });
        mates.map(|(id, plan, job)| (id, member(plan, job)))
    }

    /// `None`: it is down, and was never anything else.
    fn app(&self, name: &Name) -> Option<&App> {
        self.apps.get(name)
    }
}

fn member<'a>(plan: &'a JobPlan, job: &Job) -> Member<'a> {
    let state = match (job.ended_for_good(), job.desired()) {
        (Some(well), _) => MemberState::Ended { well },
        (None, Desired::Disabled) => MemberState::AtRest,
        (None, Desired::Rest) if job.phase() == Phase::Stopped => MemberState::AtRest,
        (None, Desired::Run | Desired::Rest) if job.is_as_desired() => MemberState::Up,
        (None, Desired::Run | Desired::Rest) => MemberState::UnderWay,
    };
    let process = match job.phase() {
        Phase::Starting | Phase::Running if job.is_hook_run() => MemberProcess::HookRun,
        Phase::Starting | Phase::Running => MemberProcess::Up,
        Phase::Stopping => MemberProcess::Stopping,
        Phase::Stopped | Phase::Backoff | Phase::Exited | Phase::Fatal | Phase::Unknown => {
            MemberProcess::None
        }
    };
    let healthy_at = match (plan.checks.is_empty(), job.health()) {
        (true, _) => Some(job.up_since().unwrap_or_default().after(LIVES)),
        (false, Health::Healthy) => Some(Mono::default()),
        (false, Health::Unknown | Health::Unhealthy) => None,
    };
    Member { name: &plan.name, place: &plan.place, state, process, healthy_at }
}
