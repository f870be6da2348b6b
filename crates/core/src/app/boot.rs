//! The order in which apps start by themselves: one `start_sequence` after the other, lowest first,
//! each waiting until the apps of the one before have started or failed to. Apps of one sequence go
//! in lock-step: none comes to its next sequence of jobs before all are done with theirs.

use crate::{name::Name, plan::AppPlan};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BootSequence {
    /// The sequence that is starting; `None`: not begun, or over.
    current: Option<u32>,
}

impl BootSequence {
    /// From the beginning.
    pub fn begin(&mut self, apps: &[AppPlan]) {
        self.current = apps.iter().any(|app| app.start_sequence > 0).then_some(0);
    }

    /// The apps whose sequence has come, in the order of the file. `None`: it waits for one that is
    /// starting, or is over.
    pub fn step(
        &mut self,
        apps: &[AppPlan],
        is_starting: impl Fn(&Name) -> bool,
    ) -> Option<Vec<Name>> {
        let current = self.current?;
        let of_current = apps.iter().filter(|app| current > 0 && app.start_sequence == current);
        if of_current.map(|app| &app.name).any(is_starting) {
            return None;
        }
        let later = apps.iter().map(|app| app.start_sequence).filter(|it| *it > current);
        self.current = later.min();
        let next = self.current?;
        let due = apps.iter().filter(|app| app.start_sequence == next);
        Some(due.map(|app| app.name.clone()).collect())
    }

    /// Whether it is still to come to an app.
    #[must_use]
    pub fn will_start(&self, app: &AppPlan) -> bool {
        self.current.is_some_and(|current| app.start_sequence > current)
    }

    /// It starts now, with others.
    #[must_use]
    pub fn starts_now(&self, app: &AppPlan) -> bool {
        self.current.is_some_and(|current| current > 0 && app.start_sequence == current)
    }

    /// Nothing is to be started by itself any more, or not yet.
    pub(crate) fn is_idle(&self) -> bool {
        self.current.is_none()
    }
}
