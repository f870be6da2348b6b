//! What others are told about an advertised job: absent, or there with a standing.
//!
//! | the job | is told to be |
//! |---|---|
//! | is up and healthy | passing |
//! | is up and was healthy, or is about to be restarted | critical |
//! | starts, and has an `initial_status` | that, until its first pass or until its ttl is over |
//! | starts otherwise, rests, stops, was given up, or the node is in maintenance | absent |
//! | has not passed its checks since maintenance is over | absent |
//!
//! It is worked out after whatever happens to the job, and told when it differs from the last
//! announcement. A stop withdraws first and gives that [`PATIENCE`] before the signal, whoever runs
//! meanwhile as its hook. Keeping an entry alive, and bringing back one that was lost, is not
//! decided here: that is what announcing means.

use super::{Health, JobCtx};
use crate::{clock::Mono, discovery::Standing};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long a stop waits for its withdrawal.
const PATIENCE: Duration = Duration::from_secs(1);

/// The last announcement.
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

/// Until when a job that has not passed yet is told to be what `initial_status` says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Initial(Option<Mono>);

impl Initial {
    pub(super) fn is_over(&self) -> bool {
        self.0.is_none()
    }
}

/// What an announcement depends on.
#[derive(Debug, Clone)]
pub(super) struct Presence {
    /// It is there, or about to be restarted, and is not to be checked first.
    pub(super) up: bool,
    pub(super) health: Health,
    pub(super) initial: Initial,
    /// What is wrong, for who looks into the catalogue.
    pub(super) complaint: String,
}

impl Announcement {
    pub(super) fn is_absent(&self) -> bool {
        *self == Announcement::Absent
    }

    /// `None`: others were told that it is not there.
    pub(super) fn standing(self) -> Option<Standing> {
        match self {
            Announcement::Told(standing) => Some(standing),
            Announcement::Absent | Announcement::Withdrawing { .. } => None,
        }
    }

    /// Tells others what has changed for them.
    pub(super) fn update(
        &mut self,
        ctx: &mut JobCtx<'_>,
        initial: &mut Initial,
        presence: impl FnOnce() -> Presence,
    ) {
        if ctx.plan.advertise.is_none() && self.is_absent() {
            return;
        }
        let presence = presence();
        let before = *self;
        match (*self, self.due(ctx, &presence)) {
            (Announcement::Told(told), Some(due)) if told == due => {}
            (
                Announcement::Absent | Announcement::Told(_) | Announcement::Withdrawing { .. },
                Some(due),
            ) => self.tell(ctx, due, &presence),
            (Announcement::Told(_), None) => self.withdraw(ctx),
            (Announcement::Absent | Announcement::Withdrawing { .. }, None) => {}
        }
        *initial = self.initial(ctx, before, &presence);
    }

    /// Whether what is told now is what `initial_status` says.
    fn initial(self, ctx: &JobCtx<'_>, before: Announcement, presence: &Presence) -> Initial {
        match (before, self, presence.health) {
            (_, Announcement::Absent | Announcement::Withdrawing { .. }, _)
            | (_, Announcement::Told(_), Health::Healthy) => Initial(None),
            (Announcement::Told(_), Announcement::Told(_), Health::Unknown | Health::Unhealthy) => {
                Initial(presence.initial.0.filter(|until| ctx.mono() < *until))
            }
            (
                Announcement::Absent | Announcement::Withdrawing { .. },
                Announcement::Told(_),
                Health::Unknown | Health::Unhealthy,
            ) => Initial(ctx.plan.advertise.as_ref().map(|it| ctx.mono().after(it.ttl))),
        }
    }

    fn due(self, ctx: &JobCtx<'_>, presence: &Presence) -> Option<Standing> {
        let hidden = ctx.maintenance || ctx.leaving || !presence.up;
        let advertise = ctx.plan.advertise.as_ref().filter(|_| !hidden)?;
        let initial = presence.initial.0.is_some_and(|until| ctx.mono() < until);
        match (presence.health, self) {
            (Health::Healthy, _) => Some(Standing::Passing),
            (Health::Unknown | Health::Unhealthy, Announcement::Told(told)) if initial => {
                Some(told)
            }
            (_, Announcement::Told(Standing::Passing)) => Some(Standing::Critical),
            (Health::Unknown, Announcement::Told(told)) => Some(told),
            (Health::Unhealthy, Announcement::Told(_)) => Some(Standing::Critical),
            (
                Health::Unknown | Health::Unhealthy,
                Announcement::Absent | Announcement::Withdrawing { .. },
            ) => advertise.initial_status,
        }
    }

    fn tell(&mut self, ctx: &mut JobCtx<'_>, standing: Standing, presence: &Presence) {
        *self = Announcement::Told(standing);
        let note = match standing {
            Standing::Passing => String::new(),
            Standing::Warning | Standing::Critical => presence.complaint.clone(),
        };
        ctx.announce(standing, note);
    }

    /// Others are told that it is not there.
    pub(super) fn withdraw(&mut self, ctx: &mut JobCtx<'_>) {
        match self {
            Announcement::Told(_) => {
                *self = Announcement::Withdrawing { until: ctx.mono().after(PATIENCE) };
                ctx.withdraw();
            }
            Announcement::Absent | Announcement::Withdrawing { .. } => {}
        }
    }

    /// Until when a stop waits for others to know.
    pub(super) fn withdrawing_until(self, now: Mono) -> Option<Mono> {
        match self {
            Announcement::Withdrawing { until } if now < until => Some(until),
            Announcement::Withdrawing { .. } | Announcement::Absent | Announcement::Told(_) => None,
        }
    }

    /// The entry is gone, or that was tried in vain. `true`: that was waited for.
    pub(super) fn withdrawn(&mut self) -> bool {
        match self {
            Announcement::Withdrawing { .. } => {
                *self = Announcement::Absent;
                true
            }
            Announcement::Absent | Announcement::Told(_) => false,
        }
    }

    /// What is announced is announced in another way now.
    pub(super) fn change(&mut self, ctx: &mut JobCtx<'_>, presence: &Presence) {
        if let (Announcement::Told(_), Some(due)) = (*self, self.due(ctx, presence)) {
            self.tell(ctx, due, presence);
        }
    }

    /// A new agent announces what the last one did, and withdraws what is not to be there: the last
    /// one may have died while it still tried to.
    pub(super) fn resume(&mut self, ctx: &mut JobCtx<'_>, presence: &Presence) {
        match self {
            Announcement::Told(standing) => {
                let standing = *standing;
                self.tell(ctx, standing, presence);
            }
            Announcement::Withdrawing { .. } => ctx.withdraw(),
            Announcement::Absent if ctx.plan.advertise.is_some() => ctx.withdraw(),
            Announcement::Absent => {}
        }
    }
}
