//! The loss of a job is answered once. Where packets were lost or a cut was there: once by a node, for
//! each time that the lost node has come back to it.

use crate::fleet::Observation;
use std::collections::BTreeSet;

pub(super) fn broken(seen: &Observation) -> Vec<String> {
    let mut answered = BTreeSet::new();
    let mut broken = Vec::new();
    for (failure, by, times) in &seen.answered {
        let side = seen.was_cut.then_some((by, times));
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
        let mut seen = example::fleet();
        let failure =
            FailureKey { node: name("b"), run: RunId::new("b"), job: name("web"), incarnation: 1 };
        seen.answered = vec![(failure.clone(), name("a"), 1)];
        assert_eq!(broken(&seen), Vec::<String>::new());
        seen.answered.push((failure, name("c"), 1));
        assert_eq!(broken(&seen), ["web on b was answered again, by c"]);
        seen.was_cut = true;
        assert_eq!(broken(&seen), Vec::<String>::new());
    }
}
