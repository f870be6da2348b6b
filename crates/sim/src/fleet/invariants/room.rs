//! Once nothing disturbs it no machine bears more than a hundred, unless somebody put it there by
//! hand.

use crate::fleet::Observation;
use mainstay_core::fleet::placement::FULL;
use std::collections::BTreeMap;

pub(super) fn broken(seen: &Observation) -> Vec<String> {
    let mut machines: BTreeMap<&str, u32> = BTreeMap::new();
    for it in seen.nodes.values().filter(|it| it.by_hand.is_empty()) {
        let active = it.jobs.iter().filter(|(_, state)| state.is_active());
        let load: u32 = active.filter_map(|(job, _)| seen.loads.get(job)).sum();
        *machines.entry(it.machine.as_str()).or_default() += load;
    }
    let full = machines.into_iter().filter(|(_, load)| *load > FULL);
    full.map(|(machine, load)| format!("{machine} bears {load}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{invariants::example, scenario::name};
    use mainstay_core::fleet::CopyState;

    #[test]
    fn it_can_fail() {
        let mut seen = example::fleet();
        seen.loads.insert(name("db"), 50);
        assert_eq!(broken(&seen), Vec::<String>::new());
        let b = seen.nodes.get_mut(&name("b")).expect("a node");
        b.jobs.insert(name("db"), CopyState::Running);
        assert_eq!(broken(&seen), ["b bears 110"]);
    }
}
