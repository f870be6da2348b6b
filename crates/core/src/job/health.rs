//! Health: what the checks of a job say, and what follows from it.
//!
//! ```text
//!              rise passes in a row             fall failures in a row
//!   UNKNOWN ───────────────────────► PASSING ◄────────────────────────► FAILING
//!      └───── fall failures, the start period being over ─────────────────▲
//! ```
//!
//! A check is asked as soon as exec has succeeded, then every 100 ms doubling to its interval until
//! it first passes, then every interval, from start to start. The agent does not ask one twice at
//! the same time, so a tick that comes while it is under way is the same as that one. How soon the
//! next tick comes before the first pass follows from how long the process is up: there is nothing
//! to remember, and an answer that says what was known changes nothing.
//!
//! `notify` and `fd` are told by the job itself: they pass when it says that it is ready, and fail
//! when it has not within the timeout (or the start period, if that is longer). If the plan says how
//! often a ready job has to say WATCHDOG=1, or the job has said it or how often it will, silence for
//! longer than that makes them fail, until it speaks again.
//!
//! A job is healthy when it is RUNNING and every check passes; it is unhealthy as soon as one
//! fails. What is not known yet changes nothing. `unhealthy` is only said of what was healthy.

use super::{Health, Job, JobCtx, Process, State};
use crate::{
    clock::Mono,
    event::Kind,
    node::Wait,
    plan::{Check, Probe},
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What is kept of what a check said.
const OUTPUT: usize = 1024;
/// What a job has said meanwhile reaches a new agent right after its first step.
const CATCH_UP: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    #[default]
    Unknown,
    Passing,
    Failing,
}

/// One check of the current incarnation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckState {
    verdict: Verdict,
    /// When it came to that: wall clock, ns.
    since: i64,
    #[serde(skip_serializing_if = "String::is_empty")]
    output: String,
    /// Answers in a row that speak against the verdict.
    #[serde(skip_serializing_if = "is_zero")]
    against: u32,
    /// Of a check without a verdict: the last answer was a pass.
    leaning: bool,
    /// It has passed in this incarnation.
    passed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    watchdog: Option<Watchdog>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Watchdog {
    /// The longest silence.
    every: Duration,
    heard: Mono,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl CheckState {
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// When it came to its verdict: wall clock, ns.
    #[must_use]
    pub fn since(&self) -> i64 {
        self.since
    }

    /// It has passed in this incarnation.
    #[must_use]
    pub fn has_passed(&self) -> bool {
        self.passed
    }

    /// What it said last when it failed, else when it came to its verdict; at most 1 KiB.
    #[must_use]
    pub fn output(&self) -> &str {
        &self.output
    }

    /// The verdict if this answer changes it.
    fn answer(&mut self, plan: &Check, passed: bool, counts: bool) -> Option<Verdict> {
        if !passed && !counts {
            self.against = 0;
            return None;
        }
        match (self.verdict, passed) {
            (Verdict::Passing, true) | (Verdict::Failing, false) => {
                self.against = 0;
                return None;
            }
            (Verdict::Passing, false) | (Verdict::Failing, true) => {}
            (Verdict::Unknown, passed) => {
                if self.leaning != passed {
                    (self.leaning, self.against) = (passed, 0);
                }
            }
        }
        self.against = self.against.saturating_add(1);
        let (enough, verdict) =
            if passed { (plan.rise, Verdict::Passing) } else { (plan.fall, Verdict::Failing) };
        (self.against >= enough).then_some(verdict)
    }
}

impl Job {
    /// In the order of the plan; empty before the first run.
    #[must_use]
    pub fn checks(&self) -> &[CheckState] {
        &self.checks
    }

    /// A new incarnation: nothing is known yet.
    pub(super) fn forget_checks(&mut self, ctx: &JobCtx<'_>) {
        let unknown = CheckState { since: ctx.out.now.wall, ..CheckState::default() };
        self.checks = vec![unknown; ctx.plan.checks.len()];
    }

    /// exec has succeeded, a new agent is here, or the checks are new: all are asked now.
    pub(super) fn ask_checks(&mut self, ctx: &mut JobCtx<'_>) {
        for check in 0..ctx.plan.checks.len() {
            self.ask(ctx, check);
        }
    }

    /// The next time for a check has come: to be asked, or to say that the job has been silent.
    pub(super) fn check_due(&mut self, ctx: &mut JobCtx<'_>, check: usize) {
        match self.state {
            State::Starting { process: Some(_) } | State::Running { .. } => self.ask(ctx, check),
            State::Starting { process: None }
            | State::Stopped
            | State::Backoff { .. }
            | State::Stopping { .. }
            | State::Exited { .. }
            | State::Fatal => {}
        }
    }

    fn ask(&mut self, ctx: &mut JobCtx<'_>, check: usize) {
        let (Some(plan), Some(state)) = (ctx.plan.checks.get(check), self.checks.get(check)) else {
            return;
        };
        if plan.is_told() {
            return self.listen(ctx, check, ctx.mono());
        }
        let up = self.process().map_or(Duration::ZERO, |it| ctx.mono().since(it.since));
        let next = if state.passed { plan.interval } else { ramp(up, plan.interval) };
        ctx.probe(self.incarnation, check, ctx.mono().after(plan.timeout));
        ctx.wake(self.incarnation, Wait::Check(check), ctx.mono().after(next));
    }

    /// Has it been silent for too long? That it is not ready is not said before `earliest`.
    fn listen(&mut self, ctx: &mut JobCtx<'_>, check: usize, earliest: Mono) {
        let (Some(plan), Some(state), Some(process)) =
            (ctx.plan.checks.get(check), self.checks.get(check), self.process())
        else {
            return;
        };
        let patience = plan.ready_within();
        let ready_by = (!state.passed).then(|| process.since.after(patience).max(earliest));
        let dog = state.watchdog;
        let heard_by = dog.map(|dog| dog.heard.after(dog.every));
        let now = ctx.mono();
        let next = ready_by.into_iter().chain(heard_by).filter(|at| *at > now).min();
        if let Some(at) = next {
            ctx.wake(self.incarnation, Wait::Check(check), at);
        }
        let silence = match (dog, &plan.probe) {
            (Some(dog), _) if heard_by.is_some_and(|at| at <= now) => {
                format!("no WATCHDOG=1 for {:?}", dog.every)
            }
            (_, Probe::Fd(fd)) if ready_by.is_some_and(|at| at <= now) => {
                format!("no newline on descriptor {fd} within {patience:?}")
            }
            (_, Probe::Notify) if ready_by.is_some_and(|at| at <= now) => {
                format!("no READY=1 within {patience:?}")
            }
            (_, Probe::Notify | Probe::Fd(_) | Probe::Exec(_) | Probe::Http(_) | Probe::Tcp(_)) => {
                return;
            }
        };
        self.decide(ctx, check, Verdict::Failing, &silence);
    }

    /// A check has an answer. One that an earlier incarnation or plan asked for is too late.
    pub(crate) fn checked(
        &mut self,
        ctx: &mut JobCtx<'_>,
        incarnation: u64,
        check: usize,
        passed: bool,
        output: &str,
    ) {
        let Some(process) = self.process().filter(|_| incarnation == self.incarnation) else {
            return;
        };
        let (Some(plan), Some(state)) = (ctx.plan.checks.get(check), self.checks.get_mut(check))
        else {
            return;
        };
        if plan.is_told() {
            return;
        }
        let early = ctx.mono() < process.since.after(plan.start_period);
        let counts = state.passed || !early;
        let verdict = state.answer(plan, passed, counts);
        if !passed {
            bounded(output, &mut state.output);
        }
        if passed && !std::mem::replace(&mut state.passed, true) {
            let at = ctx.mono().after(plan.interval);
            ctx.wake(self.incarnation, Wait::Check(check), at);
        }
        if let Some(verdict) = verdict {
            self.decide(ctx, check, verdict, output);
        }
    }

    /// The job has said something about itself.
    pub(crate) fn notified(
        &mut self,
        ctx: &mut JobCtx<'_>,
        incarnation: u64,
        ready: bool,
        watchdog: bool,
        every: Option<Duration>,
    ) {
        if self.process().is_none() || incarnation != self.incarnation {
            return;
        }
        for check in 0..ctx.plan.checks.len() {
            let (Some(plan), Some(state)) =
                (ctx.plan.checks.get(check), self.checks.get_mut(check))
            else {
                continue;
            };
            match plan.probe {
                Probe::Notify => {
                    state.passed |= ready;
                    let known = state.watchdog.map(|dog| dog.every).or(plan.watchdog);
                    if watchdog || every.is_some() || (ready && known.is_some()) {
                        let every = every.or(known).unwrap_or(plan.timeout);
                        state.watchdog = Some(Watchdog { every, heard: ctx.mono() });
                    }
                    let passes = ready || (watchdog && state.passed);
                    self.listen(ctx, check, ctx.mono());
                    if passes {
                        self.decide(ctx, check, Verdict::Passing, "");
                    }
                }
                Probe::Fd(_) => {
                    if ready {
                        state.passed = true;
                        self.decide(ctx, check, Verdict::Passing, "");
                    }
                }
                Probe::Exec(_) | Probe::Http(_) | Probe::Tcp(_) => {}
            }
        }
    }

    /// What a silent agent may have missed is not held against the job.
    pub(super) fn resume_checks(&mut self, ctx: &mut JobCtx<'_>) {
        let now = ctx.mono();
        for dog in self.checks.iter_mut().filter_map(|state| state.watchdog.as_mut()) {
            dog.heard = now;
        }
        for check in 0..ctx.plan.checks.len() {
            match ctx.plan.checks.get(check).is_some_and(Check::is_told) {
                true => self.listen(ctx, check, now.after(CATCH_UP)),
                false => self.ask(ctx, check),
            }
        }
    }

    /// The plan has other checks now: those that are the same keep what they know.
    pub(crate) fn change_checks(&mut self, ctx: &mut JobCtx<'_>, before: &[Check]) {
        let known: Vec<CheckState> = std::mem::take(&mut self.checks);
        let unknown = CheckState { since: ctx.out.now.wall, ..CheckState::default() };
        let kept = |check: &Check| {
            let at = before.iter().position(|other| other == check)?;
            known.get(at).cloned()
        };
        let checks = ctx.plan.checks.iter();
        self.checks = checks.map(|it| kept(it).unwrap_or_else(|| unknown.clone())).collect();
        if self.process().is_some() {
            self.resume_checks(ctx);
            self.weigh(ctx);
        }
    }

    fn decide(&mut self, ctx: &mut JobCtx<'_>, check: usize, verdict: Verdict, output: &str) {
        let (Some(plan), Some(state)) = (ctx.plan.checks.get(check), self.checks.get_mut(check))
        else {
            return;
        };
        if state.verdict == verdict {
            return;
        }
        (state.verdict, state.against, state.since) = (verdict, 0, ctx.out.now.wall);
        bounded(output, &mut state.output);
        let output = state.output.clone();
        ctx.emit(Kind::Check {
            name: plan.name.clone(),
            passing: verdict == Verdict::Passing,
            output,
        });
        self.weigh(ctx);
    }

    /// What all checks together say.
    pub(super) fn weigh(&mut self, ctx: &mut JobCtx<'_>) {
        let verdict = |of| self.checks.iter().any(|check| check.verdict == of);
        if verdict(Verdict::Failing) {
            self.lose_health(ctx);
            self.health = Health::Unhealthy;
        } else if !verdict(Verdict::Unknown) {
            self.gain_health(ctx);
        }
    }

    fn gain_health(&mut self, ctx: &mut JobCtx<'_>) {
        match (self.health, &self.state) {
            (Health::Unknown | Health::Unhealthy, State::Running { .. }) => {
                self.health = Health::Healthy;
                ctx.emit(Kind::Healthy);
            }
            (Health::Healthy, State::Running { .. })
            | (
                Health::Unknown | Health::Healthy | Health::Unhealthy,
                State::Stopped
                | State::Starting { .. }
                | State::Backoff { .. }
                | State::Stopping { .. }
                | State::Exited { .. }
                | State::Fatal,
            ) => {}
        }
    }

    /// The process that is up and shall stay so.
    pub(super) fn process(&self) -> Option<Process> {
        match self.state {
            State::Starting { process } => process,
            State::Running { process } => Some(process),
            State::Stopped
            | State::Backoff { .. }
            | State::Stopping { .. }
            | State::Exited { .. }
            | State::Fatal => None,
        }
    }
}

/// The time to the next question, so long after exec: at 100 ms, 300 ms, 700 ms, and so on.
fn ramp(up: Duration, interval: Duration) -> Duration {
    let mut step = Check::FIRST_INTERVAL;
    let mut at = step;
    while at <= up && step < interval {
        step = step.saturating_mul(2);
        at = at.saturating_add(step);
    }
    if step < interval { at - up } else { interval }
}

/// Replaces only what differs, cut at a character.
fn bounded(text: &str, kept: &mut String) {
    let mut end = text.len().min(OUTPUT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = &text[..end];
    if kept != text {
        text.clone_into(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_questions_come_ever_more_slowly() {
        let mut up = Duration::ZERO;
        let mut at = Vec::new();
        for _ in 0..5 {
            up += ramp(up, Duration::from_secs(1));
            at.push(up.as_millis());
        }
        assert_eq!(at, [100, 300, 700, 1500, 2500]);
    }

    #[test]
    fn an_output_is_cut_at_a_character() {
        let mut kept = String::new();
        bounded(&"ä".repeat(600), &mut kept);
        assert_eq!(kept.len(), 1024);
        bounded(&format!("a{}", "ä".repeat(600)), &mut kept);
        assert_eq!(kept.len(), 1023);
    }
}
