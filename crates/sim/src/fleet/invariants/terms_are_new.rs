//! A term is begun once, by one run: what is numbered in it can be told apart. A node whose disk was
//! torn does not know which ones it has begun.

use crate::fleet::Observation;
use std::collections::BTreeMap;

pub(super) fn broken(seen: &Observation) -> Vec<String> {
    let mut begun = BTreeMap::new();
    let mut broken = Vec::new();
    for (term, node, run) in &seen.reigns {
        let before = begun.insert(term, run);
        if before.is_some_and(|before| before != run) && !seen.torn.contains(node) {
            broken.push(format!("{node} begins {term} again, in {run}"));
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{invariants::example, scenario::name};
    use mainstay_core::fleet::RunId;

    #[test]
    fn it_can_fail() {
        let reign = |number, run| (example::term(number, "a"), name("a"), RunId::new(run));
        let seen = example::with(|it| it.reigns = [reign(1, "1"), reign(2, "2")].into());
        assert_eq!(broken(&seen), Vec::<String>::new());
        let seen = example::with(|it| it.reigns = [reign(1, "1"), reign(1, "2")].into());
        assert_eq!(broken(&seen), ["a begins 1.a again, in 2"]);
    }
}
