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
//! exitSuccess or exitFailed, then `unhealthy` if the job was healthy; the end of desire says
//! `stopping` when it begins and `stopped` once the tree is gone. A restart by policy says neither.
//!
//! **Waiting.** A job that is desired and has no process waits: for its latches, for what it
//! follows, for its trigger. It is STOPPED then; a job with a trigger shows its last end between
//! two runs. The node knows when it may pass (`gate`).
//!
//! The decisions are in the submodules: `gate` (from the wish to the launch), `launch` (up to
//! RUNNING), `running` (signals, reload, the longest run), `health` (checks), `ending` (an exit and
//! what follows), `stop` (hooks, withdrawal, task, signal, kill), `announce` (what others are told), `takeover` (what a new agent finds), `change`
//! (another plan), `budget` (how often and how soon again).

mod announce;
mod budget;
mod change;
mod ctx;
mod ending;
mod gate;
mod health;
mod launch;
mod running;
mod stop;
mod takeover;

pub(crate) use ctx::{JobCtx, Shutting};
pub(crate) use gate::{Pass, is_triggered};
pub use health::{CheckState, Verdict};
pub(crate) use stop::Force;
pub use stop::StopStage;

use crate::{
    clock::Mono,
    event::Kind,
    exit::Exit,
    history::History,
    node::Wait,
    plan::{Awaited, JobPlan},
};
pub(crate) use budget::STABLE;

use announce::Announcement;
use budget::Budget;
use change::PendingRestart;
use gate::Gate;
use serde::{Deserialize, Serialize};

/// Supervisor's states, as observers see them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Phase {
    Stopped,
    Starting,
    Running,
    Backoff,
    Stopping,
    Exited,
    Fatal,
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Desired {
    Run,
    Rest,
    Disabled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    Unknown,
    Healthy,
    Unhealthy,
}

/// Why a job rests that has not ended by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resting {
    /// Somebody wanted that.
    #[default]
    User,
    /// Its app has not come to it.
    Turn,
    /// The start of its app was aborted before it came to it.
    Aborted,
    /// Its app was stopped, because one of its jobs failed.
    AppFailed,
}

/// Serialised into the journal, so it is a format: see `wire::link::FORMAT`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Job {
    state: State,
    desired: Desired,
    health: Health,
    /// The highest number ever taken.
    incarnation: u64,
    /// The highest number whose end is accounted for.
    ended: u64,
    restarts: u64,
    budget: Budget,
    last_exit: Option<Exit>,
    since: i64,
    #[serde(default, skip_serializing_if = "Gate::is_default")]
    gate: Gate,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    checks: Vec<CheckState>,
    /// What it has said at least once.
    #[serde(default, skip_serializing_if = "History::is_empty")]
    history: History,
    /// A user's, behind the plan's, for as long as it is desired.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    args: Vec<String>,
    /// The incarnation that ran for too long and is being killed for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    overran: Option<u64>,
    /// It is gone from the configuration, and from here once its process is gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    leaving: bool,
    #[serde(default, alias = "renewal", skip_serializing_if = "PendingRestart::is_none")]
    pending_restart: PendingRestart,
    #[serde(default, alias = "notice", skip_serializing_if = "Announcement::is_absent")]
    announcement: Announcement,
    #[serde(default, skip_serializing_if = "Resting::is_default")]
    resting: Resting,
}

impl Resting {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_default(&self) -> bool {
        *self == Resting::default()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// Never launched, or stopped because somebody wanted it.
    Stopped,
    /// Without a process: its spawn was commanded and has not been confirmed yet.
    Starting {
        process: Option<Process>,
    },
    Running {
        process: Process,
    },
    Backoff {
        until: Mono,
    },
    Stopping {
        pid: Option<u32>,
        #[serde(alias = "ladder")]
        stage: StopStage,
    },
    /// Ended, and policy wants no restart.
    Exited {
        well: bool,
    },
    /// Given up.
    Fatal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Process {
    pid: u32,
    /// When exec was confirmed.
    since: Mono,
}

impl Job {
    /// A job that has not run yet. The plan wants it to run, unless an app has to say when.
    pub(crate) fn new(plan: &JobPlan) -> Job {
        let (desired, resting) = match plan.app {
            None => (Desired::Run, Resting::User),
            Some(_) => (Desired::Rest, Resting::Turn),
        };
        Job { desired, resting, ..Job::fresh() }
    }

    fn fresh() -> Job {
        Job {
            state: State::Stopped,
            desired: Desired::Run,
            health: Health::Unknown,
            incarnation: 0,
            ended: 0,
            restarts: 0,
            budget: Budget::default(),
            last_exit: None,
            since: 0,
            gate: Gate::default(),
            checks: Vec::new(),
            history: History::default(),
            args: Vec::new(),
            overran: None,
            leaving: false,
            pending_restart: PendingRestart::None,
            announcement: Announcement::Absent,
            resting: Resting::User,
        }
    }

    /// One that a user has disabled in an earlier run.
    #[must_use]
    pub fn disabled() -> Job {
        Job { desired: Desired::Disabled, ..Job::fresh() }
    }

    #[must_use]
    pub fn phase(&self) -> Phase {
        match self.state {
            State::Stopped => Phase::Stopped,
            State::Starting { .. } => Phase::Starting,
            State::Running { .. } => Phase::Running,
            State::Backoff { .. } => Phase::Backoff,
            State::Stopping { .. } => Phase::Stopping,
            State::Exited { .. } => Phase::Exited,
            State::Fatal => Phase::Fatal,
        }
    }

    #[must_use]
    pub fn desired(&self) -> Desired {
        self.desired
    }

    #[must_use]
    pub fn health(&self) -> Health {
        self.health
    }

    /// Of the process that is alive now.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        match self.state {
            State::Starting { process } => process.map(|process| process.pid),
            State::Running { process } => Some(process.pid),
            State::Stopping { pid, .. } => pid,
            State::Stopped | State::Backoff { .. } | State::Exited { .. } | State::Fatal => None,
        }
    }

    /// The latest; 0 before the first run.
    #[must_use]
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// How often policy (not a user) has started it again.
    #[must_use]
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    #[must_use]
    pub fn last_exit(&self) -> Option<&Exit> {
        self.last_exit.as_ref()
    }

    /// When it entered its phase: wall clock, ns.
    #[must_use]
    pub fn since(&self) -> i64 {
        self.since
    }

    /// When the back-off is over, for a job in BACKOFF.
    #[must_use]
    pub fn restarts_at(&self) -> Option<Mono> {
        match self.state {
            State::Backoff { until } => Some(until),
            State::Stopped
            | State::Starting { .. }
            | State::Running { .. }
            | State::Stopping { .. }
            | State::Exited { .. }
            | State::Fatal => None,
        }
    }

    /// When the process that is up, and shall stay so, was started.
    #[must_use]
    pub fn up_since(&self) -> Option<Mono> {
        self.process().map(|process| process.since)
    }

    /// It has run for longer than it may and is being killed.
    #[must_use]
    pub fn overran(&self) -> bool {
        self.overran == Some(self.incarnation) && self.holds()
    }

    /// When `when.timeout` gives it up, while it waits.
    #[must_use]
    pub fn gives_up_at(&self) -> Option<Mono> {
        self.gate.give_up_at.filter(|_| self.waits())
    }

    /// `when.timeout` has given it up.
    #[must_use]
    pub fn was_given_up_waiting(&self) -> bool {
        let given_up = self.phase() == Phase::Fatal && self.desired != Desired::Run;
        given_up && self.incarnation == 0 && self.has_said(Awaited::TimerExpired)
    }

    /// When its interval starts it next.
    #[must_use]
    pub fn next_at(&self) -> Option<Mono> {
        self.gate.next
    }

    /// Behind the arguments of the plan, for as long as it is desired.
    #[must_use]
    pub fn args(&self) -> &[String] {
        &self.args
    }

    /// What is observed is what is desired: it runs as it should, or it rests and its last run
    /// ended as it should, or it waits for nothing but its trigger. Nothing is under way and
    /// nothing was given up.
    #[must_use]
    pub fn is_as_desired(&self) -> bool {
        match (&self.state, self.desired) {
            (State::Running { .. }, Desired::Run) => true,
            (State::Stopped | State::Exited { well: true }, Desired::Rest | Desired::Disabled) => {
                true
            }
            (State::Stopped | State::Exited { well: true }, Desired::Run) => self.gate.idle,
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
        match self.state {
            State::Starting { .. } | State::Running { .. } | State::Stopping { .. } => true,
            State::Stopped | State::Backoff { .. } | State::Exited { .. } | State::Fatal => false,
        }
    }

    /// It will restart by itself.
    pub(crate) fn backs_off(&self) -> bool {
        self.restarts_at().is_some()
    }

    /// It is there, will be again, or rests until somebody or its app comes to it.
    pub(crate) fn may_run_anyway(&self) -> bool {
        let called_for = match self.resting() {
            Some(Resting::User | Resting::Turn) => true,
            Some(Resting::Aborted | Resting::AppFailed) | None => false,
        };
        self.holds() || self.backs_off() || called_for
    }

    /// Its last run ended as expected, and nothing follows it.
    #[must_use]
    pub fn ended_well(&self) -> bool {
        self.ended_for_good() == Some(true)
    }

    /// Why it rests, if it does and has not ended by itself.
    #[must_use]
    pub fn resting(&self) -> Option<Resting> {
        match (self.desired, self.ended_for_good()) {
            (Desired::Rest, None) => Some(self.resting),
            (Desired::Rest, Some(_)) | (Desired::Run | Desired::Disabled, _) => None,
        }
    }

    /// `Some` once it has ended by itself and nothing but a user brings it back: did it end well?
    pub(crate) fn ended_for_good(&self) -> Option<bool> {
        if self.leaving && !self.holds() {
            return Some(true);
        }
        match (&self.state, self.desired) {
            (State::Exited { well }, Desired::Rest | Desired::Disabled) => Some(*well),
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

    pub(crate) fn has_said(&self, event: Awaited) -> bool {
        self.history.has(event)
    }

    pub(crate) fn note(&mut self, event: Awaited) {
        self.history.note(event);
    }

    /// A wait is over. One that belongs to another incarnation or state no longer matters; one
    /// that comes too early is set again, so that an impatient clock costs nothing.
    pub(crate) fn timer(&mut self, ctx: &mut JobCtx<'_>, incarnation: u64, wait: Wait) {
        match wait {
            // What starts the next incarnation does not belong to the last one.
            Wait::Interval => return self.interval_over(ctx),
            Wait::Started
            | Wait::Backoff
            | Wait::StopTimeout
            | Wait::When
            | Wait::Longest
            | Wait::Check(_) => {}
        }
        if incarnation != self.incarnation {
            return;
        }
        match wait {
            Wait::Started => self.start_seconds_over(ctx),
            Wait::Backoff => self.backoff_over(ctx),
            Wait::StopTimeout => self.stop_timeout_over(ctx),
            Wait::When => self.when_timeout_over(ctx),
            Wait::Longest => self.longest_run_over(ctx),
            Wait::Check(check) => self.check_due(ctx, check),
            Wait::Interval => {}
        }
    }

    /// The one way into another phase.
    fn enter(&mut self, ctx: &mut JobCtx<'_>, state: State) {
        let from = self.phase();
        self.state = state;
        self.since = ctx.out.now.wall;
        let (to, pid, incarnation) = (self.phase(), self.pid(), self.incarnation);
        ctx.emit(Kind::State { from, to, pid, incarnation });
    }

    fn lose_health(&mut self, ctx: &mut JobCtx<'_>) {
        match self.health {
            Health::Healthy => {
                self.health = Health::Unhealthy;
                ctx.emit(Kind::Unhealthy);
            }
            Health::Unknown | Health::Unhealthy => {}
        }
    }
}
