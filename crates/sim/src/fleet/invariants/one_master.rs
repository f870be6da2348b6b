//! Once nothing disturbs it a fleet has one master, all follow it, and it has nothing left to do.

use crate::fleet::Observation;
use mainstay_core::fleet::FleetStage;

pub(super) fn broken(seen: &Observation) -> Vec<String> {
    let masters: Vec<String> = seen
        .nodes
        .iter()
        .filter(|(_, it)| it.is_master)
        .map(|(node, _)| node.to_string())
        .collect();
    let mut broken = Vec::new();
    if masters.len() != 1 {
        broken.push(format!("masters are [{}]", masters.join(" ")));
    }
    let terms: Vec<_> = seen.nodes.values().map(|it| &it.term).collect();
    if terms.windows(2).any(|it| it[0] != it[1]) {
        broken.push(format!("terms differ: {terms:?}"));
    }
    for (node, it) in seen.nodes.iter().filter(|(_, it)| it.stage != FleetStage::Operation) {
        broken.push(format!("{node} is in {:?}", it.stage));
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
        seen.nodes.get_mut(&name("c")).expect("a node").is_master = true;
        assert_eq!(broken(&seen), ["masters are [a c]"]);
        let mut seen = example::fleet();
        seen.nodes.get_mut(&name("c")).expect("a node").stage = FleetStage::Deployment;
        assert_eq!(broken(&seen), ["c is in Deployment"]);
    }
}
