//! What a job sees of the world while it decides, and how it speaks.

use crate::{
    clock::Mono,
    discovery::Standing,
    event::{Kind, Outbox, Source},
    node::{Command, Token, Wait},
    plan::{Awaited, JobPlan, SignalTarget, Trigger},
    signal::Signal,
    task::{OpenTask, TaskKind, TaskOwner},
};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct JobCtx<'a> {
    pub(crate) plan: &'a JobPlan,
    /// Other jobs run before its stop signal.
    pub(crate) hooks: bool,
    /// Other jobs run after its end, and its next launch waits for them.
    pub(crate) stopped_hooks: bool,
    /// It runs for the end of another job.
    pub(crate) is_hook: bool,
    /// The node is stopping: nothing is launched, and stops have an end.
    pub(crate) shutting: Option<Shutting>,
    /// Nothing is announced.
    pub(crate) maintenance: bool,
    /// It is gone from the plan, and from here once its process is gone.
    pub(crate) leaving: bool,
    pub(crate) effects: Effects<'a>,
}

/// What the parts of a job want done. It only takes: no part sees what another has said.
#[derive(Debug)]
pub(crate) struct Effects<'a>(&'a mut Outbox);

impl<'a> Effects<'a> {
    pub(crate) fn new(out: &'a mut Outbox) -> Effects<'a> {
        Effects(out)
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Shutting {
    /// When whatever is left is killed, so that it is gone before the node's time is over.
    pub(crate) kill_by: Mono,
    /// That time has come, or somebody was impatient.
    pub(crate) killing: bool,
    /// Half of the time that the shutdown has.
    pub(crate) half: Duration,
}

impl Shutting {
    /// When a job that needs so long has its stop signal, whatever it waits for.
    pub(crate) fn latest_signal(&self, stop_timeout: Duration) -> Mono {
        self.kill_by.before(stop_timeout.min(self.half))
    }
}

impl JobCtx<'_> {
    pub(super) fn mono(&self) -> Mono {
        self.effects.0.now.mono
    }

    /// Wall clock, ns.
    pub(super) fn wall(&self) -> i64 {
        self.effects.0.now.wall
    }

    /// How many events there are, for [`JobCtx::said_since`].
    pub(super) fn events(&self) -> usize {
        self.effects.0.events.len()
    }

    /// Those of the latest events that others may wait for.
    pub(super) fn said_since(&self, events: usize) -> impl Iterator<Item = Awaited> {
        self.effects.0.events[events..].iter().filter_map(|it| it.kind.awaited())
    }

    pub(super) fn emit(&mut self, kind: Kind) {
        self.effects.0.emit(Source::Job(self.plan.name.clone()), kind);
    }

    pub(super) fn spawn(&mut self, incarnation: u64, args: &[String]) {
        let job = self.plan.name.clone();
        self.effects.0.command(Command::Spawn { job, incarnation, args: args.to_vec() });
    }

    pub(super) fn stop(&mut self, incarnation: u64) {
        let (job, signal, to) = (self.plan.name.clone(), self.plan.stop.signal, self.plan.stop.to);
        self.effects.0.command(Command::Stop { job, incarnation, signal, to });
    }

    pub(super) fn kill(&mut self, incarnation: u64) {
        let job = self.plan.name.clone();
        self.effects.0.command(Command::Kill { job, incarnation });
    }

    pub(super) fn rest(&mut self, incarnation: u64) {
        let job = self.plan.name.clone();
        self.effects.0.command(Command::Rest { job, incarnation });
    }

    pub(super) fn signal(&mut self, incarnation: u64, signal: Signal, to: SignalTarget) {
        let job = self.plan.name.clone();
        self.effects.0.command(Command::Signal { job, incarnation, signal, to });
    }

    pub(super) fn run_task(&mut self, incarnation: u64, kind: TaskKind, deadline: Mono) {
        let owner = TaskOwner::Job { job: self.plan.name.clone(), incarnation, kind };
        self.effects.0.run_task(OpenTask { owner, deadline, spec: None });
    }

    pub(super) fn probe(&mut self, incarnation: u64, check: usize, deadline: Mono) {
        let job = self.plan.name.clone();
        self.effects.0.command(Command::Probe { job, incarnation, check, deadline });
    }

    pub(super) fn arm_cron(&mut self) {
        self.effects.0.command(Command::ArmCron { job: self.plan.name.clone() });
    }

    /// The time that its cron expression named has come: on to the next. `false`: it has none.
    pub(super) fn rearm_cron(&mut self) -> bool {
        match self.plan.when.trigger {
            Some(Trigger::Cron(_)) => {
                self.arm_cron();
                true
            }
            Some(Trigger::Each(_) | Trigger::Interval(_)) | None => false,
        }
    }

    pub(super) fn announce(&mut self, standing: Standing, note: String) {
        let job = self.plan.name.clone();
        self.effects.0.command(Command::Announce { job, standing, note });
    }

    pub(super) fn withdraw(&mut self) {
        self.effects.0.command(Command::Withdraw { job: self.plan.name.clone() });
    }

    pub(super) fn wake(&mut self, incarnation: u64, wait: Wait, at: Mono) {
        let token = Token::Job { job: self.plan.name.clone(), incarnation, wait };
        self.effects.0.command(Command::SetTimer { token, at });
    }
}
