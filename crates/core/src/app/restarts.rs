//! How often an app comes back by itself after a crash: five times in ten minutes, at once, then
//! after a second, doubling. Then it rests.
//!
//! What a node took with it when it was lost costs nothing of that: it has done nothing wrong.

use crate::clock::Mono;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// So many in [`WITHIN`].
pub const LIMIT: usize = 5;
pub const WITHIN: Duration = Duration::from_secs(600);
const FIRST_DELAY: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AppRestarts {
    /// When the last ones were, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    spent: Vec<Mono>,
    /// When the next one is, while it is to come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due: Option<Mono>,
    /// There was none left: the app rests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    used_up: bool,
}

impl AppRestarts {
    /// A member has crashed: one more, or none is left.
    pub(super) fn spend(&mut self, now: Mono) -> bool {
        self.spent.retain(|at| now.since(*at) < WITHIN);
        self.used_up = self.spent.len() >= LIMIT;
        self.due = (!self.used_up).then(|| now.after(self.delay()));
        if !self.used_up {
            self.spent.push(now);
        }
        !self.used_up
    }

    fn delay(&self) -> Duration {
        match self.spent.len() {
            0 => Duration::ZERO,
            before => FIRST_DELAY * (1 << (before - 1)),
        }
    }

    /// It is for something else: at once, and costs nothing.
    pub(super) fn spare(&mut self, now: Mono) {
        self.due = Some(now);
    }

    /// None is to come any more.
    pub(super) fn cancel(&mut self) {
        self.due = None;
    }

    /// As another clock shows it.
    pub(super) fn moved(&self, then: Mono, now: Mono) -> AppRestarts {
        let moved = |at: &Mono| now.before(then.since(*at)).after(at.since(then));
        AppRestarts {
            spent: self.spent.iter().map(moved).collect(),
            due: self.due.as_ref().map(moved),
            used_up: self.used_up,
        }
    }

    pub(super) fn due(&self) -> Option<Mono> {
        self.due
    }

    #[must_use]
    pub fn is_used_up(&self) -> bool {
        self.used_up
    }
}
