//! What an app goes down for, and what follows once it is down.

use super::RestReason;
use serde::{Deserialize, Serialize};

/// What an app goes down for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Descent {
    /// It is started again when it is down.
    pub(super) again: bool,
    /// A member has failed, and nobody asked for the stop.
    #[serde(default)]
    pub(super) failed: bool,
    /// A user wants it started again, whatever it went down for.
    #[serde(default)]
    pub(super) wanted: bool,
}

impl Descent {
    pub(super) const ASKED: Descent = Descent { again: false, failed: false, wanted: false };
    pub(super) const RESTART: Descent = Descent { again: true, failed: false, wanted: true };
    pub(super) const FAILED: Descent = Descent { again: false, failed: true, wanted: false };
    pub(super) const FAILED_AGAIN: Descent = Descent { again: true, failed: true, wanted: false };

    /// It comes back by `restart-app`, unless a stronger rule speaks against it.
    pub(super) fn may_be_overruled(self) -> bool {
        self.again && self.failed && !self.wanted
    }

    /// Why a member rests that it has stopped.
    pub(super) fn reason(self) -> Option<RestReason> {
        match (self.failed, self.again) {
            (false, _) => None,
            (true, true) => Some(RestReason::NotReached),
            (true, false) => Some(RestReason::AppFailed),
        }
    }
}
