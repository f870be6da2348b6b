//! One watch: what is known of the instances of a service, and what follows from an answer.
//!
//! ```text
//!            an instance: changed, healthy
//!  none ─────────────────────────────────────► some ──┐ other instances: changed
//!    ▲                                           │ ▲──┘
//!    └───────────────────────────────────────────┘
//!            no instance: changed, unhealthy
//! ```
//!
//! Before the first answer there is none; a first answer without instances says nothing.

use crate::{
    discovery::InstanceList,
    event::{History, Kind},
    plan::Awaited,
};
use serde::{Deserialize, Serialize};

/// What is known of the instances, and what was said about them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Watch {
    /// `None`: there was no answer yet.
    instances: Option<InstanceList>,
    /// When they last changed: wall clock, ns.
    since: i64,
    history: History,
}

impl Watch {
    #[must_use]
    pub fn instances(&self) -> Option<&InstanceList> {
        self.instances.as_ref()
    }

    /// When they last changed: wall clock, ns.
    #[must_use]
    pub fn since(&self) -> i64 {
        self.since
    }

    /// Whether there is an instance.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.count() > 0
    }

    pub(crate) fn has_said(&self, event: Awaited) -> bool {
        self.history.has(event)
    }

    pub(crate) fn note(&mut self, event: Awaited) {
        self.history.note(event);
    }

    /// Takes an answer, and gives back what it means. `None`: it is the one before.
    pub(crate) fn answered(&mut self, wall: i64, instances: InstanceList) -> Option<Vec<Kind>> {
        let (before, now) = (self.count(), instances.len());
        let same = match &self.instances {
            Some(known) if *known == instances => return None,
            Some(_) => false,
            None => instances.is_empty(),
        };
        self.instances = Some(instances);
        self.since = wall;
        if same {
            return Some(Vec::new());
        }
        let changed = Kind::Changed { instances: Some(now), version: None };
        Some(match (before, now) {
            (0, _) => vec![changed, Kind::Healthy],
            (_, 0) => vec![changed, Kind::Unhealthy],
            (_, _) => vec![changed],
        })
    }

    fn count(&self) -> usize {
        self.instances.as_ref().map_or(0, InstanceList::len)
    }
}
