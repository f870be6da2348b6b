//! One node: its jobs, its start, its shutdown, its exit code.
//!
//! The agent turns the world into [`Input`]s and [`Command`]s into actions. For every input it
//! journals what [`Node::step`] returned (events, and [`records`](crate::record) of what has changed)
//! *before* anything of it becomes visible, so an agent that dies in between is followed by one that
//! goes on:
//!
//! 1. step;
//! 2. journal events and records, as one line;
//! 3. publish the events, acknowledge the keeper, carry the commands out.
//!
//! What a node decides about one of its jobs is in [`crate::job`]; here is what concerns all of
//! them: boot and takeover, what people ask for (`request`), what follows from an event (`propagate`,
//! along the `wiring` of the plan), what can still happen (`blockers`), apps (`apps`), a new plan
//! (`apply`, told before in `preview`), and the end (`shutdown`, in which `order`).

mod apply;
mod apps;
mod blockers;
mod census;
mod command;
mod dry_run;
mod input;
mod jobs;
mod loss;
mod order;
mod placed;
mod preview;
mod propagate;
mod records;
mod request;
mod shutdown;
mod state;
mod tasks;
mod wiring;

pub use apps::AppSummary;
pub use blockers::{Blocker, Blockers, Cause, LeftAtRest, StuckJob, StuckWhy};
pub use command::{Command, Outcome, Token, Wait};
pub use input::{Held, Input, LostJournal, Refusal, Request};
pub use jobs::Leaving;
pub use placed::{Placement, RemoteJob};
pub use preview::{Effect, JobPreview, MovedBy, ReloadPreview};
pub use state::{JournalLoss, NodePhase, NodeState};

use crate::{
    app::App,
    clock::Now,
    discovery::{InstanceList, Watch},
    environ::Environ,
    event::{EventName, Kind, Outbox, Source},
    job::{Effects, Health, Job, JobCtx, JobInput, Notification},
    name::Name,
    plan::{Awaited, JobPlan, Plan},
    record::{Encoded, Journaled, JournaledMap, Memory},
    rollout::RolloutSources,
    signal::Signal,
    task::Tasks,
};
use jobs::{JobId, Jobs};
use state::NodeStage;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};
use wiring::Wiring;

#[derive(Debug, Clone)]
pub struct Node {
    jobs: Jobs,
    /// The number of the last event; 0 before the first.
    seq: u64,
    state: Journaled<NodeState>,
    environ: Journaled<Environ>,
    tasks: Journaled<Tasks>,
    /// Those of which there is something to know.
    apps: BTreeMap<Name, App>,
    watches: JournaledMap<Watch>,
    /// What is known of jobs that the fleet places.
    placements: JournaledMap<Placement>,
    /// Those of them that somebody here waits for, as they are on other nodes.
    remotes: JournaledMap<RemoteJob>,
    /// What profiles and templates have said.
    rollout: Journaled<RolloutSources>,
    wiring: Arc<Wiring>,
    step: StepState,
    /// Why nothing can progress any more, once that has ended the node.
    stuck: Vec<StuckJob>,
    /// Another one with every plan: what was compared with an earlier one no longer holds.
    revision: u64,
}

/// What the step under way has done so far; empty between two of them.
#[derive(Debug, Clone, Default)]
struct StepState {
    /// The jobs that it has changed, as they were before it; `None`: not there.
    touched: BTreeMap<JobId, Option<Arc<Job>>>,
    /// The jobs that are gone.
    gone: Vec<Name>,
    /// It finds out how things are, without a journal: what is said now is no trigger.
    recovering: bool,
    /// The plan that has come into force.
    replanned: Option<Encoded<Plan>>,
    /// Something has come to another phase: the node may have come to its end.
    moved: bool,
    /// An update is over for some job that it has told: one that has ended may be the end of the node.
    update_over: bool,
    /// A process was renewed: who waits for it is looked at again.
    restarted: bool,
    /// The jobs that have come up (`true`) or gone down for those who follow them, in this order.
    followed: VecDeque<(JobId, bool)>,
    /// The jobs that wait for the end of a life that has begun, and may have met it already.
    hooks_set: Vec<JobId>,
}

impl Node {
    #[must_use]
    pub fn new(plan: Plan) -> Node {
        Node::restore(plan, Memory::default())
    }

    /// What users have changed for whatever is started from now on.
    #[must_use]
    pub fn environ(&self) -> &Environ {
        &self.environ
    }

    #[must_use]
    pub fn plan(&self) -> &Plan {
        self.jobs.plan()
    }

    /// The number of the last event; 0 before the first.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.seq
    }

    #[must_use]
    pub fn state(&self) -> &NodeState {
        &self.state
    }

    #[must_use]
    pub fn phase(&self) -> NodePhase {
        self.state.phase()
    }

    #[must_use]
    pub fn job(&self, name: &str) -> Option<&Job> {
        Some(&self.jobs[self.jobs.id(name)?])
    }

    /// What the plan says about a job.
    #[must_use]
    pub fn job_plan(&self, name: &str) -> Option<&JobPlan> {
        Some(self.jobs.plan_of(self.jobs.id(name)?))
    }

    /// It is gone from the plan, and stays here only until its process is gone.
    #[must_use]
    pub fn is_leaving(&self, name: &str) -> bool {
        self.jobs.id(name).is_some_and(|id| self.jobs.is_leaving(id))
    }

    /// In the order of the file; those that are leaving follow.
    pub fn jobs(&self) -> impl Iterator<Item = (&JobPlan, &Job)> {
        self.jobs.iter().map(|(_, plan, job)| (plan, job))
    }

    pub fn step(&mut self, now: Now, mut input: Input) -> Outcome {
        input.cut_texts();
        let mut out = Outbox::new(now, self.seq, std::mem::take(&mut self.tasks));
        let was_over = self.was_over(&input);
        let answer = self.take(&mut out, input);
        self.propagate(&mut out);
        self.exit_if_empty(&mut out, was_over);
        self.have_remembered(&mut out);
        let touched = std::mem::take(&mut self.step.touched);
        let touched: Vec<Name> = touched
            .into_iter()
            .filter(|(id, before)| Some(&self.jobs[*id]) != before.as_deref())
            .map(|(id, _)| self.jobs.name(id).clone())
            .collect();
        self.forget_those_gone(&mut out);
        (self.seq, self.tasks) = (out.seq, out.tasks);
        let records = self.take_records(&touched);
        self.step = StepState::default();
        Outcome { events: out.events, commands: out.commands, records, answer }
    }

    fn take(&mut self, out: &mut Outbox, input: Input) -> Option<Result<(), Refusal>> {
        match input {
            Input::Boot => self.boot(out),
            Input::Attached { held, agent_restarts, upgraded, lost } => {
                self.attached(out, &held, agent_restarts, upgraded, lost);
            }
            Input::Spawned { job, incarnation, pid } => {
                self.tell_job(out, &job, JobInput::Spawned { incarnation, pid });
            }
            Input::Exited { job, incarnation, exit, usage, asked } => {
                let exit = &exit;
                self.tell_job(out, &job, JobInput::Exited { incarnation, exit, usage, asked });
            }
            Input::TaskDone { id, outcome } => self.task_done(out, &id, outcome),
            Input::Timer { token: Token::Job { job, incarnation, wait } } => {
                self.tell_job(out, &job, JobInput::Timer { incarnation, wait });
            }
            Input::Timer { token: Token::App { app } } => self.app_due(out, &app),
            Input::Timer { token: Token::ShutdownDeadline } => self.shutdown_time_over(out),
            Input::Timer { token: Token::ShutdownOverdue } => self.shutdown_overdue(out),
            Input::Request(request) => return Some(self.requested(out, request)),
            // What comes of it is seen at the copy, which shows the order.
            Input::Ordered { job, order, what, said } => {
                drop(self.ordered(out, &job, order, (what, &said)));
            }
            Input::Elsewhere { job, copy } => self.heard_of(out, &job, copy),
            Input::Fleet(event) => self.fleet_said(out, event),
            Input::Signalled { signal } => self.signalled(out, signal),
            Input::Checked { job, incarnation, check, passed, output } => {
                let output = &output;
                let input = JobInput::Checked { incarnation, check, passed, output };
                self.tell_job(out, &job, input);
            }
            Input::Notified { job, incarnation, ready, watchdog, watchdog_every } => {
                let said = Notification { ready, watchdog, watchdog_every };
                self.tell_job(out, &job, JobInput::Notified { incarnation, said });
            }
            Input::CronDue { job } => {
                self.tell_job(out, &job, JobInput::CronDue);
            }
            Input::Instances { watch, instances } => self.answered(out, &watch, instances),
            Input::Rollout(facts) => {
                // What it has told and has ended is not going to come back any more.
                self.step.update_over = self.rollout.releases_any(&facts);
                self.step.moved |= self.step.update_over;
                for (source, kind) in self.rollout.edit().stand(&facts) {
                    out.emit(source, kind);
                }
            }
            Input::RolloutEnds => self.shut_down_failed(out),
            Input::Withdrawn { job } => {
                self.tell_job(out, &job, JobInput::Withdrawn);
            }
            Input::LogGap { job, lines } => out.emit(Source::Job(job), Kind::LogGap { lines }),
            Input::StrayKilled { pid, command } => {
                out.emit(Source::NODE, Kind::StrayKilled { pid, command });
            }
        }
        None
    }

    fn answered(&mut self, out: &mut Outbox, watch: &Name, instances: InstanceList) {
        if self.jobs.plan().watch(watch.as_str()).is_none() {
            return;
        }
        let mut known = self.watches.get(watch.as_str()).cloned().unwrap_or_default();
        let Some(kinds) = known.answered(out.now.wall, instances) else { return };
        self.watches.insert(watch.clone(), known);
        out.command(Command::WriteInstances { watch: watch.clone() });
        for kind in kinds {
            out.emit(Source::watch(watch), kind);
        }
    }

    /// What is known of a watch; `None`: nothing yet.
    #[must_use]
    pub fn watch(&self, name: &str) -> Option<&Watch> {
        self.watches.get(name)
    }

    fn boot(&mut self, out: &mut Outbox) {
        match self.state.stage {
            NodeStage::Starting => {
                self.begin(out);
                self.tell_all(out, |_| JobInput::Arm);
                self.start_apps(out);
                self.look_again(out);
            }
            NodeStage::Running | NodeStage::Stopping(_) => {}
        }
    }

    fn begin(&mut self, out: &mut Outbox) {
        out.emit(Source::NODE, Kind::Startup);
        let state = self.state.edit();
        state.note(Awaited::Event(EventName::Startup));
        state.stage = NodeStage::Running;
        self.apps.values_mut().for_each(App::begin);
    }

    fn attached(
        &mut self,
        out: &mut Outbox,
        held: &[Held],
        agent_restarts: u64,
        upgraded: Vec<(String, String)>,
        lost: Option<LostJournal>,
    ) {
        // An upgrade replaces the agent, too; that need not be told twice.
        if upgraded.is_empty() && agent_restarts > 0 {
            out.emit(Source::NODE, Kind::AgentRestarted { restarts: agent_restarts });
        }
        for (from, to) in upgraded {
            out.emit(Source::NODE, Kind::Upgraded { from, to });
        }
        let held: BTreeMap<&Name, &Held> = held.iter().map(|held| (&held.job, held)).collect();
        if let Some(lost) = lost {
            return self.recover(out, &held, lost);
        }
        let unborn = self.state.phase() == NodePhase::Starting;
        if unborn {
            // The earlier agent has not even journaled the boot.
            self.begin(out);
        }
        self.tell_all(out, |plan| JobInput::Attached { held: held.get(&plan.name).copied() });
        if unborn {
            self.tell_all(out, |_| JobInput::Arm);
            self.start_apps(out);
        }
        self.resume_tasks(out);
        self.resume_apps(out);
        self.resume_shutdown(out);
        self.look_again(out);
        self.remind(out, &held);
    }

    fn signalled(&mut self, out: &mut Outbox, signal: Signal) {
        out.emit(Source::NODE, Kind::Signal { signal });
        if [Signal::TERM, Signal::INT, Signal::QUIT, Signal::HALT].contains(&signal) {
            self.shut_down_signalled(out);
        }
    }

    /// Lets one job decide. `None`: there is no such job.
    fn tell_job(
        &mut self,
        out: &mut Outbox,
        name: &Name,
        input: JobInput<'_>,
    ) -> Option<Result<(), Refusal>> {
        let id = self.jobs.id(name.as_str())?;
        let phase = self.jobs[id].phase();
        let answer = self.ask_job(out, id, input);
        // What has moved is looked at when that is heard, behind those who run for its end.
        if self.jobs[id].phase() == phase {
            self.try_launch(out, id);
        }
        Some(answer)
    }

    fn tell_all<'a>(&mut self, out: &mut Outbox, input: impl Fn(&JobPlan) -> JobInput<'a>) {
        for id in self.jobs.ids() {
            let input = input(self.jobs.plan_of(id));
            self.step_job(out, id, input);
        }
    }

    fn step_job(&mut self, out: &mut Outbox, id: JobId, input: JobInput<'_>) {
        // What is no request is not refused.
        let _ = self.ask_job(out, id, input);
    }

    /// The one place where a job changes: finds out if it did, what it said, and if a process
    /// ended.
    fn ask_job(&mut self, out: &mut Outbox, id: JobId, input: JobInput<'_>) -> Result<(), Refusal> {
        let leaving = self.jobs.is_leaving(id);
        let before = self.jobs.shared(id);
        let (plan, job) = self.jobs.both_mut(id);
        let ctx = &mut JobCtx {
            plan,
            hooks: !self.wiring.stopping_hooks(id).is_empty(),
            stopped_hooks: !self.wiring.stopped_hooks(id).is_empty(),
            is_hook: self.wiring.is_hook(id),
            shutting: self.state.shutting(),
            maintenance: self.state.maintenance,
            leaving,
            effects: Effects::new(out),
        };
        let answer = job.step(ctx, input);
        if let Some(exit) = job.last_exit().filter(|_| job.ended() > before.ended() && !job.holds())
        {
            Node::process_ended(&mut self.state, plan, exit);
        }
        let is_up = job.health() == Health::Healthy;
        if is_up != (before.health() == Health::Healthy) {
            self.step.followed.push_back((id, is_up));
        }
        self.step.restarted |= before.has_pending_restart() && !job.has_pending_restart();
        if !job.rests()
            && let Some(app) = plan.app.as_ref().and_then(|app| self.apps.get_mut(app))
        {
            app.release(&plan.name);
        }
        // Whoever waited for its hook run waits for its end now.
        self.step.moved |= before.is_hook_run() && !job.is_hook_run();
        let begins_life = before.is_between_lives() && job.incarnation() > before.incarnation();
        if *job != *before {
            self.jobs.changed(id, &before);
            self.step.touched.entry(id).or_insert(Some(before));
        }
        if begins_life {
            self.forget_last_life(id);
            self.set_hooks(out, id);
        }
        answer
    }
}
