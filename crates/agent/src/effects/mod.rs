//! What the node wants done, done: each command becomes a message, a timer or a question.

pub(crate) mod archive;
pub(crate) mod disabled;
pub(crate) mod env;
pub(crate) mod give_back;
pub(crate) mod identity;
pub(crate) mod outgoing;
pub(crate) mod pending_acks;
pub(crate) mod pushed_settings;
pub(crate) mod watch_files;

use crate::{
    agent::{About, Agent, End, Over},
    checks::{self, Begin},
    effects::identity::{NodeTask, Run},
    inputs::cron::Clocks,
    journal::plan_file::{self, OnDisk},
    trace,
};
use mainstay_core::{
    clock::Mono,
    explain,
    name::Name,
    node::{Command, Input},
    plan::{Listeners, Probe, Trigger},
    task::{TaskId, TaskOutcome, TaskSpec},
};
use mainstay_wire::link::ToKeeper;
use std::io;

impl Agent {
    /// `replanned`: the step that wants it has changed the plan.
    pub(crate) fn perform(&mut self, command: Command, replanned: bool) {
        let failed = match command {
            Command::Spawn { job, incarnation, args } => {
                if let Some(plan) = self.node.job_plan(job.as_str()) {
                    self.pushed_settings.spawned(&job, identity::live_settings(plan));
                }
                self.start(&job, Run::Incarnation { incarnation, args })
            }
            Command::RunTask { id, deadline, spec } => self.run_task(id, deadline, spec),
            Command::Stop { job, incarnation, signal, to } => {
                self.outgoing.send(&mut self.link, ToKeeper::Stop { job, incarnation, signal, to })
            }
            Command::Kill { job, incarnation } => {
                self.outgoing.send(&mut self.link, ToKeeper::Kill { job, incarnation })
            }
            Command::Signal { job, incarnation, signal, to } => self
                .outgoing
                .send(&mut self.link, ToKeeper::Signal { job, incarnation, signal, to }),
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
            Command::Rest { job, incarnation } => {
                self.outgoing.send(&mut self.link, ToKeeper::Rest { job, incarnation })
            }
            Command::Forget { job } => {
                self.checks.forget(&job);
                self.crons.forget(&job);
                self.facts.remove(&job);
                self.pushed_settings.forget(&job);
                self.meter.forget(&job);
                self.outgoing.send(&mut self.link, ToKeeper::Forget { job })
            }
            Command::Applied => {
                self.applied(replanned);
                None
            }
            Command::WriteInstances { watch } => {
                let known = self.node.watch(watch.as_str()).and_then(|it| it.instances().cloned());
                self.watch_files.put(&watch, known.unwrap_or_default());
                None
            }
            Command::Remember { job, summary } => {
                self.outgoing.send(&mut self.link, ToKeeper::Remember { job, summary })
            }
            Command::Exit { code, again } => {
                if self.node.ends_stuck(code) {
                    self.say_why_stuck();
                }
                self.over = Some(Over { code, again });
                None
            }
        };
        self.own.extend(failed);
    }

    /// Nobody can ask `why` once the run has ended.
    fn say_why_stuck(&self) {
        for job in self.node.why_stuck() {
            tracing::error!("{}", explain::stuck(job));
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
        match self.checks.begin(&job, incarnation, check) {
            Begin::Ask => {}
            Begin::UnderWay => return None,
            Begin::Overdue => return Some(checks::overdue(job, incarnation, check)),
        }
        match probe {
            Probe::Exec(_) => {
                self.checks.expect(&job, check, deadline);
                let id = TaskId::check(job, incarnation, check);
                let env = self.env_for(plan);
                let files = self.watch_files.pending();
                self.outgoing.run(&mut self.link, plan, Run::Task { id, deadline }, env, files)
            }
            Probe::Http(_) | Probe::Tcp(_) | Probe::Notify | Probe::Fd(_) => {
                self.checks.ask(&job, incarnation, check, probe, deadline);
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

    /// A plan is in force, another one or the same again.
    fn applied(&mut self, replanned: bool) {
        trace::set_level(&self.node.plan().node.log_level);
        self.api.send_replace(self.node.plan().api.clone());
        if replanned {
            self.plan_on_disk = match self.plan_on_disk {
                OnDisk::Current | OnDisk::Behind => OnDisk::Behind,
                OnDisk::Failed => OnDisk::Failed,
            };
            self.plan_writer.outdate();
            self.push_settings();
        }
        self.journal.keep_room(self.node.plan().jobs.len());
        self.meter.keep(self.node.plan());
        self.look_for_addresses();
        self.user_metrics.define(self.node.plan());
        self.listeners.send_if_modified(|listeners| {
            let wanted = Listeners::of(self.node.plan());
            *listeners != wanted && {
                *listeners = wanted;
                true
            }
        });
        for watch in self.discovery.apply(self.node.plan()) {
            self.watch_files.remove(&watch);
        }
        self.write_plan();
        self.say_ready();
        self.say(&ToKeeper::Reloaded);
        self.give_back.ask();
    }

    pub(crate) fn write_plan(&mut self) {
        if self.plan_on_disk == OnDisk::Current || self.plan_writer.is_writing() {
            return;
        }
        let About { run, run_dir, state_dir, .. } = self.about.clone();
        self.plan_writer.write(self.node.plan().clone(), move |plan| {
            plan_file::write(&run_dir, &state_dir, &run, plan)
        });
    }

    /// What an attempt to write the plan has come to.
    pub(crate) fn plan_written(&mut self, written: io::Result<()>) -> Result<(), End> {
        match self.plan_writer.is_outdated() {
            // Another plan is in force since: that one is to be there.
            true => self.write_plan(),
            false => {
                self.plan_on_disk = self.plan_on_disk.after(written, &self.about.run_dir);
                self.plan_writer.tell_waiting();
            }
        }
        Ok(())
    }

    /// What the keeper needs to know to stop the node by itself.
    pub(crate) fn say_ready(&mut self) {
        let stop_timeout = self.node.plan().node.stop_timeout.as_millis();
        let stop_timeout_ms = u64::try_from(stop_timeout).unwrap_or(u64::MAX);
        let unjournaled = self.journal.has_failed();
        self.say(&ToKeeper::Ready { stop_timeout_ms, unjournaled });
        if unjournaled {
            self.pending_acks.add(ToKeeper::Ready { stop_timeout_ms, unjournaled: false });
        }
    }

    fn run_task(
        &mut self,
        id: TaskId,
        deadline: Mono,
        spec: Option<Box<TaskSpec>>,
    ) -> Option<Input> {
        match (id.owner.job().cloned(), spec) {
            (_, Some(spec)) => {
                let env = self.env_for_node();
                self.outgoing.run_for_node(&mut self.link, NodeTask { id, deadline, spec, env })
            }
            (Some(job), None) if self.node.job_plan(job.as_str()).is_some() => {
                self.start(&job, Run::Task { id, deadline })
            }
            (_, None) => {
                let outcome = TaskOutcome::error("its job is no longer in the plan".to_owned(), 0);
                Some(Input::TaskDone { id, outcome })
            }
        }
    }

    fn start(&mut self, job: &Name, run: Run) -> Option<Input> {
        if self.address_missing {
            self.look_for_addresses();
        }
        let plan = self.node.job_plan(job.as_str())?;
        let env = self.env_for(plan);
        let files = self.watch_files.pending();
        self.outgoing.run(&mut self.link, plan, run, env, files)
    }
}
