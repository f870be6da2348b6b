//! One app: jobs that start and stop together, in order.
//!
//! ```text
//!   DOWN ──start──► STARTING(sequence) ──all sequences done──► UP
//!    ▲                 │ a required job failed: abort ─────────►│
//!    └── all down ── STOPPING ◄──────── stop ───────────────────┘
//! ```
//!
//! Facts about the members go in, orders to them come out, by name: the machine knows neither what
//! a job is made of nor where it runs. Orders are carried out in the order in which they are given;
//! after one that starts something the app is told again how its members are ([`AppInput::Moved`]),
//! since a member that is done at once makes room for the next sequence.
//!
//! A member rests until its sequence has come (or a user starts it by itself). A sequence is done
//! when each of its members runs, waits for nothing but its trigger, or has ended as expected
//! (`wait_exit`: only that); members with sequence 0 are left alone. Which apps start by themselves,
//! and in which order, is in [`BootSequence`].
//!
//! When a member of an app that is up ends for good and was not meant to, `on_failure` says what
//! follows. An app that fails within ten seconds of having come up is stopped instead of restarted,
//! since it would only fail again.
//!
//! **Reasons.** The app knows why a member rests that no user has stopped: its sequence has not
//! come, the start was aborted before it came, or the app was stopped because a member failed. A
//! reason is gone as soon as anybody else decides about the member ([`App::release`]).

mod boot;
mod member;
mod records;

pub use boot::BootSequence;
pub use member::{Facts, Member, MemberProcess, MemberState, RestReason};

use crate::{
    clock::Mono,
    job::STABLE,
    name::Name,
    plan::{AppPlan, OnFailure, OnStartFailure, Place},
    record::{Journaled, JournaledMap},
};
use member::Progress;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// As observers see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AppPhase {
    Stopped,
    Starting,
    Running,
    Stopping,
}

/// What an app is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppInput<'a> {
    Start,
    Stop,
    Restart,
    /// A member has ended for good and was not meant to.
    Failed {
        job: &'a Name,
    },
    /// Something about the members may be other than it was.
    Moved,
}

/// What a member is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppOrder {
    /// The app is about to start these, one sequence after the other.
    Prepare {
        jobs: BTreeSet<Name>,
    },
    /// Its sequence has come.
    Start {
        job: Name,
    },
    Stop {
        job: Name,
    },
    /// It has failed, and comes back after a back-off.
    Retry {
        job: Name,
    },
}

#[derive(Debug, Clone, Default)]
pub struct App {
    stage: Journaled<AppStage>,
    /// Why members rest, where that is the doing of the app.
    resting: JournaledMap<RestReason>,
}

/// How far an app is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AppStage {
    #[default]
    Down,
    Starting {
        sequence: u32,
    },
    Up {
        since: Mono,
    },
    Stopping {
        /// It is started again when it is down.
        again: bool,
        /// A member has failed, and nobody asked for the stop.
        #[serde(default)]
        failed: bool,
    },
}

/// What the app sees of the world while it decides, and what it has said so far.
struct AppCtx<'a> {
    now: Mono,
    plan: &'a AppPlan,
    facts: &'a Facts<'a>,
    orders: Vec<AppOrder>,
}

impl App {
    /// Decides what follows from an input.
    pub fn step(
        &mut self,
        now: Mono,
        plan: &AppPlan,
        facts: &Facts<'_>,
        input: AppInput<'_>,
    ) -> Vec<AppOrder> {
        let mut ctx = AppCtx { now, plan, facts, orders: Vec::new() };
        match (*self.stage, input) {
            (AppStage::Down | AppStage::Up { .. }, AppInput::Start) => {
                self.begin_sequence(&mut ctx, 0);
            }
            (AppStage::Stopping { failed, .. }, AppInput::Start) => {
                *self.stage.edit() = AppStage::Stopping { again: true, failed };
            }
            (
                AppStage::Down
                | AppStage::Starting { .. }
                | AppStage::Up { .. }
                | AppStage::Stopping { .. },
                AppInput::Stop,
            ) => self.bring_down(&mut ctx, false, false),
            (
                AppStage::Down
                | AppStage::Starting { .. }
                | AppStage::Up { .. }
                | AppStage::Stopping { .. },
                AppInput::Restart,
            ) => self.bring_down(&mut ctx, true, false),
            (AppStage::Up { since }, AppInput::Failed { job }) => {
                self.follow_failure(&mut ctx, job, since);
            }
            (AppStage::Starting { sequence }, AppInput::Failed { job }) => {
                let place = facts.member(job).map(|member| member.place);
                if place.is_some_and(|place| place.start_sequence < sequence) {
                    self.follow_failure(&mut ctx, job, now);
                }
            }
            (AppStage::Starting { sequence }, AppInput::Moved) => {
                self.go_on_starting(&mut ctx, sequence);
            }
            (AppStage::Stopping { again, failed }, AppInput::Moved) => {
                self.go_on_bringing_down(&mut ctx, again, failed);
            }
            (AppStage::Starting { .. }, AppInput::Start)
            | (AppStage::Down | AppStage::Stopping { .. }, AppInput::Failed { .. })
            | (AppStage::Down | AppStage::Up { .. }, AppInput::Moved) => {}
        }
        ctx.orders
    }

    #[must_use]
    pub fn phase(&self) -> AppPhase {
        match *self.stage {
            AppStage::Down => AppPhase::Stopped,
            AppStage::Starting { .. } => AppPhase::Starting,
            AppStage::Up { .. } => AppPhase::Running,
            AppStage::Stopping { .. } => AppPhase::Stopping,
        }
    }

    /// Whether it has something to do when its members move.
    #[must_use]
    pub fn is_moving(&self) -> bool {
        match *self.stage {
            AppStage::Down | AppStage::Up { .. } => false,
            AppStage::Starting { .. } | AppStage::Stopping { .. } => true,
        }
    }

    /// The app's reason for a member to rest. `None`: it has none, somebody else may.
    #[must_use]
    pub fn reason(&self, job: &Name) -> Option<RestReason> {
        self.resting.get(job.as_str()).copied()
    }

    /// A job is new in the app, and rests until its sequence has come.
    pub fn admit(&mut self, job: Name) {
        self.resting.insert(job, RestReason::NotReached);
    }

    /// Somebody else has decided about the member. `true`: the app had a reason for it to rest.
    pub fn release(&mut self, job: &Name) -> bool {
        self.resting.remove(job).is_some()
    }

    /// Members of it run, and nobody knows more.
    pub(crate) fn recover_up(&mut self, now: Mono) {
        *self.stage.edit() = AppStage::Up { since: now };
    }

    /// Nobody rests because of the app any more.
    pub fn release_all(&mut self) {
        self.resting.clear();
    }

    /// Whether a job that is new in an app is started with it at once.
    #[must_use]
    pub fn starts_newcomer(&self, place: &Place) -> bool {
        match *self.stage {
            AppStage::Up { .. } => place.start_sequence > 0,
            AppStage::Down | AppStage::Starting { .. } | AppStage::Stopping { .. } => false,
        }
    }

    /// The sequence in which the app will come to a member, while it is on its way there.
    #[must_use]
    pub fn awaited_sequence(
        &self,
        plan: &AppPlan,
        boot: &BootSequence,
        job: &Name,
        place: &Place,
    ) -> Option<u32> {
        let sequence = place.start_sequence;
        let comes = match *self.stage {
            AppStage::Starting { sequence: now } => sequence > now,
            AppStage::Down => sequence > 0 && boot.will_start(plan),
            AppStage::Stopping { again, .. } => sequence > 0 && again,
            AppStage::Up { .. } => false,
        };
        (comes && self.reason(job) == Some(RestReason::NotReached)).then_some(sequence)
    }

    /// The sequence that an app is starting.
    #[must_use]
    pub fn starting(&self) -> Option<u32> {
        match *self.stage {
            AppStage::Starting { sequence } => Some(sequence),
            AppStage::Down | AppStage::Up { .. } | AppStage::Stopping { .. } => None,
        }
    }

    /// The next sequence after this one: its members are ordered to start.
    fn begin_sequence(&mut self, ctx: &mut AppCtx<'_>, after: u32) {
        let sequences = ctx.facts.members.iter().map(|member| member.place.start_sequence);
        let Some(next) = sequences.filter(|it| *it > after).min() else {
            *self.stage.edit() = AppStage::Up { since: ctx.now };
            return;
        };
        if after == 0 {
            let jobs = ctx.facts.members.iter().filter(|it| it.is_to_start());
            ctx.orders.push(AppOrder::Prepare { jobs: jobs.map(|it| it.name.clone()).collect() });
        }
        *self.stage.edit() = AppStage::Starting { sequence: next };
        for member in ctx.facts.members.iter().filter(|it| it.place.start_sequence == next) {
            self.give(member.name, None);
            ctx.orders.push(AppOrder::Start { job: member.name.clone() });
        }
    }

    fn go_on_starting(&mut self, ctx: &mut AppCtx<'_>, sequence: u32) {
        let (mut under_way, mut failed) = (false, false);
        for member in ctx.facts.members.iter().filter(|it| it.place.start_sequence == sequence) {
            match member.progress() {
                Progress::Done => {}
                Progress::UnderWay => under_way = true,
                Progress::Failed => failed |= member.place.required,
            }
        }
        match (failed, ctx.plan.on_start_failure) {
            (true, OnStartFailure::Stop) => self.bring_down(ctx, false, true),
            (true, OnStartFailure::Abort) => self.abort_start(ctx),
            (true, OnStartFailure::Continue) | (false, _) => {
                if !under_way {
                    self.begin_sequence(ctx, sequence);
                }
            }
        }
    }

    /// Nothing more is started: the sequences of those that still rest never come.
    fn abort_start(&mut self, ctx: &mut AppCtx<'_>) {
        for member in &ctx.facts.members {
            if self.reason(member.name) == Some(RestReason::NotReached) {
                self.give(member.name, Some(RestReason::StartAborted));
            }
        }
        *self.stage.edit() = AppStage::Up { since: ctx.now };
    }

    /// What has no process is stopped at once; the others follow in their order.
    fn bring_down(&mut self, ctx: &mut AppCtx<'_>, again: bool, failed: bool) {
        *self.stage.edit() = AppStage::Stopping { again, failed };
        for member in ctx.facts.members.iter().filter(|it| !it.has_process()) {
            self.stop(ctx, member, failed);
        }
        self.go_on_bringing_down(ctx, again, failed);
    }

    fn go_on_bringing_down(&mut self, ctx: &mut AppCtx<'_>, again: bool, failed: bool) {
        for member in ctx.facts.next_to_stop(ctx.plan) {
            self.stop(ctx, member, failed);
        }
        if !ctx.facts.members.iter().any(Member::has_process) {
            *self.stage.edit() = AppStage::Down;
            if again {
                self.begin_sequence(ctx, 0);
            }
        }
    }

    /// What a user has at rest stays there for the user's reason, what has ended for its own.
    fn stop(&mut self, ctx: &mut AppCtx<'_>, member: &Member<'_>, failed: bool) {
        let had = self.reason(member.name);
        let reason = match (member.state, had) {
            (MemberState::Ended { .. }, _) | (MemberState::AtRest, None) => None,
            (MemberState::AtRest, Some(_)) | (MemberState::Up | MemberState::UnderWay, _) => {
                failed.then_some(RestReason::AppFailed)
            }
        };
        self.give(member.name, reason);
        ctx.orders.push(AppOrder::Stop { job: member.name.clone() });
    }

    /// A member of an app that has started (`since`) is lost.
    fn follow_failure(&mut self, ctx: &mut AppCtx<'_>, job: &Name, since: Mono) {
        let Some(member) = ctx.facts.member(job) else { return };
        let stable = ctx.now.since(since) >= STABLE;
        match member.place.on_failure.unwrap_or(ctx.plan.on_failure) {
            OnFailure::Continue => {}
            OnFailure::RestartProcess => ctx.orders.push(AppOrder::Retry { job: job.clone() }),
            OnFailure::RestartApp if stable => self.bring_down(ctx, true, true),
            OnFailure::RestartApp | OnFailure::StopApp => self.bring_down(ctx, false, true),
        }
    }

    fn give(&mut self, job: &Name, reason: Option<RestReason>) {
        match reason {
            Some(reason) => self.resting.insert(job.clone(), reason),
            None => drop(self.resting.remove(job)),
        }
    }
}
