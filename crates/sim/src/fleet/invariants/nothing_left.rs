//! Once nothing disturbs it nothing is left in hand: no order, no answer that nobody waits for, no
//! loss that nobody has answered. So nothing grows.

use crate::fleet::Observation;

pub(super) fn broken(seen: &Observation) -> Vec<String> {
    let mut broken = Vec::new();
    let mut count = |node, count: usize, what: &str| {
        if count > 0 {
            broken.push(format!("{node} has {count} {what}"));
        }
    };
    for (node, it) in &seen.nodes {
        count(node, it.failures, "losses without an answer");
        count(node, it.open_requests, "open requests");
        if let Some(work) = &it.work {
            count(node, work.orders.len(), "open orders");
            count(node, work.then.len(), "jobs to look after once they are gone");
            count(node, work.answers.len(), "answers that nobody waits for");
            count(node, work.moves.len(), "moves under way");
            count(node, work.drains.len(), "drains that are not taken");
            count(node, work.readmits.len(), "nodes to readmit");
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{invariants::example, scenario::name};

    #[test]
    fn it_can_fail() {
        let mut seen = example::fleet();
        assert_eq!(broken(&seen), Vec::<String>::new());
        seen.nodes.get_mut(&name("c")).expect("a node").failures = 2;
        assert_eq!(broken(&seen), ["c has 2 losses without an answer"]);
    }
}
