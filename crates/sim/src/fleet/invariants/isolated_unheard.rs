//! Nobody obeys a node that it isolates, or follows it.

use crate::fleet::Observation;

pub(super) fn broken(seen: &Observation) -> Vec<String> {
    let obeyed = seen.taken.iter().filter(|it| it.from_isolated);
    let obeyed = obeyed.map(|it| format!("{} took an order of {}", it.node, it.number.term.master));
    let followed = seen.followed_isolated.iter();
    let followed = followed.map(|(node, term)| format!("{node} followed {}", term.master));
    obeyed.chain(followed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{history::TakenOrder, invariants::example, scenario::name};
    use mainstay_core::fleet::{Number, RunId};

    #[test]
    fn it_can_fail() {
        assert_eq!(broken(&example::fleet()), Vec::<String>::new());
        let term = example::term(1, "a");
        let seen = example::with(|it| it.followed_isolated.push((name("c"), term.clone())));
        assert_eq!(broken(&seen), ["c followed a"]);
        let taken = TakenOrder {
            node: name("b"),
            run: RunId::new("b"),
            job: name("web"),
            number: Number { term, counter: 1 },
            highest: None,
            from_isolated: true,
        };
        assert_eq!(broken(&example::with(|it| it.taken.push(taken))), ["b took an order of a"]);
    }
}
