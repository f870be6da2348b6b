//! Whoever asks gets one reply.

use crate::fleet::Observation;
use std::collections::BTreeSet;

pub(super) fn broken(seen: &Observation) -> Vec<String> {
    let mut replied = BTreeSet::new();
    let again = seen.replies.iter().filter(|(id, _)| !replied.insert(id));
    again.map(|(id, reply)| format!("{id:?} once more: {reply:?}")).collect()
}

/// Once nothing disturbs the fleet; who is no longer there waits for none.
pub(super) fn open(seen: &Observation) -> Vec<String> {
    let replied: BTreeSet<_> = seen.replies.iter().map(|(id, _)| id).collect();
    let open = seen.asked.iter().filter(|it| !replied.contains(&it.id) && !it.is_orphan);
    open.map(|it| format!("{:?} has none", it.request)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{history::AskedRequest, invariants::example, scenario::name};
    use mainstay_core::fleet::{FleetRequest, RequestAnswer, RequestId, RunId};
    use std::time::Duration;

    #[test]
    fn it_can_fail() {
        let id = RequestId { node: name("b"), run: RunId::new("b"), number: 1 };
        let request = FleetRequest::StopJob { job: name("web") };
        let at = Duration::ZERO;
        let asked = AskedRequest { at, id: id.clone(), request, is_orphan: false };
        let count = |replies: &[RequestAnswer]| {
            let seen = example::with(|it| {
                it.asked.push(asked.clone());
                it.replies.extend(replies.iter().map(|reply| (id.clone(), reply.clone())));
            });
            (open(&seen).len(), broken(&seen).len())
        };
        assert_eq!(count(&[]), (1, 0));
        assert_eq!(count(&[RequestAnswer::Begun]), (0, 0));
        assert_eq!(count(&[RequestAnswer::Begun, RequestAnswer::NotNow]), (0, 1));
    }
}
