//! Whoever asks gets one reply.

use crate::fleet::Observation;
use mainstay_core::fleet::RunId;
use std::collections::BTreeSet;

pub(super) fn broken(seen: &Observation) -> Vec<String> {
    let mut replied = BTreeSet::new();
    let again = seen.replies.iter().filter(|(id, _)| !replied.insert(id));
    again.map(|(id, reply)| format!("{id:?} once more: {reply:?}")).collect()
}

/// Once nothing disturbs the fleet; who is no longer there waits for none.
pub(super) fn open(seen: &Observation) -> Vec<String> {
    let replied: BTreeSet<_> = seen.replies.iter().map(|(id, _)| id).collect();
    let is_there = |node, run: &RunId| seen.nodes.get(node).is_some_and(|it| it.run == *run);
    let open = seen.asked.iter().filter(|id| !replied.contains(id) && is_there(&id.node, &id.run));
    open.map(|id| format!("{id:?} has none")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{invariants::example, scenario::name};
    use mainstay_core::fleet::{RequestAnswer, RequestId};

    #[test]
    fn it_can_fail() {
        let mut seen = example::fleet();
        let id = RequestId { node: name("b"), run: RunId::new("b"), number: 1 };
        seen.asked.push(id.clone());
        assert_eq!(open(&seen).len(), 1);
        seen.replies.push((id.clone(), RequestAnswer::Begun));
        assert_eq!((open(&seen).len(), broken(&seen).len()), (0, 0));
        seen.replies.push((id, RequestAnswer::NotNow));
        assert_eq!(broken(&seen).len(), 1);
    }
}
