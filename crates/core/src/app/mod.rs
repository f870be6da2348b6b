//! One app: jobs that start and stop together, in order.
//!
//! ```text
//!   DOWN ──start──► STARTING(sequence) ──all sequences done──► UP
//!    ▲ ▲               │ a required job failed: abort ─────────►│
//!    │ └─ BACKOFF ◄─┐  │                                        │
//!    └── all down ── STOPPING ◄──── stop, or a failure ─────────┘
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
//! and in which order, is in [`BootSequence`]. Apps that go in lock-step ([`Facts::in_step`]) come to
//! their next sequence together, when all of them are done with theirs ([`AppInput::Next`]).
//!
//! **Failures.** A member *crashes* when it ends, was not meant to, and its own `restart` answers
//! that no more; it is *lost* when the node is gone on which it ran. `on_failure` says what follows:
//!
//! | | crashed | lost |
//! |---|---|---|
//! | continue | nothing | nothing |
//! | restart-process | nothing | it comes back elsewhere; if nothing of the app is left, restart-app |
//! | restart-app | down and up again, as often as [`AppRestarts`] allows | down and up again |
//! | stop-app | down | down |
//!
//! Of several at once, and of those that come while the app goes down for another one, the last
//! line counts. What a user asks for counts more than any of them. A member that fails before the
//! app is through with its sequence has not started: then `on_start_failure` says what follows.
//!
//! **Reasons.** The app knows why a member rests that no user has stopped: its sequence has not
//! come, the start was aborted before it came, or the app was stopped because a member failed. A
//! reason is gone as soon as anybody else decides about the member ([`App::release`]).

mod boot;
mod descent;
mod failure;
mod member;
mod records;
mod restarts;
mod wave;

pub use boot::BootSequence;
pub use descent::Descent;
pub use failure::AppFailure;
pub(crate) use member::LIVES;
pub use member::{Facts, Member, MemberProcess, MemberState, RestReason};
pub use records::AppState;
pub use restarts::{AppRestarts, LIMIT as RESTART_LIMIT, WITHIN as RESTART_WINDOW};
pub use wave::Wave;

use crate::{
    clock::Mono,
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
    /// Down after a failure, and about to start again.
    Backoff,
}

/// What an app is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppInput<'a> {
    Start,
    Stop,
    Restart,
    /// An app that is up is restarted so many members at a time.
    RestartInWaves {
        size: u32,
    },
    /// A member has ended for good and was not meant to.
    Failed {
        job: &'a Name,
    },
    /// These ran on a node that is gone, and nowhere else.
    Lost {
        jobs: &'a BTreeSet<Name>,
    },
    /// Something about the members may be other than it was.
    Moved,
    /// All apps that it goes in step with are done with their sequence.
    Next,
    /// The time of [`AppOrder::Wake`] has come.
    Due,
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
    /// Down and up again: its wave has come.
    Restart {
        job: Name,
    },
    /// It did not come up in its wave: no other follows.
    StopWaves {
        job: Name,
    },
    /// Its node is lost: it comes back elsewhere. That is a restart by policy.
    FailOver {
        job: Name,
    },
    /// The app wants to hear [`AppInput::Due`] then. A later one replaces it.
    Wake {
        at: Mono,
    },
}

#[derive(Debug, Clone, Default)]
pub struct App {
    stage: Journaled<AppStage>,
    restarts: Journaled<AppRestarts>,
    /// Why members rest, where that is the doing of the app.
    resting: JournaledMap<RestReason>,
    /// While it is up and restarted in waves.
    wave: Journaled<Option<Wave>>,
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
        /// For an older binary, which asks for how long.
        since: Mono,
    },
    Stopping(Descent),
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
                self.forgive();
                self.begin_sequence(&mut ctx, 0);
            }
            (AppStage::Starting { .. }, AppInput::Start) => self.forgive(),
            (AppStage::Stopping(descent), AppInput::Start) => {
                self.forgive();
                let descent = Descent { again: true, wanted: true, ..descent };
                *self.stage.edit() = AppStage::Stopping(descent);
            }
            (
                AppStage::Down
                | AppStage::Starting { .. }
                | AppStage::Up { .. }
                | AppStage::Stopping(_),
                AppInput::Stop,
            ) => {
                self.forgive();
                self.bring_down(&mut ctx, Descent::ASKED);
            }
            (
                AppStage::Down
                | AppStage::Starting { .. }
                | AppStage::Up { .. }
                | AppStage::Stopping(_),
                AppInput::Restart,
            ) => {
                self.forgive();
                self.bring_down(&mut ctx, Descent::RESTART);
            }
            (AppStage::Up { .. }, AppInput::RestartInWaves { size }) => {
                self.forgive();
                *self.wave.edit() = Some(Wave::new(size, facts));
                self.go_on_with_waves(&mut ctx);
            }
            // There is nothing to be kept up.
            (
                AppStage::Down | AppStage::Starting { .. } | AppStage::Stopping(_),
                AppInput::RestartInWaves { .. },
            ) => {
                self.forgive();
                self.bring_down(&mut ctx, Descent::RESTART);
            }
            (AppStage::Up { .. }, AppInput::Moved | AppInput::Due) => {
                self.go_on_with_waves(&mut ctx);
            }
            (AppStage::Up { .. }, AppInput::Failed { job }) => self.crashed(&mut ctx, job),
            (AppStage::Starting { sequence }, AppInput::Failed { job }) => {
                let place = facts.member(job).map(|member| member.place);
                if place.is_some_and(|place| place.start_sequence < sequence) {
                    self.crashed(&mut ctx, job);
                }
            }
            (AppStage::Stopping(descent), AppInput::Failed { job }) => {
                self.overrule(&ctx, descent, std::slice::from_ref(job));
            }
            (AppStage::Up { .. } | AppStage::Starting { .. }, AppInput::Lost { jobs }) => {
                self.lost(&mut ctx, jobs);
            }
            (AppStage::Stopping(descent), AppInput::Lost { jobs }) => {
                self.overrule(&ctx, descent, jobs);
            }
            (AppStage::Starting { sequence }, AppInput::Moved) => {
                self.go_on_starting(&mut ctx, sequence, !facts.in_step);
            }
            (AppStage::Starting { sequence }, AppInput::Next) => {
                self.go_on_starting(&mut ctx, sequence, true);
            }
            (AppStage::Stopping(descent), AppInput::Moved) => {
                self.go_on_bringing_down(&mut ctx, descent, !facts.in_step);
            }
            (AppStage::Stopping(descent), AppInput::Next) => {
                self.go_on_bringing_down(&mut ctx, descent, true);
            }
            (AppStage::Down, AppInput::Due) => self.come_back(&mut ctx),
            (AppStage::Down, AppInput::Failed { .. } | AppInput::Lost { .. })
            | (AppStage::Down, AppInput::Moved)
            | (AppStage::Down | AppStage::Up { .. }, AppInput::Next)
            | (AppStage::Starting { .. } | AppStage::Stopping(_), AppInput::Due) => {}
        }
        ctx.orders
    }

    #[must_use]
    pub fn phase(&self) -> AppPhase {
        match *self.stage {
            AppStage::Down if self.will_come_back() => AppPhase::Backoff,
            AppStage::Down => AppPhase::Stopped,
            AppStage::Starting { .. } => AppPhase::Starting,
            AppStage::Up { .. } => AppPhase::Running,
            AppStage::Stopping(_) => AppPhase::Stopping,
        }
    }

    /// Whether it has something to do when its members move.
    #[must_use]
    pub fn is_moving(&self) -> bool {
        match *self.stage {
            AppStage::Down | AppStage::Up { .. } => false,
            AppStage::Starting { .. } | AppStage::Stopping(_) => true,
        }
    }

    /// It is down, and will start again by itself: [`AppOrder::Wake`] says when.
    #[must_use]
    pub fn will_come_back(&self) -> bool {
        self.comes_back_at().is_some()
    }

    /// When it starts again by itself, while it is down.
    #[must_use]
    pub fn comes_back_at(&self) -> Option<Mono> {
        match *self.stage {
            AppStage::Down => self.restarts.due(),
            AppStage::Starting { .. } | AppStage::Up { .. } | AppStage::Stopping(_) => None,
        }
    }

    /// It failed once more than it may be restarted.
    #[must_use]
    pub fn is_used_up(&self) -> bool {
        self.restarts.is_used_up()
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
            AppStage::Down | AppStage::Starting { .. } | AppStage::Stopping(_) => false,
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
            AppStage::Down => sequence > 0 && (self.will_come_back() || boot.will_start(plan)),
            AppStage::Stopping(descent) => sequence > 0 && descent.again,
            AppStage::Up { .. } => false,
        };
        (comes && self.reason(job) == Some(RestReason::NotReached)).then_some(sequence)
    }

    /// The sequence that an app is starting.
    #[must_use]
    pub fn starting(&self) -> Option<u32> {
        match *self.stage {
            AppStage::Starting { sequence } => Some(sequence),
            AppStage::Down | AppStage::Up { .. } | AppStage::Stopping(_) => None,
        }
    }

    /// Whether a member holds the present sequence up: those that start, or those that go down.
    #[must_use]
    pub fn awaits(&self, facts: &Facts<'_>) -> bool {
        match *self.stage {
            AppStage::Down | AppStage::Up { .. } => false,
            AppStage::Starting { sequence } => {
                let mut members = facts.members.iter();
                members.any(|it| it.place.start_sequence == sequence && it.is_awaited())
            }
            AppStage::Stopping(_) => facts.members.iter().any(Member::is_ending),
        }
    }

    /// The next sequence after this one: its members are ordered to start.
    fn begin_sequence(&mut self, ctx: &mut AppCtx<'_>, after: u32) {
        self.drop_waves();
        let sequences = ctx.facts.members.iter().map(|member| member.place.start_sequence);
        let Some(next) = sequences.filter(|it| *it > after).min() else {
            *self.stage.edit() = AppStage::Up { since: ctx.now };
            return;
        };
        if after == 0 {
            if self.restarts.due().is_some() {
                self.restarts.edit().cancel();
            }
            let jobs = ctx.facts.members.iter().filter(|it| it.is_to_start());
            let jobs: BTreeSet<Name> = jobs.map(|it| it.name.clone()).collect();
            // Whatever kept them at rest so far.
            for job in &jobs {
                if self.reason(job).is_some() {
                    self.give(job, Some(RestReason::NotReached));
                }
            }
            ctx.orders.push(AppOrder::Prepare { jobs });
        }
        *self.stage.edit() = AppStage::Starting { sequence: next };
        for member in ctx.facts.members.iter().filter(|it| it.place.start_sequence == next) {
            self.give(member.name, None);
            ctx.orders.push(AppOrder::Start { job: member.name.clone() });
        }
    }

    /// `may_go_on`: to the next sequence, when this one is done.
    fn go_on_starting(&mut self, ctx: &mut AppCtx<'_>, sequence: u32, may_go_on: bool) {
        let (mut under_way, mut failed) = (false, false);
        for member in ctx.facts.members.iter().filter(|it| it.place.start_sequence == sequence) {
            match member.progress() {
                Progress::Done => {}
                Progress::UnderWay => under_way = true,
                Progress::Failed => failed |= member.place.required,
            }
        }
        match (failed, ctx.plan.on_start_failure) {
            (true, OnStartFailure::Stop) => self.bring_down(ctx, Descent::FAILED),
            (true, OnStartFailure::Abort) => self.abort_start(ctx),
            (true, OnStartFailure::Continue) | (false, _) => {
                if !under_way && may_go_on {
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
    fn bring_down(&mut self, ctx: &mut AppCtx<'_>, descent: Descent) {
        self.drop_waves();
        *self.stage.edit() = AppStage::Stopping(descent);
        for member in ctx.facts.members.iter().filter(|it| !it.has_process()) {
            self.stop(ctx, member, descent);
        }
        self.go_on_bringing_down(ctx, descent, true);
    }

    /// `may_go_on`: to the next sequence, when this one is gone.
    fn go_on_bringing_down(&mut self, ctx: &mut AppCtx<'_>, descent: Descent, may_go_on: bool) {
        if may_go_on || ctx.facts.members.iter().any(Member::is_stopping) {
            for member in ctx.facts.next_to_stop(ctx.plan) {
                self.stop(ctx, member, descent);
            }
        }
        if ctx.facts.members.iter().any(Member::has_process) {
            return;
        }
        *self.stage.edit() = AppStage::Down;
        match (descent.again, self.restarts.due()) {
            (false, _) => {}
            (true, Some(_)) => self.come_back(ctx),
            (true, None) => self.begin_sequence(ctx, 0),
        }
    }

    /// It is down after a failure: now, or when its time has come.
    fn come_back(&mut self, ctx: &mut AppCtx<'_>) {
        match self.restarts.due() {
            None => {}
            Some(at) if ctx.now < at => ctx.orders.push(AppOrder::Wake { at }),
            Some(_) => self.begin_sequence(ctx, 0),
        }
    }

    /// What a user has at rest stays there for the user's reason, what has ended for its own.
    fn stop(&mut self, ctx: &mut AppCtx<'_>, member: &Member<'_>, descent: Descent) {
        let had = self.reason(member.name);
        let reason = match (member.state, had) {
            (MemberState::Ended { .. }, _) | (MemberState::AtRest, None) => None,
            (MemberState::AtRest, Some(_)) | (MemberState::Up | MemberState::UnderWay, _) => {
                descent.reason()
            }
        };
        self.give(member.name, reason);
        ctx.orders.push(AppOrder::Stop { job: member.name.clone() });
    }

    fn crashed(&mut self, ctx: &mut AppCtx<'_>, job: &Name) {
        match ctx.strongest(std::slice::from_ref(job)) {
            OnFailure::Continue | OnFailure::RestartProcess => {}
            OnFailure::RestartApp => {
                let left = self.restarts.edit().spend(ctx.now);
                self.bring_down(ctx, if left { Descent::FAILED_AGAIN } else { Descent::FAILED });
            }
            OnFailure::StopApp => self.bring_down(ctx, Descent::FAILED),
        }
    }

    fn lost(&mut self, ctx: &mut AppCtx<'_>, jobs: &BTreeSet<Name>) {
        match ctx.strongest(jobs) {
            OnFailure::Continue => {}
            OnFailure::RestartProcess if ctx.nothing_is_left() && ctx.is_in_sequence(jobs) => {
                self.start_over(ctx);
            }
            OnFailure::RestartProcess => {
                let elsewhere = |job: &&Name| {
                    ctx.rule(job) == OnFailure::RestartProcess && self.reason(job).is_none()
                };
                let jobs: Vec<Name> = jobs.iter().filter(elsewhere).cloned().collect();
                ctx.orders.extend(jobs.into_iter().map(|job| AppOrder::FailOver { job }));
            }
            OnFailure::RestartApp => self.start_over(ctx),
            OnFailure::StopApp => self.bring_down(ctx, Descent::FAILED),
        }
    }

    /// Down and up again, at once and for nothing.
    fn start_over(&mut self, ctx: &mut AppCtx<'_>) {
        self.restarts.edit().spare(ctx.now);
        self.bring_down(ctx, Descent::FAILED_AGAIN);
    }

    /// A failure while the app goes down: it may want more than what it goes down for.
    fn overrule<'a>(
        &mut self,
        ctx: &AppCtx<'_>,
        descent: Descent,
        jobs: impl IntoIterator<Item = &'a Name>,
    ) {
        match ctx.strongest(jobs) {
            OnFailure::StopApp if descent.may_be_overruled() => {
                *self.stage.edit() = AppStage::Stopping(Descent::FAILED);
                self.restarts.edit().cancel();
                for member in &ctx.facts.members {
                    if self.reason(member.name) == Some(RestReason::NotReached) {
                        self.give(member.name, Some(RestReason::AppFailed));
                    }
                }
            }
            OnFailure::StopApp
            | OnFailure::RestartApp
            | OnFailure::RestartProcess
            | OnFailure::Continue => {}
        }
    }

    /// A user has decided about the app: what it did by itself is no longer counted.
    fn forgive(&mut self) {
        if *self.restarts != AppRestarts::default() {
            *self.restarts.edit() = AppRestarts::default();
        }
    }

    fn give(&mut self, job: &Name, reason: Option<RestReason>) {
        match reason {
            Some(reason) => self.resting.insert(job.clone(), reason),
            None => drop(self.resting.remove(job)),
        }
    }
}

impl AppCtx<'_> {
    /// What follows from the failure of a job.
    fn rule(&self, job: &Name) -> OnFailure {
        let member = self.facts.member(job);
        member.map_or(OnFailure::Continue, |it| it.place.on_failure.unwrap_or(self.plan.on_failure))
    }

    /// Of several failures.
    fn strongest<'a>(&self, jobs: impl IntoIterator<Item = &'a Name>) -> OnFailure {
        let rules = jobs.into_iter().map(|job| self.rule(job));
        rules.max().unwrap_or(OnFailure::Continue)
    }

    /// Nobody of the app runs or is about to.
    fn nothing_is_left(&self) -> bool {
        self.facts.members.iter().all(|it| match it.state {
            MemberState::Ended { .. } | MemberState::AtRest => !it.has_process(),
            MemberState::Up | MemberState::UnderWay => false,
        })
    }

    /// A start of the app comes to one of them.
    fn is_in_sequence(&self, jobs: &BTreeSet<Name>) -> bool {
        let mut members = jobs.iter().filter_map(|job| self.facts.member(job));
        members.any(|it| it.place.start_sequence > 0)
    }
}
