//! The loss of a job is answered once. Where packets were lost or a cut was there: once in a reign, for
//! each time that the lost node has come back to it.

use crate::fleet::{Observation, history::Answer};
use std::collections::BTreeSet;

pub(super) fn broken(seen: &Observation) -> Vec<String> {
    let mut answered = BTreeSet::new();
    let mut broken = Vec::new();
    for Answer { failure, by, times, term } in &seen.answered {
        let side = seen.divided.then_some((by, times, term));
        if !answered.insert((failure, side)) {
            let (job, node) = (&failure.job, &failure.node);
            broken.push(format!("{job} on {node} was answered again, by {by}"));
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{invariants::example, scenario::name};
    use mainstay_core::fleet::{FailureKey, RunId};

    #[test]
    fn it_can_fail() {
        let failure =
            FailureKey { node: name("b"), run: RunId::new("b"), job: name("web"), incarnation: 1 };
        let answer = |by, term| Answer {
            failure: failure.clone(),
            by: name(by),
            times: 1,
            term: Some(example::term(term, by)),
        };
        let one = answer("a", 1);
        let seen = example::with(|it| it.answered = vec![one.clone()]);
        assert_eq!(broken(&seen), Vec::<String>::new());
        let both = vec![one.clone(), answer("c", 2)];
        let seen = example::with(|it| it.answered = both.clone());
        assert_eq!(broken(&seen), ["web on b was answered again, by c"]);
        let seen = example::with(|it| (it.answered, it.divided) = (both, true));
        assert_eq!(broken(&seen), Vec::<String>::new());
        let again = vec![one.clone(), one];
        let seen = example::with(|it| (it.answered, it.divided) = (again, true));
        assert_eq!(broken(&seen).len(), 1);
    }
}
