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

use super::{Health, Job, JobCtx, State, Verdict, stop::StopStage};
use crate::{clock::Mono, discovery::Standing, plan::JobPlan};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long a stop waits for its withdrawal.
const PATIENCE: Duration = Duration::from_secs(1);

/// What was told last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Announcement {
    #[default]
    Absent,
    Told(Standing),
    /// It is being removed. Past `until` nobody waits for that.
    Withdrawing {
        until: Mono,
    },
}

impl Announcement {
    pub(super) fn is_absent(&self) -> bool {
        *self == Announcement::Absent
    }
}

impl Job {
    /// What others were told last; `None`: that it is not there.
    #[must_use]
    pub fn announced(&self) -> Option<Standing> {
        match self.announcement {
            Announcement::Told(standing) => Some(standing),
            Announcement::Absent | Announcement::Withdrawing { .. } => None,
        }
    }

    /// Tells others what has changed for them.
    pub(crate) fn announce_change(&mut self, ctx: &mut JobCtx<'_>) {
        match (self.announcement, self.due(ctx.plan, ctx.maintenance)) {
            (Announcement::Told(told), Some(due)) if told == due => {}
            (
                Announcement::Absent | Announcement::Told(_) | Announcement::Withdrawing { .. },
                Some(due),
            ) => {
                self.tell(ctx, due);
            }
            (Announcement::Told(_), None) => self.withdraw(ctx),
            (Announcement::Absent | Announcement::Withdrawing { .. }, None) => {}
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
        match (self.health, self.announcement) {
            (Health::Healthy, _) => Some(Standing::Passing),
            (_, Announcement::Told(Standing::Passing)) => Some(Standing::Critical),
            (Health::Unknown, Announcement::Told(told)) => Some(told),
            (Health::Unhealthy, Announcement::Told(_)) => Some(Standing::Critical),
            (
                Health::Unknown | Health::Unhealthy,
                Announcement::Absent | Announcement::Withdrawing { .. },
            ) => advertise.initial_status,
        }
    }

    fn tell(&mut self, ctx: &mut JobCtx<'_>, standing: Standing) {
        self.announcement = Announcement::Told(standing);
        let note = match standing {
            Standing::Passing => String::new(),
            Standing::Warning | Standing::Critical => self.complaint(ctx.plan),
        };
        ctx.announce(standing, note);
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
    pub(super) fn withdraw(&mut self, ctx: &mut JobCtx<'_>) {
        match self.announcement {
            Announcement::Told(_) => {
                self.announcement = Announcement::Withdrawing { until: ctx.mono().after(PATIENCE) };
                ctx.withdraw();
            }
            Announcement::Absent | Announcement::Withdrawing { .. } => {}
        }
    }

    /// Until when a stop waits for others to know.
    pub(super) fn withdrawing_until(&self, now: Mono) -> Option<Mono> {
        match self.announcement {
            Announcement::Withdrawing { until } if now < until => Some(until),
            Announcement::Withdrawing { .. } | Announcement::Absent | Announcement::Told(_) => None,
        }
    }

    /// The entry is gone, or that was tried in vain.
    pub(crate) fn withdrawn(&mut self, ctx: &mut JobCtx<'_>) {
        match self.announcement {
            Announcement::Withdrawing { .. } => self.announcement = Announcement::Absent,
            Announcement::Absent | Announcement::Told(_) => return,
        }
        self.leave_stage(ctx, StopStage::is_withdrawing, Job::after_hooks);
    }

    /// What is announced is announced in another way now.
    pub(super) fn announce_anew(&mut self, ctx: &mut JobCtx<'_>) {
        if let (Announcement::Told(_), Some(due)) =
            (self.announcement, self.due(ctx.plan, ctx.maintenance))
        {
            self.tell(ctx, due);
        }
    }

    /// A new agent announces what the last one did, and withdraws what is not to be there: the last
    /// one may have died while it still tried to.
    pub(super) fn announce_again(&mut self, ctx: &mut JobCtx<'_>) {
        match self.announcement {
            Announcement::Told(standing) => self.tell(ctx, standing),
            Announcement::Withdrawing { .. } => ctx.withdraw(),
            Announcement::Absent if ctx.plan.advertise.is_some() => ctx.withdraw(),
            Announcement::Absent => {}
        }
    }
}
