//! A request is done once, whoever is master meanwhile. Where a fleet was divided a master may not
//! know what another has done.

use crate::fleet::Observation;
use std::collections::BTreeSet;

pub(super) fn broken(seen: &Observation) -> Vec<String> {
    let mut done = BTreeSet::new();
    let again = seen.done.iter().filter(|(id, _)| !done.insert(id) && !seen.divided);
    again.map(|(id, term)| format!("{id:?} was done again in term {term}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{invariants::example, scenario::name};
    use mainstay_core::fleet::{RequestId, RunId};

    #[test]
    fn it_can_fail() {
        let id = RequestId { node: name("b"), run: RunId::new("b"), number: 1 };
        let once = vec![(id.clone(), example::term(1, "a"))];
        assert_eq!(broken(&example::with(|it| it.done = once.clone())), Vec::<String>::new());
        let twice = [once, vec![(id, example::term(2, "b"))]].concat();
        assert_eq!(broken(&example::with(|it| it.done = twice)).len(), 1);
    }
}
