//! A new process for a new plan, in its order among others: what needs a job stops before it and
//! comes back after it.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum PendingRestart {
    #[default]
    None,
    /// Others come first: the process of before goes on.
    Due,
    /// That one was told to stop, and the new one is not up yet.
    UnderWay,
}

impl PendingRestart {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub(super) fn is_none(&self) -> bool {
        *self == PendingRestart::None
    }

    pub(super) fn is_due(self) -> bool {
        self == PendingRestart::Due
    }
}
