//! Small plans to begin with.

use mainstay_core::{
    event::EventName,
    name::Name,
    plan::{Awaited, Condition, ExitRule, NodePlan, SourceRef},
};
use std::time::Duration;

/// A name that is known to be one.
///
/// # Panics
/// It is none.
#[must_use]
pub fn name(text: &str) -> Name {
    Name::new(text).expect("a name that the world itself has written")
}

/// A node that never ends by itself.
#[must_use]
pub fn node() -> NodePlan {
    NodePlan {
        name: "test".to_owned(),
        stop_timeout: Duration::from_secs(8),
        exit: ExitRule::Never,
        log_level: "info".to_owned(),
        machine: None,
    }
}

/// A job that says something.
#[must_use]
pub fn says(job: &str, event: EventName) -> Condition {
    Condition { source: SourceRef::Job(name(job)), event: Awaited::Event(event) }
}
