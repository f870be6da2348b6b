//! How the master leads the fleet from one stage to the next.

use super::{AskedBy, Conciliation, JobStanding, Master, MasterCtx};
use crate::{
    app::{App, AppInput, AppPhase, RestReason},
    fleet::{Afterwards, CopyState, FleetEvent, FleetStage, Settlement, conciliate},
    name::Name,
};
use std::{collections::BTreeSet, time::Duration};

impl Master {
    pub(super) fn go_on_with_stage(&mut self, ctx: &mut MasterCtx<'_>) {
        let before = self.stage;
        match self.stage {
            FleetStage::Initialization => self.stage = FleetStage::Deployment,
            FleetStage::Deployment => self.go_on_deploying(ctx),
            FleetStage::Operation => {
                if self.is_busy() {
                    return;
                }
                if !self.conflicts(ctx).is_empty() {
                    self.stage = FleetStage::Conciliation;
                    self.conciliate(ctx, None, ctx.rules.conciliation);
                } else if self.start_stopped(ctx) {
                    // On its way.
                } else if self.repair || self.has_found_home(ctx) {
                    self.repair = true;
                    self.stage = FleetStage::Deployment;
                    self.go_on_deploying(ctx);
                } else {
                    self.give_args(ctx);
                }
            }
            FleetStage::Conciliation => {
                if self.is_busy() {
                    return;
                }
                if self.conflicts(ctx).is_empty() {
                    self.stage = FleetStage::Operation;
                } else {
                    self.conciliate(ctx, None, ctx.rules.conciliation);
                }
            }
            FleetStage::Restarting | FleetStage::ShuttingDown => self.go_on_ending(ctx),
            FleetStage::Shutdown { .. } => {}
        }
        if self.stage != before {
            ctx.events.push(FleetEvent::Stage { stage: self.stage });
        }
    }

    /// Apps start one sequence after the other; what waits for a node gets it.
    fn go_on_deploying(&mut self, ctx: &mut MasterCtx<'_>) {
        let plans = &ctx.catalogue.apps;
        if std::mem::take(&mut self.repair) {
            self.boot.begin(plans);
            self.mend(ctx);
        }
        loop {
            while self.go_on_in_step(ctx) {}
            let mut boot = self.boot;
            let is_starting =
                |app: &Name| self.apps.get(app).is_some_and(|it| it.starting().is_some());
            let due = boot.step(plans, is_starting);
            self.boot = boot;
            let Some(due) = due else { break };
            for app in due {
                if self.is_to_start(ctx, &app) || self.is_to_be_mended(ctx, &app) {
                    self.step_app(ctx, &app, AppInput::Start, Some(AskedBy::Rule));
                }
            }
        }
        let over = self.boot == crate::app::BootSequence::default();
        if over && !self.is_busy() && !self.start_beside(ctx) {
            self.stage = FleetStage::Operation;
        }
    }

    /// What a user had started beside its app before the whole fleet was off. `true`: there was some.
    fn start_beside(&mut self, ctx: &mut MasterCtx<'_>) -> bool {
        let beside = ctx.catalogue.jobs.iter().filter(|(job, rules)| {
            let runs = ctx.active(job).next().is_some();
            let untold = !self.jobs.contains_key(*job);
            untold && !runs && rules.place.start_sequence == 0 && ctx.wishes.is_wanted(job)
        });
        let beside: Vec<Name> = beside.map(|(job, _)| job.clone()).collect();
        for job in &beside {
            self.start(ctx, job, false, Some(AskedBy::Rule), None);
        }
        !beside.is_empty()
    }

    fn go_on_in_step(&mut self, ctx: &mut MasterCtx<'_>) -> bool {
        let plans = &ctx.catalogue.apps;
        let starting = |app: &Name| self.apps.get(app).is_some_and(|it| it.starting().is_some());
        let group = plans.iter().filter(|plan| self.boot.starts_now(plan) && starting(&plan.name));
        let group: Vec<Name> = group.map(|plan| plan.name.clone()).collect();
        if group.is_empty() || group.iter().any(|app| self.awaits(ctx, app)) {
            return false;
        }
        for app in &group {
            self.step_app(ctx, app, AppInput::Next, Some(AskedBy::Rule));
        }
        true
    }

    /// It is down, and nobody has ever said anything about it, or it is wanted: the whole fleet was
    /// off.
    fn is_to_start(&self, ctx: &MasterCtx<'_>, app: &Name) -> bool {
        let down = self.apps.get(app).is_none_or(|it| it.phase() == AppPhase::Stopped);
        let members = || ctx.catalogue.members(app).map(|(job, _)| job);
        let untold = members().all(|job| ctx.wishes.of(job).is_none());
        down && (untold || members().any(|job| ctx.wishes.is_wanted(job)))
    }

    /// Its start was aborted for want of a home, which has come since.
    fn is_to_be_mended(&self, ctx: &MasterCtx<'_>, app: &Name) -> bool {
        let Some(machine) = self.apps.get(app) else { return false };
        let mut members = ctx.catalogue.members(app);
        let aborted = members.any(|(job, _)| machine.reason(job) == Some(RestReason::StartAborted));
        let failed = |job: &Name| match self.jobs.get(job) {
            Some(JobStanding::Ended { well }) => !well,
            Some(
                JobStanding::NotPlaced(_)
                | JobStanding::OrderFailed { .. }
                | JobStanding::Lost { .. },
            ) => !self.orders.has(job),
            None | Some(JobStanding::Rest | JobStanding::Up { .. }) => false,
        };
        let mut required = ctx.catalogue.members(app).filter(|(_, it)| it.place.required);
        aborted && !machine.is_moving() && !required.any(|(job, _)| failed(job))
    }

    /// There is room for something that waits for it.
    fn has_found_home(&self, ctx: &MasterCtx<'_>) -> bool {
        self.jobs.iter().any(|(job, standing)| match standing {
            JobStanding::NotPlaced(_) => {
                let waits = ctx.wishes.of(job).is_some_and(|it| it.waits_for.is_none());
                let rules = ctx.catalogue.jobs.get(job);
                waits
                    && ctx.wishes.is_wanted(job)
                    && rules.is_some_and(|it| self.choose(ctx, job, it, None).is_ok())
            }
            JobStanding::Rest
            | JobStanding::Up { .. }
            | JobStanding::Ended { .. }
            | JobStanding::Lost { .. }
            | JobStanding::OrderFailed { .. } => false,
        })
    }

    /// What waits for a home, or for a node that is there again.
    fn mend(&mut self, ctx: &mut MasterCtx<'_>) {
        // One that is about to end is not there to have it.
        let is_there = |node: &Name| ctx.nodes.get(node).is_some_and(|it| !it.ending);
        let waits = |(job, standing): (&Name, &JobStanding)| {
            let wish = ctx.wishes.of(job)?;
            let waits = match (standing, &wish.waits_for) {
                (JobStanding::NotPlaced(_), None) => true,
                (JobStanding::Lost { .. } | JobStanding::NotPlaced(_), Some(node))
                | (JobStanding::Lost { node }, None) => is_there(node),
                (
                    JobStanding::Rest
                    | JobStanding::Up { .. }
                    | JobStanding::Ended { .. }
                    | JobStanding::OrderFailed { .. },
                    _,
                ) => false,
            };
            (waits && ctx.wishes.is_wanted(job)).then(|| job.clone())
        };
        let waiting: Vec<Name> = self.jobs.iter().filter_map(waits).collect();
        for job in waiting {
            let number = self.next_number();
            ctx.wishes.wait_for(number, &job, None);
            self.start(ctx, &job, true, Some(AskedBy::Rule), None);
        }
    }

    /// What is wanted and was stopped by a master that is none any more: of two masters both may have
    /// stopped the copy that the other one kept. `true`: there was some.
    fn start_stopped(&mut self, ctx: &mut MasterCtx<'_>) -> bool {
        let stopped = |(job, rules): (&Name, &crate::fleet::JobRules)| {
            // Of what nobody has told this master it knows no more than that.
            let rests = matches!(self.jobs.get(job), None | Some(JobStanding::Rest));
            // What somebody has stopped where it ran is left there; a copy by hand that has failed
            // was nobody's wish to stop.
            let by_hand = ctx
                .nodes
                .copies(job)
                .any(|(_, copy)| copy.by_hand && copy.state == CopyState::Stopped);
            // What has no sequence waits for nothing of its app, whatever has kept it at rest before a
            // user has asked another master for it.
            let has_sequence = rules.place.start_sequence > 0;
            let app = self.apps.get(&rules.app);
            let up = app.is_some_and(|it| {
                let held_back = has_sequence && it.reason(job).is_some();
                it.phase() == AppPhase::Running && !held_back
            });
            let free = ctx.active(job).next().is_none() && !by_hand;
            (rests && up && free && ctx.wishes.is_wanted(job)).then(|| job.clone())
        };
        let stopped: Vec<Name> = ctx.catalogue.jobs.iter().filter_map(stopped).collect();
        for job in &stopped {
            self.start(ctx, job, true, Some(AskedBy::Rule), None);
        }
        !stopped.is_empty()
    }

    /// Jobs that run more than once, and where.
    pub(super) fn conflicts(&self, ctx: &MasterCtx<'_>) -> BTreeSet<Name> {
        let twice = |job: &&Name| ctx.active(job).filter(|(_, state)| state.is_up()).count() > 1;
        let known = |job: &&Name| ctx.catalogue.jobs.contains_key(*job);
        ctx.nodes.jobs().filter(twice).filter(known).cloned().collect()
    }

    pub(super) fn conciliate(
        &mut self,
        ctx: &mut MasterCtx<'_>,
        only: Option<&Name>,
        rule: Conciliation,
    ) {
        for job in self.conflicts(ctx) {
            if only.is_some_and(|only| *only != job) {
                continue;
            }
            let uptime = |node: &Name| {
                let facts = ctx.nodes.get(node)?;
                let up = facts.now.since(facts.jobs.get(&job)?.since);
                Some(up + (ctx.age)(node))
            };
            let copies = ctx.active(&job).filter(|(_, state)| state.is_up());
            let copies: Vec<(Name, Duration)> =
                copies.map(|(node, _)| (node.clone(), uptime(node).unwrap_or_default())).collect();
            let nodes: Vec<Name> = copies.iter().map(|(node, _)| node.clone()).collect();
            ctx.events.push(FleetEvent::Conflict { job: job.clone(), nodes });
            let stop = match conciliate(rule, &copies) {
                Settlement::Wait => Vec::new(),
                Settlement::Keep { stop, node } => {
                    self.keep_args(ctx, &job, &node);
                    stop
                }
                Settlement::StopAll { stop, then } => {
                    self.then.insert(job.clone(), then);
                    stop
                }
            };
            for node in stop {
                self.stop_there(ctx, &job, &node);
            }
        }
    }

    /// All copies of a job that was in conflict are gone.
    pub(super) fn follow_up(&mut self, ctx: &mut MasterCtx<'_>) {
        let ordered = |job: &Name| self.orders.has(job);
        let gone = |job: &Name| ctx.active(job).next().is_none() && !ordered(job);
        // Another copy stays, or it could not be stopped: there is nothing to wait for.
        let stays = |job: &Name| !gone(job) && !ordered(job) && !self.is_going(ctx, job);
        let kept: Vec<Name> = self.then.keys().filter(|job| stays(job)).cloned().collect();
        for job in kept {
            self.then.remove(&job);
            self.moves.remove(&job);
        }
        let gone = |job: &Name| ctx.active(job).next().is_none() && !self.orders.has(job);
        let due: Vec<(Name, Afterwards)> = self
            .then
            .iter()
            .filter(|(job, _)| gone(job))
            .map(|(job, it)| (job.clone(), *it))
            .collect();
        for (job, then) in due {
            self.then.remove(&job);
            match then {
                Afterwards::Rest => {
                    self.wish(ctx, &job, Some(AskedBy::Rule), crate::job::Desired::Rest, None);
                    self.stands(&job, JobStanding::Rest);
                }
                Afterwards::Start => self.start(ctx, &job, false, Some(AskedBy::Rule), None),
                Afterwards::Fail => {
                    if let Some(app) = ctx.catalogue.jobs.get(&job).map(|it| it.app.clone()) {
                        self.stands(&job, JobStanding::Ended { well: false });
                        let jobs = BTreeSet::from([job]);
                        self.step_app(
                            ctx,
                            &app,
                            AppInput::Lost { jobs: &jobs },
                            Some(AskedBy::Rule),
                        );
                    }
                }
            }
        }
    }

    /// All apps go down, lowest stop_sequence first, those of one sequence in lock-step.
    fn go_on_ending(&mut self, ctx: &mut MasterCtx<'_>) {
        let there = ctx.catalogue.apps.iter().filter(|it| self.has_process(ctx, &it.name));
        let there: Vec<_> = there.collect();
        let Some(level) = there.iter().map(|plan| plan.stop_sequence).min() else {
            self.stage = FleetStage::Shutdown { again: self.stage == FleetStage::Restarting };
            return;
        };
        let group: Vec<Name> =
            there.iter().filter(|it| it.stop_sequence == level).map(|it| it.name.clone()).collect();
        let told =
            |app: &Name| self.apps.get(app).is_some_and(|it| it.phase() == AppPhase::Stopping);
        let (told, untold): (Vec<Name>, Vec<Name>) = group.into_iter().partition(told);
        for app in &untold {
            self.step_app(ctx, app, AppInput::Stop, None);
        }
        if untold.is_empty() && !told.iter().any(|app| self.awaits(ctx, app)) {
            for app in &told {
                self.step_app(ctx, app, AppInput::Next, None);
            }
        }
    }
}

impl Master {
    /// For those who ask how the apps are.
    pub(in crate::fleet) fn app_phases(&self) -> impl Iterator<Item = (&Name, AppPhase)> {
        self.apps.iter().map(|(name, app): (&Name, &App)| (name, app.phase()))
    }
}
