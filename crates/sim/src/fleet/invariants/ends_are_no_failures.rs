//! The end of a node on purpose is told, and is no failure. Where the fleet was divided nobody may
//! have heard of it.

use crate::fleet::Observation;

pub(super) fn broken(seen: &Observation) -> Vec<String> {
    let ended = |node, run| seen.ended.iter().any(|it| (&it.0, &it.1) == (node, run));
    let answered = seen.answered.iter().map(|it| (&it.failure, &it.by));
    let wrong = answered.filter(|(it, _)| !seen.divided && ended(&it.node, &it.run));
    wrong.map(|(it, by)| format!("{by} answers the loss of {} with {}", it.job, it.node)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{history::Answer, invariants::example, scenario::name};
    use mainstay_core::fleet::{FailureKey, RunId};

    #[test]
    fn it_can_fail() {
        let (node, run) = (name("b"), RunId::new("b"));
        let failure =
            FailureKey { node: node.clone(), run: run.clone(), job: name("web"), incarnation: 1 };
        let answered = vec![Answer { failure, by: name("a"), times: 1, term: None }];
        let seen = example::with(|it| it.answered = answered.clone());
        assert_eq!(broken(&seen), Vec::<String>::new());
        let seen = example::with(|it| (it.answered, it.ended) = (answered, [(node, run)].into()));
        assert_eq!(broken(&seen), ["a answers the loss of web with b"]);
    }
}
