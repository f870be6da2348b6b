//! Rollout: configuration as a transaction.
//!
//! ```text
//!            every profile: Loading ⇄ Storing          one profile: Loading ⇄ Storing
//!  Start ──► (boot) ─────────────────► Updating ─► Idle ──(interval, notice)──► Updating ─► Idle …
//!                                          │         ▲
//!                              a failure   ▼         │ another version, or somebody asks
//!                                      way back ─► pending ──(failure_timeout)──► FAILED
//! ```
//!
//! - A profile is loaded, stored as `retrieved`, and becomes one update: all templates that use it
//!   are staged and checked, the files that change are switched as one set, and the services that
//!   use them are told one after another, each confirmed before the next. Then it is `applied`.
//! - A failure brings the whole set back, the services that were told hear of it again, and the
//!   profile is pending: nothing but it is asked for until another version works. The version that
//!   failed is remembered and not tried again.
//! - Everything that outlives the agent is [`RolloutKept`], which is on the disk before what a step
//!   wants is done. An update under way is a record in it. An agent that finds one finishes the set,
//!   asks the source, and runs the update of what that serves, or of what is on the disk; with a
//!   failure in it, it finishes the way back.
//! - What a run of the node begins with, a changed plan and a version that somebody wants back are
//!   updates as well.
//!
//! `round` asks for profiles, `contents` for those that are gone, `update` is an update with its way
//! back, `service` one service in it, `resume` one that an agent before has begun, `failure` what is
//! pending, `metric` what is published of that, `request` what people want, `replan` what a reload
//! changes. `job_service` is a job of this node as a service, `ready` what a service manager hears.
//! `wave` takes a version through a fleet, node by node, and `feed` is where that meets this node.

mod command;
mod contents;
mod facts;
mod failure;
mod feed;
mod input;
mod job_service;
mod kept;
mod metric;
mod ready;
mod replan;
mod request;
mod resume;
mod round;
mod service;
mod sources;
mod update;
mod version;
mod wave;

pub use command::{
    FailureReport, InstanceNumber, OldFile, Op, ProbeTarget, RolloutCommand, ServiceAction,
    StageSet, StageTemplate, StagedFile,
};
pub use facts::{AppliedContent, FailureFact, RolloutFacts, RolloutPhase, SourceFact};
pub use input::{
    LoadOutcome, ProbeOutcome, RequestCount, RestoreOutcome, RolloutInput, RolloutRequest,
    ServiceFacts, StageFailure, StagedSet, Trouble,
};
pub use job_service::{JobGoal, JobTelling};
pub use kept::{
    AppliedVersion, HISTORY, KeptFailure, KeptProfile, RolloutKept, ServiceRecord, ToldState,
    UpdateCause, UpdateFailure, UpdateRecord,
};
pub use ready::ReadyHold;
pub use request::RolloutRefusal;
pub use sources::RolloutSources;
pub use version::{Content, Digest, SecretValue, Version};
pub(crate) use wave::are_none;
pub use wave::{
    FailedAttempt, FailedVersion, MemberPresence, ProfileCopy, ProfileDelivery, WaveFacts,
    WaveFailure, WaveFeed, WaveMember, WaveOffer, WaveRecord, WaveRecords, WaveReport, WaveSize,
    WaveStage, WaveView, conduct, is_settled,
};

use crate::{
    clock::{Mono, Now},
    name::Name,
    plan::{ProfilePlan, RolloutPlan, ServicePlan, TemplatePlan},
};
use contents::LostContents;
use feed::Feeds;
use metric::Published;
use round::{Round, RoundPurpose};
use std::{
    collections::{BTreeMap, VecDeque},
    hash::{Hash, Hasher},
    sync::Arc,
};
use update::Update;

/// The machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Rollout {
    plan: Arc<RolloutPlan>,
    kept: RolloutKept,
    stage: RolloutStage,
    /// The number of the last operation.
    ops: u64,
    sources: BTreeMap<Name, SourceState>,
    feeds: Feeds,
    lost: LostContents,
    /// What was last told of each service that its update does not fail of.
    notes: BTreeMap<Name, String>,
    /// A boot or a plan that had to wait, for a profile or a disk: with what was loaded for it.
    boot: Option<Round>,
    /// A plan that waits for the update under way.
    next_plan: Option<Arc<RolloutPlan>>,
    /// The update of the plan in force, still to come.
    plan_round: Option<Round>,
    /// What that has led to; `None`: it is still to come, or under way.
    plan_outcome: Option<Result<(), Trouble>>,
    requests: VecDeque<RolloutRequest>,
    maintenance: bool,
    ending: bool,
    /// It was said that the node is ready.
    is_ready: bool,
    /// `on_failure` is running.
    hook: Option<Op>,
    /// The last value of the metric.
    published: Option<Published>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum RolloutStage {
    /// Before the first input.
    New,
    /// Nothing is under way, though something may be pending.
    Idle,
    /// The set of a record that was found is put in place.
    Finishing {
        op: Op,
    },
    Loading {
        op: Op,
        profile: Name,
        round: Round,
    },
    Storing {
        op: Op,
        profile: Name,
        version: Version,
        round: Round,
    },
    Updating(Update),
}

/// What is known of a source, in the life of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct SourceState {
    /// It wants to be left alone until then.
    earliest: Mono,
    /// When it is asked next.
    next: Mono,
    /// It has noticed something.
    noticed: bool,
    served: Option<Version>,
    /// Why it could not be asked the last time.
    trouble: Option<Trouble>,
    /// When it last answered: wall clock, ns.
    answered_at: Option<i64>,
}

/// What a step comes to. Its commands wait until [`Rollout::kept`] is on the disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RolloutOutcome {
    pub commands: Vec<RolloutCommand>,
    /// When it wants to hear that time has passed.
    pub wake: Option<Mono>,
    /// The answer to a request: whether it was taken.
    pub answer: Option<Result<(), RolloutRefusal>>,
}

/// What the step under way has to say.
#[derive(Debug)]
struct RolloutStep {
    now: Now,
    commands: Vec<RolloutCommand>,
}

impl Rollout {
    #[must_use]
    pub fn new(plan: Arc<RolloutPlan>, kept: RolloutKept) -> Rollout {
        Rollout {
            plan,
            kept,
            stage: RolloutStage::New,
            ops: 0,
            sources: BTreeMap::new(),
            feeds: Feeds::default(),
            lost: LostContents::default(),
            notes: BTreeMap::new(),
            boot: None,
            next_plan: None,
            plan_round: None,
            plan_outcome: None,
            requests: VecDeque::new(),
            maintenance: false,
            ending: false,
            is_ready: false,
            hook: None,
            published: None,
        }
    }

    /// What outlives the agent.
    #[must_use]
    pub fn kept(&self) -> &RolloutKept {
        &self.kept
    }

    #[must_use]
    pub fn plan(&self) -> &Arc<RolloutPlan> {
        &self.plan
    }

    /// Nothing is under way.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.stage == RolloutStage::Idle
    }

    pub fn step(&mut self, now: Now, input: RolloutInput) -> RolloutOutcome {
        let mut step = RolloutStep { now, commands: Vec::new() };
        let mut answer = None;
        match input {
            RolloutInput::Start { takes_over } => self.start(&mut step, takes_over),
            RolloutInput::Loaded { op, profile, outcome, not_before } => {
                let outcome = self.numbered(&profile, outcome);
                match self.feeds.is_poll(op) {
                    true => self.polled(&mut step, &profile, outcome, not_before),
                    false => self.loaded(&mut step, op, &profile, outcome, not_before),
                }
            }
            RolloutInput::Stored { op, outcome } => match self.feeds.is_arriving(op) {
                true => self.content_stored(&mut step, op, outcome),
                false => self.stored(&mut step, op, outcome),
            },
            RolloutInput::Lost { profile, version } => self.lost.add(&profile, version),
            RolloutInput::Fed(feeds) => self.fed(feeds),
            RolloutInput::Arrived { profile, version, content } => {
                self.arrived(&mut step, profile, version, content);
            }
            RolloutInput::Staged { op, outcome } => self.staged(&mut step, op, outcome),
            RolloutInput::Checked { op, outcome } => self.checked(&mut step, op, outcome),
            RolloutInput::Switched { op, outcome } => self.switched(&mut step, op, outcome),
            RolloutInput::Restored { op, outcome } => self.restored(&mut step, op, outcome),
            RolloutInput::Inspected { op, outcome } => {
                self.tell_service(&mut step, |service, ctx| service.inspected(ctx, op, outcome));
            }
            RolloutInput::Told { op, outcome } => {
                self.tell_service(&mut step, |service, ctx| service.told(ctx, op, outcome));
            }
            RolloutInput::Probed { op, outcome } => {
                self.tell_service(&mut step, |service, ctx| service.probed(ctx, op, outcome));
            }
            RolloutInput::HookDone { op, outcome: _ } => {
                if self.hook == Some(op) {
                    (self.hook, self.kept.hook) = (None, None);
                    self.exit_if_failed(&mut step);
                }
            }
            RolloutInput::Noticed { profile } => {
                if let Some(source) = self.sources.get_mut(&profile) {
                    source.noticed = true;
                }
            }
            RolloutInput::Asked(request) => answer = Some(self.asked(&mut step, request)),
            RolloutInput::Planned(plan) => (self.next_plan, self.plan_outcome) = (Some(plan), None),
            RolloutInput::Maintenance { on } => {
                self.maintenance = on;
                self.grant_time(now.mono);
            }
            RolloutInput::Ending { by } => self.end_by(by, now.mono),
            RolloutInput::Tick => {
                self.tell_service(&mut step, |service, ctx| service.tick(ctx));
            }
        }
        // What is known of an earlier run counts once it is said that this one begins.
        if self.stage != RolloutStage::New {
            self.go_on(&mut step);
        }
        RolloutOutcome { commands: step.commands, wake: self.wake(), answer }
    }

    fn start(&mut self, step: &mut RolloutStep, takes_over: bool) {
        if self.stage != RolloutStage::New {
            return;
        }
        self.stage = RolloutStage::Idle;
        self.forget_those_gone();
        for profile in &self.plan.profiles {
            self.sources.insert(profile.name.clone(), SourceState::default());
        }
        if !takes_over {
            (self.kept.booted, self.kept.plan_due) = (false, false);
            self.pend_anew(step.now.mono);
            self.try_with_others();
        }
        self.exit_if_failed(step);
        if self.kept.plan_due {
            self.plan_round = Some(Round::new(RoundPurpose::Plan, VecDeque::new()));
        }
        self.retain(step);
        self.finish_found(step);
    }

    /// Begins what is due, as long as nothing is under way.
    fn go_on(&mut self, step: &mut RolloutStep) {
        self.run_hook(step);
        while self.stage == RolloutStage::Idle && !self.ending {
            if !self.begin(step) {
                break;
            }
        }
        self.poll(step);
        self.judge_fleet(step);
        self.run_hook(step);
        self.publish(step);
        if self.kept.booted && !std::mem::replace(&mut self.is_ready, true) {
            step.commands.push(RolloutCommand::Ready);
        }
        self.is_ready = self.kept.booted;
    }

    /// The next thing that is due. `false`: there is none.
    fn begin(&mut self, step: &mut RolloutStep) -> bool {
        if self.is_interrupted() {
            return self.resume(step);
        }
        if let Some(plan) = self.next_plan.take() {
            self.replan(step, plan);
            return true;
        }
        if self.is_resting() {
            return false;
        }
        if let Some(round) = self.plan_round.take() {
            self.go_round(step, round);
            return true;
        }
        if let Some(request) = self.requests.pop_front() {
            self.begin_request(step, request);
            return true;
        }
        if self.give_up_in_time(step) {
            return true;
        }
        let waits = !self.kept.booted || self.boot.is_some();
        if waits { self.begin_boot(step) } else { self.begin_refresh(step) }
    }

    /// No update begins.
    fn is_resting(&self) -> bool {
        self.kept.paused || self.maintenance
    }

    fn ask(&mut self, step: &mut RolloutStep, command: impl FnOnce(Op) -> RolloutCommand) -> Op {
        self.ops += 1;
        let op = Op(self.ops);
        step.commands.push(command(op));
        op
    }

    /// What is stored and staged and of no use can go.
    fn retain(&self, step: &mut RolloutStep) {
        let record = self.kept.update.as_ref();
        let mut versions: BTreeMap<Name, Vec<Version>> = BTreeMap::new();
        for (name, profile) in &self.kept.profiles {
            let all = versions.entry(name.clone()).or_default();
            all.extend(profile.applied.iter().chain(&profile.retrieved).cloned());
            all.extend(profile.history.iter().map(|earlier| earlier.version.clone()));
            all.extend(profile.shared.iter().chain(self.feeds.arriving(name)).cloned());
            all.extend(record.and_then(|record| record.versions.get(name)).cloned());
        }
        let files = record.map_or_else(|| Arc::from([]), |record| record.files.clone());
        step.commands.push(RolloutCommand::Retain { versions, files });
    }

    /// Of profiles and templates that the plan does not have any more.
    fn forget_those_gone(&mut self) {
        let RolloutPlan { profiles, templates, services, .. } = &*self.plan;
        self.kept.profiles.retain(|name, _| profiles.iter().any(|it| it.name == *name));
        self.kept.files.retain(|name, _| templates.iter().any(|it| it.name == *name));
        self.sources.retain(|name, _| profiles.iter().any(|it| it.name == *name));
        self.lost.retain(|name| profiles.iter().any(|it| it.name == *name));
        self.notes.retain(|name, _| services.iter().any(|it| it.name == *name));
        self.kept.pending.take_if(|pending| {
            pending.profile.as_ref().is_some_and(|it| profiles.iter().all(|has| has.name != *it))
        });
    }

    fn wake(&self) -> Option<Mono> {
        let own = match &self.stage {
            RolloutStage::New => return None,
            RolloutStage::Idle if self.ending || self.is_resting() || self.is_interrupted() => None,
            RolloutStage::Idle => self.next_question().into_iter().chain(self.deadline()).min(),
            RolloutStage::Updating(update) => update.wake(),
            RolloutStage::Finishing { .. }
            | RolloutStage::Loading { .. }
            | RolloutStage::Storing { .. } => None,
        };
        own.into_iter().chain(self.next_poll()).chain(self.next_publication()).min()
    }

    fn profile(&self, name: &Name) -> Option<&ProfilePlan> {
        self.plan.profiles.iter().find(|profile| profile.name == *name)
    }

    fn template(&self, name: &Name) -> Option<&TemplatePlan> {
        self.plan.templates.iter().find(|template| template.name == *name)
    }

    fn service(&self, name: &Name) -> Option<&ServicePlan> {
        self.plan.services.iter().find(|service| service.name == *name)
    }

    fn kept_profile(&mut self, name: &Name) -> &mut KeptProfile {
        self.kept.profiles.entry(name.clone()).or_default()
    }

    /// What a source has served, named as it is here.
    fn numbered(&self, profile: &Name, outcome: LoadOutcome) -> LoadOutcome {
        match outcome {
            LoadOutcome::Served { version, content } => {
                let version = match self.kept.profiles.get(profile) {
                    Some(kept) => kept.numbered(version),
                    None => version,
                };
                LoadOutcome::Served { version, content }
            }
            outcome @ (LoadOutcome::Unchanged | LoadOutcome::Failed(_)) => outcome,
        }
    }

    fn applied(&self, name: &Name) -> Option<&Version> {
        self.kept.profiles.get(name)?.applied.as_ref()
    }
}

/// The plan is the same in all states that are compared by it.
impl Hash for Rollout {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (&self.kept, &self.stage, self.ops, &self.sources, &self.boot).hash(hasher);
        (self.maintenance, self.ending, self.is_ready, self.hook).hash(hasher);
        (&self.plan_round, &self.plan_outcome).hash(hasher);
        (&self.requests, &self.feeds, &self.published).hash(hasher);
        (&self.lost, &self.notes).hash(hasher);
    }
}
