//! What others are told about an advertised job: absent, or there with a standing.
//!
//! | the job | is told to be |
//! |---|---|
//! | is up and healthy | passing |
//! | is up and was healthy, or is about to be restarted | critical |
//! | starts, and has an `initial_status` | that |
//! | starts otherwise, rests, stops, was given up, or the node is in maintenance | absent |
//!
//! It is worked out after whatever happens to the job, and told when it differs from what was told
//! last. A stop withdraws first and gives that [`PATIENCE`] before the signal, whoever runs
//! meanwhile as its hook. Keeping an entry alive, and bringing back one that was lost, is not
//! decided here: that is what announcing means.

use super::{Health, Job, State, Turn, Verdict, stop::Rung};
use crate::{clock::Mono, discovery::Standing, plan::JobPlan};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long a stop waits for its withdrawal.
const PATIENCE: Duration = Duration::from_secs(1);

/// What was told last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Notice {
    #[default]
    Absent,
    Told(Standing),
    /// It is being removed. Past `until` nobody waits for that.
    Withdrawing {
        until: Mono,
    },
}

impl Notice {
    pub(super) fn is_absent(&self) -> bool {
        *self == Notice::Absent
    }
}

impl Job {
    /// What others were told last; `None`: that it is not there.
    #[must_use]
    pub fn announced(&self) -> Option<Standing> {
        match self.notice {
            Notice::Told(standing) => Some(standing),
            Notice::Absent | Notice::Withdrawing { .. } => None,
        }
    }

    /// Tells others what has changed for them.
    pub(crate) fn give_notice(&mut self, turn: &mut Turn<'_>) {
        match (self.notice, self.due(turn.plan, turn.maintenance)) {
            (Notice::Told(told), Some(due)) if told == due => {}
            (Notice::Absent | Notice::Told(_) | Notice::Withdrawing { .. }, Some(due)) => {
                self.tell(turn, due);
            }
            (Notice::Told(_), None) => self.withdraw(turn),
            (Notice::Absent | Notice::Withdrawing { .. }, None) => {}
        }
    }

    fn due(&self, plan: &JobPlan, maintenance: bool) -> Option<Standing> {
        let advertise = plan.advertise.as_ref().filter(|_| !maintenance && !self.leaving)?;
        match self.state {
            State::Starting { .. } | State::Running { .. } | State::Backoff { .. } => {}
            State::Stopped | State::Stopping { .. } | State::Exited { .. } | State::Fatal => {
                return None;
            }
        }
        match (self.health, self.notice) {
            (Health::Healthy, _) => Some(Standing::Passing),
            (_, Notice::Told(Standing::Passing)) => Some(Standing::Critical),
            (Health::Unknown, Notice::Told(told)) => Some(told),
            (Health::Unhealthy, Notice::Told(_)) => Some(Standing::Critical),
            (Health::Unknown | Health::Unhealthy, Notice::Absent | Notice::Withdrawing { .. }) => {
                advertise.initial_status
            }
        }
    }

    fn tell(&mut self, turn: &mut Turn<'_>, standing: Standing) {
        self.notice = Notice::Told(standing);
        let note = match standing {
            Standing::Passing => String::new(),
            Standing::Warning | Standing::Critical => self.complaint(turn.plan),
        };
        turn.announce(standing, note);
    }

    /// What is wrong, for who looks into the catalogue.
    fn complaint(&self, plan: &JobPlan) -> String {
        let failing = plan.checks.iter().zip(&self.checks);
        let failing = failing.filter(|(_, state)| state.verdict() == Verdict::Failing);
        let said = failing.map(|(check, state)| format!("{}: {}", check.name, state.output()));
        match (said.collect::<Vec<_>>(), &self.last_exit, self.holds()) {
            (said, _, _) if !said.is_empty() => said.join("\n"),
            (_, Some(exit), false) => exit.to_string(),
            (_, _, _) => "not healthy yet".to_owned(),
        }
    }

    /// Others are told that it is not there.
    pub(super) fn withdraw(&mut self, turn: &mut Turn<'_>) {
        match self.notice {
            Notice::Told(_) => {
                self.notice = Notice::Withdrawing { until: turn.mono().after(PATIENCE) };
                turn.withdraw();
            }
            Notice::Absent | Notice::Withdrawing { .. } => {}
        }
    }

    /// Until when a stop waits for others to know.
    pub(super) fn withdrawing_until(&self, now: Mono) -> Option<Mono> {
        match self.notice {
            Notice::Withdrawing { until } if now < until => Some(until),
            Notice::Withdrawing { .. } | Notice::Absent | Notice::Told(_) => None,
        }
    }

    /// The entry is gone, or that was tried in vain.
    pub(crate) fn withdrawn(&mut self, turn: &mut Turn<'_>) {
        match self.notice {
            Notice::Withdrawing { .. } => self.notice = Notice::Absent,
            Notice::Absent | Notice::Told(_) => return,
        }
        self.leave_rung(turn, Rung::Withdrawing, Job::first_rung);
    }

    /// What is announced is announced in another way now.
    pub(super) fn announce_anew(&mut self, turn: &mut Turn<'_>) {
        if let (Notice::Told(_), Some(due)) = (self.notice, self.due(turn.plan, turn.maintenance)) {
            self.tell(turn, due);
        }
    }

    /// A new agent announces what the last one did, and withdraws what it had not finished.
    pub(super) fn repeat_notice(&mut self, turn: &mut Turn<'_>) {
        match self.notice {
            Notice::Told(standing) => self.tell(turn, standing),
            Notice::Withdrawing { .. } => turn.withdraw(),
            Notice::Absent => {}
        }
    }
}
