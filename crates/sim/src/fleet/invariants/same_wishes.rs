//! Once nothing disturbs it every node keeps the same wishes.

use crate::fleet::Observation;

pub(super) fn broken(seen: &Observation) -> Vec<String> {
    let Some(master) = seen.nodes.values().find(|it| it.is_master) else { return Vec::new() };
    let other = seen.nodes.iter().filter(|(_, it)| it.wishes != master.wishes);
    other.map(|(node, _)| format!("{node} has others than the master")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{invariants::example, scenario::name};
    use mainstay_core::{
        fleet::{AskedBy, Number, Term},
        job::Desired,
    };

    #[test]
    fn it_can_fail() {
        let mut seen = example::fleet();
        assert_eq!(broken(&seen), Vec::<String>::new());
        let number = Number { term: Term { number: 1, master: name("a") }, counter: 1 };
        let c = seen.nodes.get_mut(&name("c")).expect("a node");
        c.wishes.write(number, &name("web"), AskedBy::Rule, Desired::Run, None);
        assert_eq!(broken(&seen), ["c has others than the master"]);
    }
}
