//! Health: what the checks of a job say, and what follows from it.
//!
//! ```text
//!              rise passes in a row             fall failures in a row
//!   UNKNOWN ───────────────────────► PASSING ◄────────────────────────► FAILING
//!      └───── fall failures, the start period being over ─────────────────▲
//! ```
//!
//! A check is asked as soon as exec has succeeded (and its delay is over), then every 100 ms doubling to its interval until
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
//! A job is healthy when it is RUNNING and every check of its process passes, which is said of each
//! incarnation once. `unhealthy` is a verdict on the job, and only said of what was healthy: a check
//! fails, or the next process has not passed in time (`recovery`). What is not known yet changes
//! nothing, and neither does an end: then the health is unknown until the verdict.
//!
//! In maintenance all of this rests: nothing is asked, silence is allowed, and the health stays as it
//! was, whatever becomes of the process. What a job says about itself is kept. At its end all are
//! asked at once; a verdict that is the same is not said again, and others are told of the job when
//! each check has passed once.

use super::{CheckState, JobCtx, Notification, Run, Verdict, recovery::Recovery};
use crate::{
    clock::Mono,
    event::Kind,
    node::Wait,
    plan::{Check, JobPlan, Probe},
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a job has said meanwhile reaches a new agent right after its first step.
const CATCH_UP: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    Unknown,
    Healthy,
    Unhealthy,
}

/// The checks of the current incarnation, and what they come to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Checks {
    health: Health,
    #[serde(default, skip_serializing_if = "Recovery::is_none")]
    recovery: Recovery,
    /// In the order of the plan; empty before the first run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    states: Vec<CheckState>,
}

impl Checks {
    pub(super) fn new() -> Checks {
        Checks { health: Health::Unknown, recovery: Recovery::None, states: Vec::new() }
    }

    pub(super) fn health(&self) -> Health {
        self.health
    }

    pub(super) fn states(&self) -> &[CheckState] {
        &self.states
    }

    /// What the failing checks said; empty when none fails.
    pub(super) fn complaint(&self, plan: &JobPlan) -> String {
        let failing = plan.checks.iter().zip(&self.states);
        let failing = failing.filter(|(_, state)| state.verdict() == Verdict::Failing);
        let said = failing.map(|(check, state)| format!("{}: {}", check.name, state.output()));
        said.collect::<Vec<_>>().join("\n")
    }

    /// A new incarnation: nothing is known yet.
    pub(super) fn forget(&mut self, ctx: &mut JobCtx<'_>) {
        self.recovery.launched(ctx);
        self.states = vec![CheckState::unknown(ctx.wall()); ctx.plan.checks.len()];
    }

    /// The job has come to rest.
    pub(super) fn rest(&mut self) {
        (self.health, self.recovery) = (Health::Unknown, Recovery::None);
    }

    /// It is to come to rest: nothing is expected of it any more.
    pub(super) fn expect_nothing(&mut self) {
        self.recovery = Recovery::None;
    }

    /// Maintenance: the verdict stays as it was.
    fn is_at_rest(ctx: &JobCtx<'_>) -> bool {
        ctx.maintenance && !ctx.plan.checks.is_empty()
    }

    /// Others are not to be told of it before its checks have passed once more.
    pub(super) fn awaits_pass(&self) -> bool {
        self.states.iter().any(CheckState::awaits_pass)
    }

    /// Maintenance is over: all are asked at once.
    pub(super) fn maintenance_over(&mut self, ctx: &mut JobCtx<'_>, run: &Run) {
        let same_process =
            run.process().is_some() && self.states.iter().all(CheckState::has_passed);
        if ctx.plan.checks.is_empty() || run.stop_stage().is_some() {
            return;
        }
        if !run.holds() && self.health == Health::Healthy {
            self.health = Health::Unknown;
        }
        if !same_process || self.recovery.is_under_way() {
            self.recovery.begin(ctx);
        }
        self.states.iter_mut().for_each(CheckState::demand_pass);
        if run.process().is_some() {
            self.resume(ctx, run);
            self.count_notifications(ctx, run);
        }
    }

    /// What the job has said about itself in maintenance counts from now.
    fn count_notifications(&mut self, ctx: &mut JobCtx<'_>, run: &Run) {
        for (check, plan) in ctx.plan.checks.iter().enumerate() {
            let told = self.states.get_mut(check).filter(|it| plan.is_told() && it.has_passed());
            if let Some(state) = told {
                state.ready();
                self.decide(ctx, run, check, Verdict::Passing, "");
            }
        }
    }

    /// Its process has ended by itself, and another one follows.
    pub(super) fn crashed(&mut self, ctx: &mut JobCtx<'_>) {
        match self.health {
            Health::Healthy if Checks::is_at_rest(ctx) => {}
            Health::Healthy => {
                self.health = Health::Unknown;
                self.recovery.begin(ctx);
            }
            Health::Unknown | Health::Unhealthy => {}
        }
    }

    /// Its process has ended on purpose, and another one follows: that one is judged anew.
    pub(super) fn restarted(&mut self, ctx: &mut JobCtx<'_>) {
        if Checks::is_at_rest(ctx) {
            return;
        }
        self.health = Health::Unknown;
        self.recovery.begin(ctx);
    }

    /// It goes down with what it follows: its next launch may be a long time ahead.
    pub(super) fn goes_down(&mut self) {
        self.recovery.await_launch();
    }

    /// It has failed, and nothing follows.
    pub(super) fn give_up(&mut self, ctx: &mut JobCtx<'_>) {
        let was_healthy = self.health == Health::Healthy && !self.recovery.is_none();
        if (was_healthy || self.recovery.is_under_way()) && !Checks::is_at_rest(ctx) {
            self.find_unhealthy(ctx);
        }
    }

    /// The time is over that a job which was healthy has to become so again.
    pub(super) fn recovery_over(&mut self, ctx: &mut JobCtx<'_>) {
        if !Checks::is_at_rest(ctx) && self.recovery.is_over(ctx) {
            self.find_unhealthy(ctx);
        }
    }

    /// A new agent: the wait for its recovery may be lost.
    pub(super) fn rearm(&mut self, ctx: &mut JobCtx<'_>, run: &Run) {
        // A journal of an earlier version does not tell what is expected of what is healthy.
        if self.health == Health::Healthy && run.process().is_some() {
            self.recovery.owe(ctx);
        }
        self.recovery.rearm(ctx);
    }

    /// exec has succeeded: all are asked now, or when their delay is over.
    pub(super) fn ask_all(&mut self, ctx: &mut JobCtx<'_>, run: &Run) {
        for check in 0..ctx.plan.checks.len() {
            self.ask(ctx, run, check);
        }
    }

    /// The next time for a check has come: to be asked, or to say that the job has been silent.
    pub(super) fn due(&mut self, ctx: &mut JobCtx<'_>, run: &Run, check: usize) {
        if run.process().is_some() {
            self.ask(ctx, run, check);
        }
    }

    fn ask(&mut self, ctx: &mut JobCtx<'_>, run: &Run, check: usize) {
        if ctx.maintenance {
            return;
        }
        let (Some(plan), Some(state)) = (ctx.plan.checks.get(check), self.states.get(check)) else {
            return;
        };
        if plan.is_told() {
            return self.listen(ctx, run, check, ctx.mono());
        }
        let up = run.process().map_or(Duration::ZERO, |it| ctx.mono().since(it.since));
        if up < plan.delay {
            let at = ctx.mono().after(plan.delay - up);
            return ctx.wake(run.incarnation(), Wait::Check(check), at);
        }
        let next =
            if state.has_passed() { plan.interval } else { ramp(up - plan.delay, plan.interval) };
        ctx.probe(run.incarnation(), check, ctx.mono().after(plan.timeout));
        ctx.wake(run.incarnation(), Wait::Check(check), ctx.mono().after(next));
    }

    /// Has it been silent for too long? That it is not ready is not said before `earliest`.
    fn listen(&mut self, ctx: &mut JobCtx<'_>, run: &Run, check: usize, earliest: Mono) {
        let (Some(plan), Some(state), Some(process)) =
            (ctx.plan.checks.get(check), self.states.get(check), run.process())
        else {
            return;
        };
        if ctx.maintenance {
            return;
        }
        let silence = state.silence(plan, process, ctx.mono(), earliest);
        if let Some(at) = silence.next {
            ctx.wake(run.incarnation(), Wait::Check(check), at);
        }
        if let Some(complaint) = silence.complaint {
            self.decide(ctx, run, check, Verdict::Failing, &complaint);
        }
    }

    /// A check has an answer. One that an earlier incarnation or plan asked for is too late.
    pub(super) fn answered(
        &mut self,
        ctx: &mut JobCtx<'_>,
        run: &Run,
        check: usize,
        passed: bool,
        output: &str,
    ) {
        let (Some(plan), Some(state), Some(process)) =
            (ctx.plan.checks.get(check), self.states.get_mut(check), run.process())
        else {
            return;
        };
        if plan.is_told() || ctx.maintenance {
            return;
        }
        let early = ctx.mono() < process.since.after(plan.start_period);
        let answer = state.take_answer(plan, passed, early, output);
        if answer.first_pass {
            let at = ctx.mono().after(plan.interval);
            ctx.wake(run.incarnation(), Wait::Check(check), at);
        }
        if let Some(verdict) = answer.verdict {
            self.decide(ctx, run, check, verdict, output);
        }
    }

    /// The job has said something about itself.
    pub(super) fn notified(&mut self, ctx: &mut JobCtx<'_>, run: &Run, said: Notification) {
        if run.process().is_none() {
            return;
        }
        for check in 0..ctx.plan.checks.len() {
            let (Some(plan), Some(state)) =
                (ctx.plan.checks.get(check), self.states.get_mut(check))
            else {
                continue;
            };
            match plan.probe {
                Probe::Notify => {
                    let passes = state.notified(plan, said, ctx.mono());
                    self.listen(ctx, run, check, ctx.mono());
                    if passes {
                        self.decide(ctx, run, check, Verdict::Passing, "");
                    }
                }
                Probe::Fd(_) => {
                    if said.ready {
                        state.ready();
                        self.decide(ctx, run, check, Verdict::Passing, "");
                    }
                }
                Probe::Exec(_) | Probe::Http(_) | Probe::Tcp(_) => {}
            }
        }
    }

    /// What a silent agent may have missed is not held against the job.
    pub(super) fn resume(&mut self, ctx: &mut JobCtx<'_>, run: &Run) {
        let now = ctx.mono();
        self.states.iter_mut().for_each(|state| state.forgive_silence(now));
        for check in 0..ctx.plan.checks.len() {
            match ctx.plan.checks.get(check).is_some_and(Check::is_told) {
                true => self.listen(ctx, run, check, now.after(CATCH_UP)),
                false => self.ask(ctx, run, check),
            }
        }
    }

    /// The plan has other checks now: those that are the same keep what they know.
    pub(super) fn change(&mut self, ctx: &mut JobCtx<'_>, run: &Run, before: &[Check]) {
        let known: Vec<CheckState> = std::mem::take(&mut self.states);
        let unknown = CheckState::unknown(ctx.wall());
        let kept = |check: &Check| {
            let at = before.iter().position(|other| other == check)?;
            known.get(at).cloned()
        };
        let checks = ctx.plan.checks.iter();
        self.states = checks.map(|it| kept(it).unwrap_or_else(|| unknown.clone())).collect();
        match (ctx.plan.checks.is_empty(), self.health) {
            (true, _) => self.recovery = Recovery::None,
            (false, Health::Healthy) => self.recovery.owe(ctx),
            (false, Health::Unknown | Health::Unhealthy) => {}
        }
        if run.process().is_some() {
            self.resume(ctx, run);
            self.weigh(ctx, run);
        }
    }

    fn decide(
        &mut self,
        ctx: &mut JobCtx<'_>,
        run: &Run,
        check: usize,
        verdict: Verdict,
        output: &str,
    ) {
        let (Some(plan), Some(state)) = (ctx.plan.checks.get(check), self.states.get_mut(check))
        else {
            return;
        };
        if ctx.maintenance || !state.decide(verdict, ctx.wall(), output) {
            return;
        }
        let output = state.output().to_owned();
        ctx.emit(Kind::Check {
            name: plan.name.clone(),
            passing: verdict == Verdict::Passing,
            output,
        });
        self.weigh(ctx, run);
    }

    /// What all checks together say.
    pub(super) fn weigh(&mut self, ctx: &mut JobCtx<'_>, run: &Run) {
        if Checks::is_at_rest(ctx) {
            return;
        }
        let any = |verdict| self.states.iter().any(|check| check.verdict() == verdict);
        if any(Verdict::Failing) {
            self.fail(ctx);
        } else if !any(Verdict::Unknown) && run.is_running() {
            self.pass(ctx);
        }
    }

    fn pass(&mut self, ctx: &mut JobCtx<'_>) {
        match self.health {
            Health::Unknown | Health::Unhealthy => {
                self.health = Health::Healthy;
                self.recovery.owe(ctx);
                ctx.emit(Kind::Healthy);
            }
            // The verdict is the one before maintenance.
            Health::Healthy => self.recovery.owe(ctx),
        }
    }

    fn fail(&mut self, ctx: &mut JobCtx<'_>) {
        match self.health {
            // It has its time to become healthy again.
            Health::Unknown | Health::Healthy if self.recovery.is_under_way() => {}
            Health::Healthy => self.find_unhealthy(ctx),
            Health::Unknown | Health::Unhealthy => self.health = Health::Unhealthy,
        }
    }

    fn find_unhealthy(&mut self, ctx: &mut JobCtx<'_>) {
        self.health = Health::Unhealthy;
        self.recovery.owe(ctx);
        ctx.emit(Kind::Unhealthy);
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
}
