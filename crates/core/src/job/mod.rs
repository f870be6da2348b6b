//! One job: its state, and what is decided about it.
//!
//! ```text
//!            launch            exec, start_seconds over
//!  STOPPED ─────────► STARTING ─────────────────────────► RUNNING
//!     ▲                ▲  │ └──────── stop ───────┐ ┌─ stop ─┘ │
//!     │        back-off│  │exit                   ▼ ▼          │exit
//!     │            over│  ▼           exit     STOPPING        │
//!     │◄─ stop ──── BACKOFF ◄──────┐ ◄──┐         │            │
//!     │                            │    │         │            │
//!     │                       restart by policy ◄─┼────────────┤
//!     └────── exit, nothing more wanted ──────────┘            ▼
//!                                      EXITED, FATAL ◄── no restart
//! ```
//!
//! What is *desired* is kept apart from what is *observed*. The plan and people set the desire:
//! `run` or `rest`; the end of an incarnation that policy does not follow with another one ends
//! it, too. A job that is STOPPED but desired waits for its launch; one that is STOPPING but
//! desired is launched again when its end has come.
//!
//! **Incarnations.** Each launch takes the next number. `ended` is the highest number whose end is
//! accounted for: an end is reported once, whoever tells it again. STARTING, RUNNING and STOPPING
//! are the states in which a process may exist (`incarnation > ended`); no launch is decided in
//! them, so there are never two live incarnations. Whatever names another incarnation is either
//! old (and changes nothing) or newer than the journal (and is adopted: the keeper is right about
//! what exists).
//!
//! **Events.** `state` for each change of phase, after the events that explain it. An end says
//! exitSuccess or exitFailed, then `unhealthy` if it has failed and nothing follows; the end of desire
//! says `stopping` when it begins and `stopped` once the tree is gone. A restart by policy says neither.
//!
//! **Waiting.** A job that is desired and has no process waits: for its latches, for what it
//! follows, for its trigger. It is STOPPED then; a job with a trigger shows its last end between
//! two runs. The node knows when it may pass (`gate`).
//!
//! A job has one entry, `Job::step`. It is made of parts that own their state and that nobody else
//! looks into: its `run` (which incarnation, how far), the `wish`, the `gate` before its launch, its
//! `checks` and the `recovery` that they expect, the stages of a `stop`, its restart `budget`, its `announce`ment, its
//! `pending_restart`, and what a `takeover` finds. What a part wants done it gives to the `ctx`,
//! which only takes ([`Effects`](ctx::Effects)). What goes from one part to another is decided in
//! `start` (from the wish to RUNNING), `end` (from RUNNING to rest), `adopt` (what a new agent
//! finds), `change` (another plan), and `requests`.

mod adopt;
mod announce;
mod budget;
mod change;
mod check_state;
mod checks;
mod ctx;
mod end;
mod gate;
mod input;
mod pending_restart;
mod recovery;
mod requests;
mod run;
mod start;
mod stop;
mod summary;
mod takeover;
mod wish;

pub(crate) use budget::STABLE;
pub(crate) use check_state::Notification;
pub use check_state::{CheckState, Verdict};
pub use checks::Health;
pub(crate) use ctx::{Effects, JobCtx, Shutting};
pub(crate) use end::LAST_EVENT;
pub(crate) use gate::{HookRun, Permit, is_triggered};
pub(crate) use input::JobInput;
pub use run::Phase;
pub(crate) use stop::Force;
pub use stop::StopStage;
pub use summary::JobSummary;
pub use wish::Desired;

use crate::{
    clock::Mono,
    discovery::Standing,
    event::{EventName, History, Kind},
    exit::{Exit, KillReason, Usage},
    node::{Refusal, Wait},
    plan::{Awaited, JobPlan, SourceRef},
};
use announce::{Announcement, Initial, Presence};
use budget::Budget;
use checks::Checks;
use gate::{Due, Gate};
use pending_restart::PendingRestart;
use run::{Run, State};
use serde::{Deserialize, Serialize};
use takeover::Takeover;
use wish::Wish;

/// Serialised into the journal, so it is a format: new fields have defaults.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Job {
    run: Run,
    wish: Wish,
    budget: Budget,
    #[serde(default, skip_serializing_if = "Gate::is_default")]
    gate: Gate,
    checks: Checks,
    /// What it has said in its life.
    #[serde(default, skip_serializing_if = "History::is_empty")]
    history: History,
    #[serde(default, skip_serializing_if = "PendingRestart::is_none")]
    pending_restart: PendingRestart,
    #[serde(default, skip_serializing_if = "Announcement::is_absent")]
    announcement: Announcement,
    /// It is announced as its plan says, and not as its checks do.
    #[serde(default, skip_serializing_if = "Initial::is_over")]
    initial: Initial,
}

impl Job {
    /// A job that has not run yet. The plan wants it to run, unless an app has to say when, or a user.
    pub(crate) fn new(plan: &JobPlan) -> Job {
        match (&plan.app, plan.autostart) {
            (None, true) => Job::with_wish(Desired::Run),
            (None, false) | (Some(_), _) => Job::with_wish(Desired::Rest),
        }
    }

    /// One that a user has disabled in an earlier run.
    #[must_use]
    pub fn disabled() -> Job {
        Job::with_wish(Desired::Disabled)
    }

    fn with_wish(desired: Desired) -> Job {
        Job {
            run: Run::new(),
            wish: Wish::new(desired),
            budget: Budget::default(),
            gate: Gate::default(),
            checks: Checks::new(),
            history: History::default(),
            pending_restart: PendingRestart::None,
            announcement: Announcement::Absent,
            initial: Initial::default(),
        }
    }

    /// Takes one input: says what has happened, and wants done what follows from it. What it has
    /// said is remembered, and others are told what has changed for them.
    ///
    /// # Errors
    /// A request that is not taken.
    pub(crate) fn step(
        &mut self,
        ctx: &mut JobCtx<'_>,
        input: JobInput<'_>,
    ) -> Result<(), Refusal> {
        let told = ctx.events();
        let taken = self.take(ctx, input);
        let said = ctx.said_since(told);
        said.for_each(|event| self.history.note(event));
        let (mut announcement, mut initial) = (self.announcement, self.initial);
        let plan = ctx.plan;
        announcement.update(ctx, &mut initial, || self.presence(plan));
        (self.announcement, self.initial) = (announcement, initial);
        taken
    }

    fn take(&mut self, ctx: &mut JobCtx<'_>, input: JobInput<'_>) -> Result<(), Refusal> {
        match input {
            JobInput::Attached { held } => {
                self.attached(ctx, Takeover::new(self.incarnation(), held));
            }
            JobInput::Recovered { held } => self.recover(ctx, held),
            JobInput::Spawned { incarnation, pid } => self.spawned(ctx, incarnation, pid),
            JobInput::Exited { incarnation, exit, usage, asked } => {
                self.exited(ctx, incarnation, exit, usage, asked);
            }
            JobInput::StopExecDone { incarnation } => {
                if incarnation == self.incarnation() {
                    self.advance_stop(ctx, KillReason::StopTimeout, StopStage::task_done);
                }
            }
            JobInput::Timer { incarnation, wait } => self.timer(ctx, incarnation, wait),
            JobInput::Checked { incarnation, check, passed, output } => {
                if incarnation == self.incarnation() {
                    self.checks.answered(ctx, &self.run, check, passed, output);
                }
            }
            JobInput::Notified { incarnation, said } => {
                if incarnation == self.incarnation() {
                    self.checks.notified(ctx, &self.run, said);
                }
            }
            JobInput::CronDue => self.cron_due(ctx),
            JobInput::Withdrawn => {
                if self.announcement.withdrawn() {
                    self.advance_stop(ctx, KillReason::StopTimeout, StopStage::withdrawn);
                }
            }
            JobInput::LaunchAhead { along } => {
                self.history.forget_all_but_end();
                self.gate.ask(ctx, along);
            }
            JobInput::SourceBegins => self.await_next_end(),
            JobInput::SourceEnds => self.stay_for_end(),
            JobInput::RestartInOrder { args } => self.restart_in_order(ctx, args),
            JobInput::Start { args, now } => return self.asked_to_start(ctx, args, now),
            JobInput::Restart { args } => self.restart(ctx, args),
            JobInput::Stop(force) => self.stop(ctx, force),
            JobInput::Signal { signal, to } => return self.signal(ctx, signal, to),
            JobInput::Reload => return self.reload(ctx),
            JobInput::Disable => self.disable(ctx),
            JobInput::Enable { rests } => self.enable(ctx, rests),
            JobInput::Arm => self.arm(ctx),
            JobInput::Permitted(permit) => self.permitted(ctx, permit),
            JobInput::Triggered => self.trigger(),
            JobInput::SourceLost => self.follow_down(ctx),
            JobInput::SourceBack => self.follow_up(ctx),
            JobInput::HooksDone => {
                self.advance_stop(ctx, KillReason::StopTimeout, StopStage::hooks_done)
            }
            JobInput::ShutdownBegun => {
                if self.phase().is_up() {
                    self.run.be_quick(ctx);
                }
            }
            JobInput::MaintenanceChanged => {
                if !ctx.maintenance {
                    self.checks.maintenance_over(ctx, &self.run);
                }
            }
            JobInput::PlanLingers => {}
            JobInput::Ordered => self.order(ctx),
            JobInput::PlanChanged { before } => self.change_plan(ctx, before),
            JobInput::PlanRevives { before } => {
                self.change_plan(ctx, before);
                self.revive(ctx);
            }
            JobInput::PlanRestarts { before } => self.restart_for_plan(ctx, before),
            JobInput::PlanRemoves => self.leave(ctx),
            JobInput::PlanLosesSource => self.lose_source(ctx),
            JobInput::RestartAlong => self.restart_along(),
            JobInput::BeginRestart => self.begin_pending_restart(ctx),
        }
        Ok(())
    }

    /// A wait is over. One that belongs to another incarnation or state no longer matters; one
    /// that comes too early is set again, so that an impatient clock costs nothing.
    fn timer(&mut self, ctx: &mut JobCtx<'_>, incarnation: u64, wait: Wait) {
        // What starts the next incarnation does not belong to the last one, nor does what is
        // expected of it.
        let outlives = wait == Wait::Interval || wait == Wait::Recovery;
        if !outlives && incarnation != self.incarnation() {
            return;
        }
        match wait {
            Wait::Started => self.start_seconds_over(ctx),
            Wait::Backoff => self.backoff_over(ctx),
            Wait::StopTimeout => self.stop_timeout_over(ctx),
            Wait::When => self.when_timeout_over(ctx),
            Wait::Longest => self.longest_run_over(ctx),
            Wait::Check(check) => self.checks.due(ctx, &self.run, check),
            Wait::Recovery => self.checks.recovery_over(ctx),
            Wait::Interval => {
                if self.gate.interval_over(ctx) == Due::Now {
                    self.trigger();
                }
            }
        }
    }

    fn when_timeout_over(&mut self, ctx: &mut JobCtx<'_>) {
        if self.gate.when_timeout_over(ctx, self.run.incarnation()) == Due::Now && self.waits() {
            ctx.emit(Kind::TimerExpired);
            self.checks.give_up(ctx);
            self.end_desire(ctx, State::Fatal);
        }
    }

    fn cron_due(&mut self, ctx: &mut JobCtx<'_>) {
        if ctx.rearm_cron() {
            self.trigger();
        }
    }

    /// What its announcement depends on.
    fn presence(&self, plan: &JobPlan) -> Presence {
        Presence {
            up: (self.phase().is_up() || self.backs_off()) && !self.awaits_pass(),
            health: self.health(),
            initial: self.initial,
            complaint: self.complaint(plan),
        }
    }

    fn complaint(&self, plan: &JobPlan) -> String {
        let failing = self.checks.complaint(plan);
        match self.last_exit() {
            Some(_) | None if !failing.is_empty() => failing,
            Some(exit) if !self.holds() => exit.to_string(),
            Some(_) | None => "not healthy yet".to_owned(),
        }
    }

    #[must_use]
    pub fn phase(&self) -> Phase {
        self.run.phase()
    }

    #[must_use]
    pub fn desired(&self) -> Desired {
        self.wish.desired()
    }

    #[must_use]
    pub fn health(&self) -> Health {
        self.checks.health()
    }

    /// Maintenance is over, and its checks have not passed since.
    #[must_use]
    pub fn awaits_pass(&self) -> bool {
        self.checks.awaits_pass()
    }

    /// In the order of the plan; empty before the first run.
    #[must_use]
    pub fn checks(&self) -> &[CheckState] {
        self.checks.states()
    }

    /// Of the process that is alive now.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.run.pid()
    }

    /// The latest; 0 before the first run.
    #[must_use]
    pub fn incarnation(&self) -> u64 {
        self.run.incarnation()
    }

    /// It was started in the life that goes on, or in no life yet.
    #[must_use]
    pub fn is_of_this_life(&self, incarnation: u64) -> bool {
        self.run.is_of_this_life(incarnation)
    }

    /// How often policy (not a user) has started it again.
    #[must_use]
    pub fn restarts(&self) -> u64 {
        self.run.restarts()
    }

    #[must_use]
    pub fn last_exit(&self) -> Option<&Exit> {
        self.run.last_exit()
    }

    /// What the run of the last exit had used.
    #[must_use]
    pub fn last_usage(&self) -> Option<Usage> {
        self.run.last_usage()
    }

    /// When it entered its phase: wall clock, ns.
    #[must_use]
    pub fn since(&self) -> i64 {
        self.run.since()
    }

    /// When the back-off is over, for a job in BACKOFF.
    #[must_use]
    pub fn restarts_at(&self) -> Option<Mono> {
        self.run.backoff_until()
    }

    /// When the process that is up, and shall stay so, was started.
    #[must_use]
    pub fn up_since(&self) -> Option<Mono> {
        self.run.process().map(|process| process.since)
    }

    /// It has run for longer than it may and is being killed.
    #[must_use]
    pub fn overran(&self) -> bool {
        self.run.overran() && self.holds()
    }

    /// How far a stop has come.
    #[must_use]
    pub fn stopping(&self) -> Option<StopStage> {
        self.run.stop_stage()
    }

    /// The standing that others were told last; `None`: that it is not there.
    #[must_use]
    pub fn announced(&self) -> Option<Standing> {
        self.announcement.standing()
    }

    /// When `when.timeout` gives it up, while it waits.
    #[must_use]
    pub fn gives_up_at(&self) -> Option<Mono> {
        self.gate.give_up_at().filter(|_| self.waits())
    }

    /// `when.timeout` has given it up.
    #[must_use]
    pub fn was_given_up_waiting(&self) -> bool {
        let given_up = self.phase() == Phase::Fatal && self.desired() != Desired::Run;
        given_up && self.has_said(Awaited::Event(EventName::TimerExpired))
    }

    /// When its interval starts it next.
    #[must_use]
    pub fn next_at(&self) -> Option<Mono> {
        self.gate.next_interval()
    }

    /// Behind the arguments of the plan, for as long as it is desired.
    #[must_use]
    pub fn args(&self) -> &[String] {
        self.wish.args()
    }

    /// What is observed is what is desired: it runs as it should, or it rests and its last run
    /// ended as it should, or it waits for nothing but its trigger. Nothing is under way and
    /// nothing was given up.
    #[must_use]
    pub fn is_as_desired(&self) -> bool {
        match (self.run.state(), self.desired()) {
            (State::Running { .. }, Desired::Run) => true,
            (State::Stopped | State::Exited { well: true }, Desired::Rest | Desired::Disabled) => {
                true
            }
            (State::Stopped | State::Exited { well: true }, Desired::Run) => self.gate.is_idle(),
            (State::Running { .. }, Desired::Rest | Desired::Disabled)
            | (
                State::Starting { .. }
                | State::Backoff { .. }
                | State::Stopping { .. }
                | State::Exited { well: false }
                | State::Fatal,
                Desired::Run | Desired::Rest | Desired::Disabled,
            ) => false,
        }
    }

    /// A process of it may exist.
    pub(crate) fn holds(&self) -> bool {
        self.run.holds()
    }

    /// It will restart by itself.
    pub(crate) fn backs_off(&self) -> bool {
        self.phase() == Phase::Backoff
    }

    /// It is desired, and nothing of it is there or under way.
    pub(crate) fn waits(&self) -> bool {
        self.phase().is_at_rest() && self.desired() == Desired::Run
    }

    pub(crate) fn has_pending_trigger(&self) -> bool {
        self.gate.has_trigger()
    }

    /// Whether its launch waits for what this source has to say.
    pub(crate) fn asks(&self, source: &SourceRef) -> bool {
        self.gate.asks(source)
    }

    /// Its next launch begins a life.
    pub(crate) fn is_between_lives(&self) -> bool {
        !self.run.is_of_this_life(self.incarnation())
    }

    /// Its next launch gives time to who runs after its last end.
    #[must_use]
    pub fn gives_time_to_hooks(&self) -> bool {
        self.gate.hooks_until().is_some()
    }

    /// A run on behalf of another job's end.
    #[must_use]
    pub fn is_hook_run(&self) -> bool {
        self.gate.is_hook_run()
    }

    /// Time is running out for its launch.
    pub(crate) fn will_give_up(&self) -> bool {
        self.gate.give_up_at().is_some()
    }

    /// Waits for jobs that run on behalf of its end.
    pub(crate) fn waits_for_hooks(&self) -> bool {
        self.stopping().is_some_and(StopStage::awaits_hooks)
    }

    /// Up, and nobody has told it to stop. A hook run ends by itself.
    pub(crate) fn is_untold(&self) -> bool {
        self.phase().is_up() && !self.is_hook_run()
    }

    /// What needs it waits until its new process is up.
    pub(crate) fn has_pending_restart(&self) -> bool {
        !self.pending_restart.is_none()
    }

    pub(crate) fn is_restart_due(&self) -> bool {
        self.pending_restart.is_due()
    }

    /// Its last run ended as expected, and nothing follows it.
    #[must_use]
    pub fn ended_well(&self) -> bool {
        self.ended_for_good() == Some(true)
    }

    /// Whether its last run ended as expected, while it waits for the next one.
    pub(crate) fn last_run_well(&self) -> Option<bool> {
        match self.run.state() {
            State::Exited { well } => Some(well),
            State::Fatal => Some(false),
            State::Stopped
            | State::Starting { .. }
            | State::Running { .. }
            | State::Backoff { .. }
            | State::Stopping { .. } => None,
        }
    }

    /// It rests, and has not ended by itself.
    #[must_use]
    pub fn rests(&self) -> bool {
        self.desired() == Desired::Rest && self.ended_for_good().is_none()
    }

    /// `Some` once it has ended by itself and nothing but a user brings it back: did it end well?
    pub(crate) fn ended_for_good(&self) -> Option<bool> {
        match (self.run.state(), self.desired()) {
            (State::Exited { well }, Desired::Rest | Desired::Disabled) => Some(well),
            (State::Fatal, Desired::Rest | Desired::Disabled) => Some(false),
            (State::Exited { .. } | State::Fatal, Desired::Run)
            | (
                State::Stopped
                | State::Starting { .. }
                | State::Running { .. }
                | State::Backoff { .. }
                | State::Stopping { .. },
                Desired::Run | Desired::Rest | Desired::Disabled,
            ) => None,
        }
    }

    /// The highest incarnation whose end is accounted for.
    pub(crate) fn ended(&self) -> u64 {
        self.run.ended()
    }

    /// What it has said in its life.
    pub(crate) fn history(&self) -> History {
        self.history
    }

    pub(crate) fn has_said(&self, event: Awaited) -> bool {
        self.history.has(event)
    }
}
