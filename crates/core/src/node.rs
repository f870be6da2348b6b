//! One node: its jobs, its start, its shutdown, its exit code.
//!
//! The agent turns the world into [`Input`]s and [`Command`]s into actions. For every input it
//! journals what [`Node::step`] returned (events and the jobs that were touched) *before* anything
//! of it becomes visible, so an agent that dies in between is followed by one that goes on:
//!
//! 1. step;
//! 2. journal events, touched jobs and the life if it changed, as one record;
//! 3. publish the events, acknowledge the keeper, carry the commands out.
//!
//! What a node decides about one of its jobs is in [`crate::job`]; here is what concerns all of
//! them: boot, takeover, shutdown (`shutdown`).

mod command;
mod input;
mod life;
mod shutdown;

pub use command::{Command, Outcome, TaskId, TaskKind, Token, Wait};
pub use input::{Held, Input, Refusal, Request};
pub use life::{Life, NodePhase};

use crate::{
    clock::Now,
    event::{Kind, Source},
    exit::Exit,
    job::{Force, Job, Turn},
    name::Name,
    outbox::Outbox,
    plan::{JobPlan, Plan},
    signal::Signal,
};
use life::Course;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone)]
pub struct Node {
    plan: Plan,
    life: Life,
    /// In the order of the plan.
    jobs: Vec<Job>,
    places: BTreeMap<Name, usize>,
    /// Places of the jobs that this step has changed.
    touched: BTreeSet<usize>,
}

impl Node {
    #[must_use]
    pub fn new(plan: Plan) -> Node {
        Node::restore(plan, Life::new(), BTreeMap::new())
    }

    /// A node as an earlier agent journaled it. A job without a journaled state is new.
    #[must_use]
    pub fn restore(plan: Plan, life: Life, mut jobs: BTreeMap<Name, Job>) -> Node {
        let places = plan.jobs.iter().enumerate().map(|(at, job)| (job.name.clone(), at)).collect();
        let jobs =
            plan.jobs.iter().map(|job| jobs.remove(&job.name).unwrap_or_else(Job::new)).collect();
        Node { plan, life, jobs, places, touched: BTreeSet::new() }
    }

    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    #[must_use]
    pub fn life(&self) -> &Life {
        &self.life
    }

    #[must_use]
    pub fn phase(&self) -> NodePhase {
        self.life.phase()
    }

    #[must_use]
    pub fn job(&self, name: &str) -> Option<&Job> {
        self.jobs.get(*self.places.get(name)?)
    }

    /// In the order of the file.
    pub fn jobs(&self) -> impl Iterator<Item = (&JobPlan, &Job)> {
        self.plan.jobs.iter().zip(&self.jobs)
    }

    pub fn step(&mut self, now: Now, input: Input) -> Outcome {
        let mut out = Outbox::new(now, self.life.seq);
        let answer = self.take(&mut out, input);
        self.life.seq = out.seq;
        let touched = std::mem::take(&mut self.touched)
            .into_iter()
            .filter_map(|at| Some(self.plan.jobs.get(at)?.name.clone()))
            .collect();
        Outcome { events: out.events, commands: out.commands, touched, answer }
    }

    fn take(&mut self, out: &mut Outbox, input: Input) -> Option<Result<(), Refusal>> {
        match input {
            Input::Boot => self.boot(out),
            Input::Attached { held, agent_restarts, upgraded } => {
                self.attached(out, &held, agent_restarts, upgraded);
            }
            Input::Spawned { job, incarnation, pid } => {
                self.one(out, &job, |job, turn| job.spawned(turn, incarnation, pid));
            }
            Input::Exited { job, incarnation, exit, asked } => {
                self.one(out, &job, |job, turn| job.exited(turn, incarnation, &exit, asked));
            }
            Input::TaskDone { id, exit: _ } => {
                self.one(out, &id.job, |job, turn| job.task_done(turn, id.incarnation, id.what));
            }
            Input::Timer { token: Token::Job { job, incarnation, wait } } => {
                self.one(out, &job, |job, turn| job.timer(turn, incarnation, wait));
            }
            Input::Timer { token: Token::ShutdownDeadline } => self.shutdown_time_over(out),
            Input::Request(request) => return Some(self.requested(out, request)),
            Input::Signalled { signal } => self.signalled(out, signal),
            Input::Checked { .. } | Input::Notified { .. } | Input::CronDue { .. } => {}
            Input::LogGap { job, lines } => out.emit(Source::Job(job), Kind::LogGap { lines }),
            Input::StrayKilled { pid, command } => {
                out.emit(Source::NODE, Kind::StrayKilled { pid, command });
            }
        }
        None
    }

    fn boot(&mut self, out: &mut Outbox) {
        match self.life.course {
            Course::Starting => {
                self.begin(out);
                self.each(out, Job::boot);
                self.exit_without_jobs(out);
            }
            Course::Running | Course::Stopping(_) => {}
        }
    }

    fn begin(&mut self, out: &mut Outbox) {
        out.emit(Source::NODE, Kind::Startup);
        self.life.course = Course::Running;
    }

    fn attached(
        &mut self,
        out: &mut Outbox,
        held: &[Held],
        agent_restarts: u64,
        upgraded: Option<(String, String)>,
    ) {
        match upgraded {
            Some((from, to)) => out.emit(Source::NODE, Kind::Upgraded { from, to }),
            None if agent_restarts > 0 => {
                out.emit(Source::NODE, Kind::AgentRestarted { restarts: agent_restarts });
            }
            None => {}
        }
        let found = self.life.phase();
        if found == NodePhase::Starting {
            // The earlier agent has not even journaled the boot.
            self.begin(out);
        }
        let held: BTreeMap<&Name, &Held> = held.iter().map(|held| (&held.job, held)).collect();
        self.each(out, |job, turn| {
            let (highest, live) =
                held.get(&turn.plan.name).map_or((0, None), |held| (held.highest, held.live));
            job.attached(turn, highest, live);
        });
        match found {
            NodePhase::Starting => self.exit_without_jobs(out),
            NodePhase::Running | NodePhase::Maintenance => {}
            NodePhase::Stopping => self.resume_shutdown(out),
        }
    }

    fn requested(&mut self, out: &mut Outbox, request: Request) -> Result<(), Refusal> {
        match request {
            Request::Start { job, args: _, now: _ } => self.wanted(out, &job, Job::start),
            Request::Disable { job }
            | Request::Enable { job }
            | Request::Reload { job }
            | Request::StartApp { app: job }
            | Request::StopApp { app: job }
            | Request::RestartApp { app: job } => Err(Refusal::NoSuchJob(job.to_string())),
            Request::Maintenance { on: _ } | Request::Apply { plan: _ } => Ok(()),
            Request::Restart { job } => self.wanted(out, &job, Job::restart),
            Request::Stop { job } => self.asked(out, &job, |job, turn| {
                job.stop(turn, Force::Grace);
                Ok(())
            }),
            Request::Kill { job } => self.asked(out, &job, |job, turn| {
                job.stop(turn, Force::Kill);
                Ok(())
            }),
            Request::Signal { job, signal, to } => {
                self.asked(out, &job, |job, turn| job.signal(turn, signal, to))
            }
            Request::Shutdown => {
                self.shut_down_asked(out);
                Ok(())
            }
        }
    }

    /// Something that makes a job run, which a node that stops does not do.
    fn wanted(
        &mut self,
        out: &mut Outbox,
        job: &Name,
        deed: fn(&mut Job, &mut Turn<'_>),
    ) -> Result<(), Refusal> {
        let stopping = self.life.shutting().is_some();
        self.asked(out, job, |job, turn| {
            if stopping {
                return Err(Refusal::NodeStopping);
            }
            deed(job, turn);
            Ok(())
        })
    }

    fn asked(
        &mut self,
        out: &mut Outbox,
        job: &Name,
        deed: impl FnOnce(&mut Job, &mut Turn<'_>) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        self.one(out, job, deed).unwrap_or_else(|| Err(Refusal::NoSuchJob(job.to_string())))
    }

    fn signalled(&mut self, out: &mut Outbox, signal: Signal) {
        out.emit(Source::NODE, Kind::Signal { signal });
        if [Signal::TERM, Signal::INT, Signal::QUIT, Signal::HALT].contains(&signal) {
            self.shut_down_asked(out);
        }
    }

    /// Lets one job decide, and the node draw its conclusions. `None`: there is no such job.
    fn one<T>(
        &mut self,
        out: &mut Outbox,
        name: &Name,
        deed: impl FnOnce(&mut Job, &mut Turn<'_>) -> T,
    ) -> Option<T> {
        let at = *self.places.get(name)?;
        let (answer, exit) = self.act(out, at, deed)?;
        if let Some(exit) = exit {
            self.process_ended(out, at, &exit);
        }
        Some(answer)
    }

    fn each(&mut self, out: &mut Outbox, mut deed: impl FnMut(&mut Job, &mut Turn<'_>)) {
        let ends: Vec<(usize, Exit)> = (0..self.jobs.len())
            .filter_map(|at| Some((at, self.act(out, at, &mut deed)?.1?)))
            .collect();
        for (at, exit) in ends {
            self.process_ended(out, at, &exit);
        }
    }

    /// The one place where a job changes: finds out if it did, and if a process ended.
    fn act<T>(
        &mut self,
        out: &mut Outbox,
        at: usize,
        deed: impl FnOnce(&mut Job, &mut Turn<'_>) -> T,
    ) -> Option<(T, Option<Exit>)> {
        let (plan, job) = (self.plan.jobs.get(at)?, self.jobs.get_mut(at)?);
        let (before, told) = (job.clone(), out.events.len());
        let answer = deed(job, &mut Turn { plan, shutting: self.life.shutting(), out });
        if *job != before {
            self.touched.insert(at);
        }
        let exit = if job.holds() { None } else { last_exit(&out.events[told..]) };
        Some((answer, exit))
    }
}

fn last_exit(events: &[crate::event::Event]) -> Option<Exit> {
    events.iter().rev().find_map(|event| match &event.kind {
        Kind::ExitSuccess { exit, .. } | Kind::ExitFailed { exit, .. } => Some(exit.clone()),
        Kind::Startup
        | Kind::Healthy
        | Kind::Unhealthy
        | Kind::Stopping
        | Kind::Stopped
        | Kind::TimerExpired
        | Kind::EnterMaintenance
        | Kind::ExitMaintenance
        | Kind::Check { .. }
        | Kind::Enabled
        | Kind::Disabled
        | Kind::Reloaded { .. }
        | Kind::State { .. }
        | Kind::Signal { .. }
        | Kind::AgentRestarted { .. }
        | Kind::Upgraded { .. }
        | Kind::LogGap { .. }
        | Kind::StrayKilled { .. } => None,
    })
}
