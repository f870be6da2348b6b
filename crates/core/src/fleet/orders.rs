//! The orders that a node has taken: one that is not higher than the last for its job is refused.
//!
//! So an order that comes late or twice does nothing, and of two masters the one with the higher
//! term is obeyed.

use super::{JobOrder, Number};
use crate::name::Name;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Default)]
pub struct SeenOrders {
    last: BTreeMap<Name, Number>,
}

impl SeenOrders {
    /// `true`: it is to be carried out.
    pub fn take(&mut self, order: &JobOrder) -> bool {
        let higher = self.last.get(&order.job).is_none_or(|last| order.number > *last);
        if higher {
            self.last.insert(order.job.clone(), order.number.clone());
        }
        higher
    }

    /// An earlier agent of this run has taken it.
    pub fn recall(&mut self, job: &Name, number: &Number) {
        if self.last.get(job).is_none_or(|last| number > last) {
            self.last.insert(job.clone(), number.clone());
        }
    }

    #[must_use]
    pub fn last(&self, job: &Name) -> Option<&Number> {
        self.last.get(job)
    }
}
