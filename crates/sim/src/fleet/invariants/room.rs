//! Once nothing disturbs it no machine bears more than a hundred, unless somebody put it there by
//! hand, or may have: whoever has lost its journal cannot tell.

use crate::fleet::Observation;
use mainstay_core::fleet::placement::FULL;

pub(super) fn broken(seen: &Observation) -> Vec<String> {
    // Nodes of one machine that could not hear each other have not counted each other's jobs.
    let shared = |machine: &str| {
        seen.divided && seen.nodes.values().filter(|it| it.machine == machine).count() > 1
    };
    let by_hand = |machine: &str| {
        let mut there = seen.nodes.values().filter(|it| it.machine == machine);
        there.any(|it| !it.by_hand.is_empty() || !it.args_lost.is_empty())
    };
    let full = seen.machines().into_iter().filter(|(_, load)| *load > FULL);
    let full = full.filter(|(machine, _)| !by_hand(machine) && !shared(machine));
    full.map(|(machine, load)| format!("{machine} bears {load}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{
        invariants::example,
        scenario::{Scenario, name},
    };
    use mainstay_core::{fleet::CopyState, plan::OnFailure};
    use std::sync::Arc;

    #[test]
    fn it_can_fail() {
        let mut seen = example::fleet();
        let scenario = Scenario::of("a").app("shop", OnFailure::Continue);
        seen.catalogue = Arc::new(scenario.job("web", 1, 60).job("db", 1, 50).catalogue);
        assert_eq!(broken(&seen), Vec::<String>::new());
        let b = seen.nodes.get_mut(&name("b")).expect("a node");
        b.jobs.insert(name("db"), CopyState::Running);
        assert_eq!(broken(&seen), ["b bears 110"]);
    }
}
