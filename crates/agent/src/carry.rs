//! What the node wants done, done: each command becomes a message, a timer or a question.

use crate::{
    agent::{About, Agent},
    applied::{self, OnDisk},
    cron::Clocks,
    identity::{self, Run},
    outside::Outside,
    trace,
};
use mainstay_core::{
    clock::Mono,
    name::Name,
    node::{Command, Input, TaskId, TaskKind},
    plan::{Probe, Trigger},
};
use mainstay_wire::link::ToKeeper;

impl Agent {
    pub(crate) fn carry_out(&mut self, command: Command) {
        let failed = match command {
            Command::Spawn { job, incarnation, args } => {
                if let Some(plan) = self.node.job_plan(job.as_str()) {
                    self.ruled.spawned(&job, identity::rules(plan));
                }
                self.start(&job, Run::Incarnation { incarnation, args })
            }
            Command::RunTask { id, deadline } => {
                self.start(&id.job.clone(), Run::Task { id, deadline })
            }
            Command::Stop { job, incarnation, signal, to } => {
                self.lanes.send(&mut self.link, ToKeeper::Stop { job, incarnation, signal, to })
            }
            Command::Kill { job, incarnation } => {
                self.lanes.send(&mut self.link, ToKeeper::Kill { job, incarnation })
            }
            Command::Signal { job, incarnation, signal, to } => {
                self.lanes.send(&mut self.link, ToKeeper::Signal { job, incarnation, signal, to })
            }
            Command::SetTimer { token, at } => {
                self.timers.set(token, at);
                None
            }
            Command::Probe { job, incarnation, check, deadline } => {
                self.probe(job, incarnation, check, deadline)
            }
            Command::ArmCron { job } => {
                self.arm(&job);
                None
            }
            Command::Announce { job, standing, note } => {
                if let Some(plan) = self.node.job_plan(job.as_str()) {
                    self.discovery.announce(plan, standing, note);
                }
                None
            }
            Command::Withdraw { job } => {
                self.discovery.withdraw(&job, self.node.job_plan(job.as_str()))
            }
            Command::Forget { job } => {
                self.probes.forget(&job);
                self.crons.forget(&job);
                self.facts.remove(&job);
                self.ruled.forget(&job);
                self.meter.forget(&job);
                self.lanes.send(&mut self.link, ToKeeper::Forget { job })
            }
            Command::Applied => {
                self.applied();
                None
            }
            Command::KeepDisabled { jobs } => {
                self.disabled.keep(jobs);
                None
            }
            Command::Exit { code } => {
                if self.node.ends_stuck(code) {
                    self.say_why_stuck();
                }
                self.over = Some(code);
                None
            }
        };
        self.own.extend(failed);
    }

    /// Nobody can ask `why` once the run has ended.
    fn say_why_stuck(&self) {
        for line in self.node.why_stuck() {
            tracing::error!("{line}");
        }
        tracing::error!("nothing can progress any more: the run ends");
    }

    fn probe(
        &mut self,
        job: Name,
        incarnation: u64,
        check: usize,
        deadline: Mono,
    ) -> Option<Input> {
        let plan = self.node.job_plan(job.as_str())?;
        let probe = &plan.checks.get(check)?.probe;
        if !self.probes.begin(&job, incarnation, check) {
            return None;
        }
        match probe {
            Probe::Exec(_) => {
                let id = TaskId { job, incarnation, what: TaskKind::Check(check) };
                let around = self.surroundings(plan);
                self.lanes.run(&mut self.link, plan, Run::Task { id, deadline }, around)
            }
            Probe::Http(_) | Probe::Tcp(_) | Probe::Notify | Probe::Fd(_) => {
                self.probes.ask(&job, incarnation, check, probe, deadline);
                None
            }
        }
    }

    fn arm(&mut self, job: &Name) {
        let plan = self.node.job_plan(job.as_str());
        if let Some(Trigger::Cron(cron)) = plan.and_then(|plan| plan.when.trigger.as_ref()) {
            self.crons.arm(job, cron, Clocks::now());
        }
    }

    /// A new plan is in force.
    fn applied(&mut self) {
        trace::set_level(&self.node.plan().node.log_level);
        self.api.send_replace(self.node.plan().api.clone());
        self.plan_on_disk = match self.plan_on_disk {
            OnDisk::Current | OnDisk::Behind => OnDisk::Behind,
            OnDisk::Failed => OnDisk::Failed,
        };
        self.meter.keep(self.node.plan());
        self.look_for_addresses();
        self.custom.define(self.node.plan());
        self.outside.send_if_modified(|outside| {
            let wanted = Outside::of(self.node.plan());
            *outside != wanted && {
                *outside = wanted;
                true
            }
        });
        self.discovery.apply(self.node.plan());
        self.write_plan();
        self.rule_anew();
        self.say_ready();
    }

    /// Many may leave one after the other; until the last one has, the journal knows.
    pub(crate) fn write_plan(&mut self) {
        if self.plan_on_disk == OnDisk::Current || self.node.jobs().any(|(_, job)| job.is_leaving())
        {
            return;
        }
        let About { run, run_dir, state_dir, .. } = &self.about;
        let written = applied::write(run_dir, state_dir, run, self.node.plan());
        self.plan_on_disk = self.plan_on_disk.after(written, run_dir);
    }

    /// What the keeper needs to know to stop the node by itself.
    pub(crate) fn say_ready(&mut self) {
        let stop_timeout = self.node.plan().node.stop_timeout.as_millis();
        let stop_timeout_ms = u64::try_from(stop_timeout).unwrap_or(u64::MAX);
        self.say(&ToKeeper::Ready { stop_timeout_ms });
    }

    fn start(&mut self, job: &Name, run: Run) -> Option<Input> {
        if self.address_missing {
            self.look_for_addresses();
        }
        let plan = self.node.job_plan(job.as_str())?;
        let around = self.surroundings(plan);
        self.lanes.run(&mut self.link, plan, run, around)
    }
}
