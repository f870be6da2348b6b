//! What a new plan will come to, told before it is in force.
//!
//! A copy of the node takes the plan, in a small world in which all goes well: what is told to stop
//! ends, what is started comes up and is healthy, what runs on behalf of an end ends as expected.
//! Nothing else happens there. So what is preview is what the very same decisions come to, also for
//! jobs that have not changed: those that follow another one, run because it stops, or have waited
//! for what the new plan brings about.
//!
//! A process that ends by itself, does not come up, or is not healthy makes another story.

use super::{Blocker, Command, Input, Node, NodePhase, Refusal, Request, Token, Wait};
use crate::{
    clock::{Mono, Now},
    exit::{Asked, Exit},
    job::{Desired, Job, Phase},
    name::Name,
    plan::{Change, Check, Condition, JobChange, JobPlan, Plan, SourceRef},
    signal::Signal,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// So many things happen to each job at most; jobs that set each other going could go on for ever.
const STEPS: usize = 12;
/// So often a check passes before its `rise` is taken for granted.
const PASSES: u32 = 64;

/// What a new plan will do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReloadPreview {
    /// In the order of the new plan; those that are gone follow.
    pub jobs: Vec<JobPreview>,
    /// Nothing is left to run for: the node ends.
    pub ends: bool,
}

/// What a new plan will do to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobPreview {
    pub change: JobChange,
    pub effect: Effect,
    /// What moves it, where that is not what has changed in the job itself.
    pub because: Option<MovedBy>,
    /// What it will wait for, in the end.
    pub waits: Vec<Blocker>,
}

/// What moves a job that has not changed, or not in a way that would move it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MovedBy {
    /// It follows this one.
    Source(SourceRef),
    /// It is started by this, or has waited for it.
    Event(Condition),
    /// Its app is started or stopped.
    App(Name),
}

/// What becomes of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// Nothing.
    Keep,
    /// It goes on with what has changed.
    Live,
    Start,
    Restart,
    /// It has no process then, and starts when what it waits for has come.
    Wait,
    /// As `wait`, and it has a process now.
    StopAndWait,
    /// It is stopped, and forgotten if it is gone from the plan.
    Stop,
    /// It has ended well and is not run again.
    NotAgain,
    /// It rests, and has it when it is started next.
    Later,
}

impl Node {
    /// What applying the plan will come to, job by job.
    ///
    /// # Errors
    /// The plan would be refused.
    pub fn preview(&self, now: Now, new: &Plan) -> Result<ReloadPreview, Refusal> {
        let changes = self.changes(new);
        let differs = |it: &JobChange| it.change != Change::Unchanged;
        if self.state.shutting().is_none()
            && !changes.iter().any(differs)
            && self.jobs.plan().node == new.node
            && self.jobs.plan().apps == new.apps
            && self.jobs.plan().watches == new.watches
            && self.jobs.plan().discovery == new.discovery
        {
            return Ok(ReloadPreview {
                jobs: changes.into_iter().map(kept).collect(),
                ends: false,
            });
        }
        let mut dry_run = DryRun::new(self.clone(), now);
        dry_run.take(Input::Request(Request::Apply { plan: Box::new(new.clone()) }))?;
        dry_run.finish_what_goes_on(&changes);
        dry_run.play();
        let after = dry_run.node;
        let ends = after.phase() == NodePhase::Stopping;
        let effects: BTreeMap<&Name, Effect> =
            changes.iter().map(|it| (&it.job, self.effect(it, &after, ends))).collect();
        let effect = |name: &Name| effects.get(name).copied().unwrap_or(Effect::Keep);
        let moved = |name: &Name| effect(name) != Effect::Keep;
        let plans: BTreeMap<&Name, &JobPlan> = new.jobs.iter().map(|it| (&it.name, it)).collect();
        let blockers = after.blockers();
        let jobs = changes.iter().map(|change| JobPreview {
            change: change.clone(),
            effect: effect(&change.job),
            because: because(plans.get(&change.job).copied(), change, effect(&change.job), moved),
            waits: match effect(&change.job) {
                Effect::Wait | Effect::StopAndWait => blockers.of(change.job.as_str()),
                Effect::Keep
                | Effect::Live
                | Effect::Start
                | Effect::Restart
                | Effect::Stop
                | Effect::NotAgain
                | Effect::Later => Vec::new(),
            },
        });
        Ok(ReloadPreview { jobs: jobs.collect(), ends })
    }

    /// What has become of the job in `after`.
    fn effect(&self, change: &JobChange, after: &Node, ends: bool) -> Effect {
        let name = change.job.as_str();
        let changed = match change.change {
            Change::Removed => return Effect::Stop,
            Change::Added | Change::Live | Change::Restart => true,
            Change::Unchanged => false,
        };
        let (was, Some(is)) = (self.job(name), after.job(name)) else { return Effect::Stop };
        let or_keep = |effect| if changed { effect } else { Effect::Keep };
        if !changed && !ends && was.is_some_and(|was| was.phase() == Phase::Stopping) {
            // What it is on its way to does not come from the plan.
            return Effect::Keep;
        }
        let had = was.is_some_and(Job::holds);
        if ends && had {
            return Effect::Stop;
        }
        if is.incarnation() > was.map_or(0, Job::incarnation) {
            return if had { Effect::Restart } else { Effect::Start };
        }
        let up = was.is_some_and(|was| [Phase::Starting, Phase::Running].contains(&was.phase()));
        match (is.desired(), is.phase()) {
            (_, Phase::Starting | Phase::Running) | (Desired::Run, Phase::Backoff) => {
                or_keep(Effect::Live)
            }
            (Desired::Run, _) if up => Effect::StopAndWait,
            (Desired::Run, _) => or_keep(Effect::Wait),
            (Desired::Rest, Phase::Exited) if is.ended_for_good() == Some(true) => {
                or_keep(Effect::NotAgain)
            }
            // An app that is on its way down takes it along.
            (Desired::Rest | Desired::Disabled, _) if up => Effect::Stop,
            (Desired::Rest | Desired::Disabled, _) => or_keep(Effect::Later),
        }
    }
}

fn kept(change: JobChange) -> JobPreview {
    JobPreview { change, effect: Effect::Keep, because: None, waits: Vec::new() }
}

/// Something else than itself moves it.
fn because(
    plan: Option<&JobPlan>,
    change: &JobChange,
    effect: Effect,
    moved: impl Fn(&Name) -> bool,
) -> Option<MovedBy> {
    let (plan, own) = (plan?, change.change);
    let from_outside = match (own, effect) {
        (_, Effect::Keep) => false,
        (Change::Unchanged, _) | (Change::Live, Effect::Restart | Effect::StopAndWait) => true,
        (Change::Added | Change::Removed | Change::Live | Change::Restart, _) => false,
    };
    if !from_outside {
        return None;
    }
    let moving = |source: &SourceRef| match source {
        SourceRef::Job(name) => moved(name),
        SourceRef::Node | SourceRef::Watch(_) => false,
    };
    let follows = plan.follows.as_ref().filter(|it| own != Change::Unchanged || moving(&it.source));
    if let Some(follows) = follows {
        return Some(MovedBy::Source(follows.source.clone()));
    }
    let heard = super::wiring::triggers(plan).iter().chain(&plan.when.once);
    let mut heard = heard.filter(|it| moving(&it.source));
    let heard = heard.next().map(|it| MovedBy::Event(it.clone()));
    heard.or_else(|| plan.app.clone().map(MovedBy::App))
}

/// The copy, and the world that answers it.
struct DryRun {
    node: Node,
    now: Now,
    inputs: VecDeque<Input>,
    /// Until when a stop waits for what may never end.
    patience: BTreeMap<Name, (Mono, u64)>,
    left: usize,
}

impl DryRun {
    fn new(node: Node, now: Now) -> DryRun {
        let left = node.jobs.len().saturating_add(1).saturating_mul(STEPS);
        DryRun { node, now, inputs: VecDeque::new(), patience: BTreeMap::new(), left }
    }

    fn take(&mut self, input: Input) -> Result<(), Refusal> {
        let outcome = self.node.step(self.now, input);
        for command in outcome.commands {
            self.answer(command);
        }
        outcome.answer.unwrap_or(Ok(()))
    }

    fn play(&mut self) {
        while let Some(input) = self.inputs.pop_front().or_else(|| self.lose_patience()) {
            if self.left == 0 || self.node.phase() == NodePhase::Stopping {
                return;
            }
            self.left -= 1;
            self.pass_time(&input);
            // What is no request is not refused.
            let _ = self.take(input);
        }
    }

    fn answer(&mut self, command: Command) {
        match command {
            Command::Spawn { job, incarnation, .. } => self.come_up(job, incarnation),
            Command::Stop { job, incarnation, .. } | Command::Kill { job, incarnation } => {
                let exit = Exit::Signal { signal: Signal::TERM, oom: false };
                self.inputs.push_back(Input::Exited { job, incarnation, exit, asked: Asked::Stop });
            }
            Command::RunTask { id, .. } => {
                self.inputs.push_back(Input::TaskDone { id, exit: Exit::Code { code: 0 } });
            }
            Command::SetTimer {
                token: Token::Job { job, incarnation, wait: Wait::StopTimeout },
                at,
            } => {
                self.patience.insert(job, (at, incarnation));
            }
            Command::Withdraw { job } => self.inputs.push_back(Input::Withdrawn { job }),
            Command::Signal { .. }
            | Command::Announce { .. }
            | Command::Probe { .. }
            | Command::ArmCron { .. }
            | Command::Forget { .. }
            | Command::Applied
            | Command::KeepDisabled { .. }
            | Command::SetTimer { .. }
            | Command::Exit { .. } => {}
        }
    }

    /// Nothing happens by itself any more: a stop that waits for its hooks goes on without them.
    fn lose_patience(&mut self) -> Option<Input> {
        let waits = |job: &Name| {
            self.node.job(job.as_str()).is_some_and(|it| it.waits_for_hooks().is_some())
        };
        self.patience.retain(|job, _| waits(job));
        let (job, (at, incarnation)) = self.patience.pop_first()?;
        self.now.mono = self.now.mono.max(at);
        let token = Token::Job { job, incarnation, wait: Wait::StopTimeout };
        Some(Input::Timer { token })
    }

    fn come_up(&mut self, name: Name, incarnation: u64) {
        let job = || name.clone();
        let pid = u32::MAX;
        self.inputs.push_back(Input::Spawned { job: job(), incarnation, pid });
        if self.node.job(name.as_str()).is_some_and(Job::is_hook_run) {
            let (exit, asked) = (Exit::Code { code: 0 }, Asked::None);
            self.inputs.push_back(Input::Exited { job: job(), incarnation, exit, asked });
            return;
        }
        let Some(plan) = self.node.job_plan(name.as_str()) else { return };
        if !plan.start_seconds.is_zero() {
            let token = Token::Job { job: job(), incarnation, wait: Wait::Started };
            self.inputs.push_back(Input::Timer { token });
        }
        for (check, plan) in plan.checks.iter().enumerate() {
            let output = String::new();
            let pass = Input::Checked { job: job(), incarnation, check, passed: true, output };
            let often = if plan.is_told() { 0 } else { plan.rise.min(PASSES) };
            self.inputs.extend((0..often).map(|_| pass.clone()));
        }
        if plan.checks.iter().any(Check::is_told) {
            let (ready, watchdog, watchdog_every) = (true, false, None);
            let job = job();
            let told = Input::Notified { job, incarnation, ready, watchdog, watchdog_every };
            self.inputs.push_back(told);
        }
    }

    /// `start_seconds` are over when their timer says so.
    fn pass_time(&mut self, input: &Input) {
        if let Input::Timer { token: Token::Job { job, wait: Wait::Started, .. } } = input
            && let Some(plan) = self.node.job_plan(job.as_str())
        {
            self.now.mono = self.now.mono.after(plan.start_seconds);
        }
    }

    /// A stop of a changed job that has begun before.
    fn finish_what_goes_on(&mut self, changes: &[JobChange]) {
        for JobChange { job, change, .. } in changes {
            let Some(state) = self.node.job(job.as_str()) else { continue };
            if *change != Change::Unchanged && state.phase() == Phase::Stopping {
                let (job, incarnation) = (job.clone(), state.incarnation());
                self.answer(Command::Kill { job, incarnation });
            }
        }
    }
}
