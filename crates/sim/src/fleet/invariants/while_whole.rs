//! While nothing divides a fleet it never starts a job that runs elsewhere.

use crate::fleet::Observation;

pub(super) fn broken(seen: &Observation) -> Vec<String> {
    let twice = seen.twice.iter().filter(|_| !seen.divided);
    let nodes = |it: &crate::fleet::history::Twice| {
        it.nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    twice.map(|it| format!("{} runs on [{}] at {:?}", it.job, nodes(it), it.at)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{history::Twice, invariants::example, scenario::name};
    use std::time::Duration;

    #[test]
    fn it_can_fail() {
        assert_eq!(broken(&example::fleet()), Vec::<String>::new());
        let (nodes, at) = (vec![name("a"), name("b")], Duration::from_secs(7));
        let twice = Twice { job: name("web"), nodes, at };
        let seen = example::with(|it| it.twice.push(twice));
        assert_eq!(broken(&seen), ["web runs on [a b] at 7s"]);
    }
}
