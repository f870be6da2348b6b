//! What the keeper must not forget yet: it has the only copy of what the journal had no room for.

use mainstay_wire::link::ToKeeper;
use std::collections::VecDeque;

/// The keeper keeps no more either.
const KEPT: usize = 8192;

/// Acknowledgements that wait for the journal, oldest first.
#[derive(Debug, Default)]
pub(crate) struct PendingAcks(VecDeque<ToKeeper>);

impl PendingAcks {
    pub(crate) fn add(&mut self, thanks: ToKeeper) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(thanks);
    }

    pub(crate) fn take(&mut self) -> VecDeque<ToKeeper> {
        std::mem::take(&mut self.0)
    }
}
