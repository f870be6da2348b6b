//! One check of a process: what it has said so far, and what that comes to.

use super::run::Process;
use crate::{
    clock::Mono,
    plan::{Check, Probe},
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What is kept of what a check said.
const OUTPUT: usize = 1024;

/// What a job has said about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Notification {
    /// READY=1, or a newline on its descriptor.
    pub(crate) ready: bool,
    /// WATCHDOG=1
    pub(crate) watchdog: bool,
    /// WATCHDOG_USEC: from now on it will tell at least so often.
    pub(crate) watchdog_every: Option<Duration>,
}

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
    /// Maintenance is over, and it has not passed since.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    again: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    watchdog: Option<Watchdog>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Watchdog {
    /// The longest silence.
    every: Duration,
    heard: Mono,
}

/// How long a job has said nothing about itself.
pub(super) struct Silence {
    /// When to look again.
    pub(super) next: Option<Mono>,
    /// The complaint, if it was too long.
    pub(super) complaint: Option<String>,
}

/// What an answer comes to.
pub(super) struct Answer {
    /// The verdict, if it is another one now.
    pub(super) verdict: Option<Verdict>,
    /// It has passed for the first time in this incarnation.
    pub(super) first_pass: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl CheckState {
    /// Nothing is known yet; `wall`: since when, ns.
    pub(super) fn unknown(wall: i64) -> CheckState {
        CheckState { since: wall, ..CheckState::default() }
    }

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

    /// Maintenance is over, and it has not passed since.
    pub(super) fn awaits_pass(&self) -> bool {
        self.again
    }

    /// Maintenance is over.
    pub(super) fn demand_pass(&mut self) {
        (self.again, self.against) = (true, 0);
    }

    /// It has said that it is ready.
    pub(super) fn ready(&mut self) {
        (self.passed, self.again) = (true, false);
    }

    /// What nobody could hear is not held against it.
    pub(super) fn forgive_silence(&mut self, now: Mono) {
        if let Some(dog) = &mut self.watchdog {
            dog.heard = now;
        }
    }

    /// Takes an answer; `early`: failures do not count before the first pass.
    pub(super) fn take_answer(
        &mut self,
        plan: &Check,
        passed: bool,
        early: bool,
        output: &str,
    ) -> Answer {
        let verdict = self.count(plan, passed, self.passed || !early);
        if !passed {
            bounded(output, &mut self.output);
        }
        let first_pass = passed && !self.passed;
        self.passed |= passed;
        self.again &= !passed;
        Answer { verdict, first_pass }
    }

    /// Comes to this verdict. `false`: it has before.
    pub(super) fn decide(&mut self, verdict: Verdict, wall: i64, output: &str) -> bool {
        if self.verdict == verdict {
            return false;
        }
        (self.verdict, self.against, self.since) = (verdict, 0, wall);
        bounded(output, &mut self.output);
        true
    }

    /// The verdict if this answer changes it.
    fn count(&mut self, plan: &Check, passed: bool, counts: bool) -> Option<Verdict> {
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

    /// Takes what the job has said by sd_notify; `true`: the check passes with that.
    pub(super) fn notified(&mut self, plan: &Check, said: Notification, now: Mono) -> bool {
        let Notification { ready, watchdog, watchdog_every } = said;
        self.passed |= ready;
        let known = self.watchdog.map(|dog| dog.every).or(plan.watchdog);
        if watchdog || watchdog_every.is_some() || (ready && known.is_some()) {
            let every = watchdog_every.or(known).unwrap_or(plan.timeout);
            self.watchdog = Some(Watchdog { every, heard: now });
        }
        let passes = ready || (watchdog && self.passed);
        self.again &= !passes;
        passes
    }

    pub(super) fn silence(
        &self,
        plan: &Check,
        process: Process,
        now: Mono,
        earliest: Mono,
    ) -> Silence {
        let patience = plan.ready_within();
        let ready_by = (!self.passed).then(|| process.since.after(patience).max(earliest));
        let heard_by = self.watchdog.map(|dog| dog.heard.after(dog.every));
        let next = ready_by.into_iter().chain(heard_by).filter(|at| *at > now).min();
        let complaint = match (self.watchdog, &plan.probe) {
            (Some(dog), _) if heard_by.is_some_and(|at| at <= now) => {
                Some(format!("no WATCHDOG=1 for {:?}", dog.every))
            }
            (_, Probe::Fd(fd)) if ready_by.is_some_and(|at| at <= now) => {
                Some(format!("no newline on descriptor {fd} within {patience:?}"))
            }
            (_, Probe::Notify) if ready_by.is_some_and(|at| at <= now) => {
                Some(format!("no READY=1 within {patience:?}"))
            }
            (_, Probe::Notify | Probe::Fd(_) | Probe::Exec(_) | Probe::Http(_) | Probe::Tcp(_)) => {
                None
            }
        };
        Silence { next, complaint }
    }
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
    fn an_output_is_cut_at_a_character() {
        let mut kept = String::new();
        bounded(&"ä".repeat(600), &mut kept);
        assert_eq!(kept.len(), 1024);
        bounded(&format!("a{}", "ä".repeat(600)), &mut kept);
        assert_eq!(kept.len(), 1023);
    }
}
