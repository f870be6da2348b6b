//! What a new plan will come to, told before it is in force.
//!
//! A copy of the node takes the plan, in a small world in which all goes well (`dry_run`). So what
//! is told is what the very same decisions come to, also for jobs that have not changed: those that
//! follow another one, run because it stops, or have waited for what the new plan brings about.
//!
//! A process that ends by itself, does not come up, or is not healthy makes another story.

use super::{Blocker, Input, Node, NodePhase, Refusal, Request, dry_run::DryRun, wiring};
use crate::{
    clock::Now,
    job::{Desired, Job, Phase},
    name::Name,
    plan::{Change, Condition, JobChange, JobPlan, NodeDiff, Plan, PlanDiff, SourceRef},
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What a new plan will do: what differs, and what becomes of every job.
///
/// It is worked out once. `plan` shows it, a reload applies it and answers with it; where the node
/// has moved on meanwhile ([`Node::is_current`]) it is worked out anew before that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReloadPreview {
    /// What differs beside the jobs.
    pub node: NodeDiff,
    /// In the order of the new plan; those that are gone follow.
    pub jobs: Vec<JobPreview>,
    /// Nothing is left to run for: the node ends.
    pub ends: bool,
    /// The plan that it was compared with.
    pub(super) revision: u64,
}

impl ReloadPreview {
    /// Nothing differs of what it tells.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.node == NodeDiff::default() && !self.jobs.iter().any(differs)
    }
}

/// What a new plan will do to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobPreview {
    pub change: JobChange,
    /// What becomes of it in the end.
    pub effect: Effect,
    /// What it is told as soon as the plan is in force.
    pub(super) first_effect: Effect,
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
    /// It has waited for this one, which runs for its last end.
    Hook(Name),
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

impl Effect {
    /// It is launched by that, now or when what it waits for has come.
    pub(super) fn launches(self) -> bool {
        match self {
            Effect::Start | Effect::Restart | Effect::Wait | Effect::StopAndWait => true,
            Effect::Keep | Effect::Live | Effect::Stop | Effect::NotAgain | Effect::Later => false,
        }
    }
}

/// A plan that is to come into force, with its jobs by name.
pub(super) struct NewPlan<'a> {
    pub(super) plan: &'a Plan,
    jobs: BTreeMap<&'a str, &'a JobPlan>,
}

impl<'a> NewPlan<'a> {
    fn new(plan: &'a Plan) -> NewPlan<'a> {
        let jobs = plan.jobs.iter().map(|job| (job.name.as_str(), job.as_ref())).collect();
        NewPlan { plan, jobs }
    }

    pub(super) fn job(&self, name: &str) -> Option<&'a JobPlan> {
        self.jobs.get(name).copied()
    }
}

impl Node {
    /// The difference and what each job is told, before anybody has tried it.
    pub(super) fn untried(&self, new: &Plan) -> ReloadPreview {
        let (PlanDiff { node, jobs }, new) = (self.diff(new), NewPlan::new(new));
        let untried = |change: JobChange| {
            let (first_effect, effect) = (self.first_effect(&change, &new), Effect::Keep);
            JobPreview { change, effect, first_effect, because: None, waits: Vec::new() }
        };
        let jobs = jobs.into_iter().map(untried).collect();
        ReloadPreview { node, jobs, ends: false, revision: self.revision }
    }

    /// Whether the preview of this plan still says what applying it does: no other plan has come
    /// between, and every job that differs would be told the same.
    #[must_use]
    pub fn is_current(&self, preview: &ReloadPreview, new: &Plan) -> bool {
        let new = NewPlan::new(new);
        let same = |it: &JobPreview| self.first_effect(&it.change, &new) == it.first_effect;
        preview.revision == self.revision && preview.jobs.iter().all(same)
    }

    /// What applying the plan will come to, job by job. With many jobs it takes its time: who has
    /// none asks a clone of the node, elsewhere.
    ///
    /// # Errors
    /// The plan would be refused.
    pub fn preview(&self, now: Now, new: &Plan) -> Result<ReloadPreview, Refusal> {
        self.may_have(new)?;
        let mut preview = self.untried(new);
        let idle = self.state.shutting().is_none() && self.code_if_stuck().is_none();
        if idle && !preview.jobs.iter().any(differs) && self.is_like(new) {
            return Ok(preview);
        }
        let after = self.dry_run(now, new, &preview)?;
        preview.ends = after.phase() == NodePhase::Stopping;
        for job in &mut preview.jobs {
            job.effect = self.effect(&job.change, &after, preview.ends);
        }
        let moved: BTreeSet<Name> = preview
            .jobs
            .iter()
            .filter(|job| job.effect != Effect::Keep)
            .map(|job| job.change.job.clone())
            .collect();
        let plans: BTreeMap<&Name, &JobPlan> =
            new.jobs.iter().map(|it| (&it.name, it.as_ref())).collect();
        let blockers = after.blockers();
        for JobPreview { change, effect, because, waits, .. } in &mut preview.jobs {
            let plan = plans.get(&change.job).copied();
            let hook = || self.awaited_hook(&change.job).map(MovedBy::Hook);
            *because = moved_by(plan, change, *effect, |name| moved.contains(name), hook);
            if effect.waits() {
                *waits = blockers.of(change.job.as_str());
            }
        }
        Ok(preview)
    }

    /// The job that runs for the last end of this one, whose launch waits for it.
    fn awaited_hook(&self, job: &Name) -> Option<Name> {
        let hook = self.runs_for_last_end(self.jobs.id(job.as_str())?)?;
        Some(self.jobs.name(hook).clone())
    }

    /// The node as it is once the plan is in force and all has gone well.
    fn dry_run(&self, now: Now, new: &Plan, preview: &ReloadPreview) -> Result<Node, Refusal> {
        let mut dry_run = DryRun::new(self.clone(), now);
        let (plan, known) = (new.clone().into(), Some(Box::new(preview.clone())));
        dry_run.take(Input::Request(Request::Apply { plan, preview: known }))?;
        let changed = preview.jobs.iter().filter(|it| differs(it)).map(|it| &it.change.job);
        // One that begins only now is told to end when its hooks have run.
        let stops =
            |job: &&Name| self.job(job.as_str()).is_some_and(|it| it.phase() == Phase::Stopping);
        dry_run.finish_stops(changed.filter(stops));
        dry_run.play();
        Ok(dry_run.node)
    }

    /// Apart from its jobs the plan is what is in force.
    fn is_like(&self, new: &Plan) -> bool {
        let plan = self.jobs.plan();
        plan.node == new.node
            && plan.apps == new.apps
            && plan.watches == new.watches
            && plan.discovery == new.discovery
            && plan.fleet == new.fleet
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
        let up = was.is_some_and(|was| was.phase().is_up());
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

impl Effect {
    /// It has no process in the end, and shall run.
    fn waits(self) -> bool {
        matches!(self, Effect::Wait | Effect::StopAndWait)
    }
}

fn differs(job: &JobPreview) -> bool {
    job.change.change != Change::Unchanged
}

/// Something else than itself moves it.
fn moved_by(
    plan: Option<&JobPlan>,
    change: &JobChange,
    effect: Effect,
    moved: impl Fn(&Name) -> bool,
    hook: impl Fn() -> Option<MovedBy>,
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
        SourceRef::Node | SourceRef::Watch(_) | SourceRef::Rollout(_) => false,
    };
    let follows = plan.follows.as_ref().filter(|it| own != Change::Unchanged || moving(&it.source));
    if let Some(follows) = follows {
        return Some(MovedBy::Source(follows.source.clone()));
    }
    let heard = wiring::triggers(plan).iter().chain(&plan.when.once);
    let mut heard = heard.filter(|it| moving(&it.source));
    let heard = heard.next().map(|it| MovedBy::Event(it.clone()));
    heard.or_else(hook).or_else(|| plan.app.clone().map(MovedBy::App))
}
