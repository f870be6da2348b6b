//! Of the orders for a job a node takes only higher ones, and none of a term before the highest that it
//! has seen.

use crate::fleet::Observation;
use std::collections::BTreeMap;

pub(super) fn broken(seen: &Observation) -> Vec<String> {
    let mut last = BTreeMap::new();
    let mut broken = Vec::new();
    for it in &seen.taken {
        let (node, job, number) = (&it.node, &it.job, &it.number);
        let before = last.insert((node, &it.run, job), number);
        if before.is_some_and(|before| number <= before) {
            broken.push(format!("{node} took {number} for {job} after {before:?}"));
        }
        let highest = it.highest.as_ref().map(|term| term.number);
        if highest.is_some_and(|highest| number.term.number < highest) {
            broken.push(format!("{node} took {number} for {job} and has seen {:?}", it.highest));
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{history::TakenOrder, invariants::example, scenario::name};
    use mainstay_core::fleet::{Number, RunId};

    #[test]
    fn it_can_fail() {
        let order = |number, counter, highest| TakenOrder {
            node: name("b"),
            run: RunId::new("b"),
            job: name("web"),
            number: Number { term: example::term(number, "a"), counter },
            highest: Some(example::term(highest, "a")),
            from_isolated: false,
        };
        let count = |orders: Vec<TakenOrder>| broken(&example::with(|it| it.taken = orders)).len();
        assert_eq!(count(vec![order(1, 1, 1), order(1, 2, 1), order(2, 1, 2)]), 0);
        assert_eq!(count(vec![order(1, 2, 1), order(1, 1, 1)]), 1, "it came late");
        assert_eq!(count(vec![order(1, 1, 2)]), 1, "of a master that is none any more");
    }
}
