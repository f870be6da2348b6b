//! A fleet ends, or begins anew, as often as somebody has asked for that: no node of it ends more often.

use crate::fleet::Observation;
use mainstay_core::{fleet::FleetRequest, name::Name};
use std::collections::BTreeMap;

pub(super) fn broken(seen: &Observation) -> Vec<String> {
    let asks = |request: &FleetRequest| matches!(request, FleetRequest::EndFleet { .. });
    let asked = seen.asked.iter().filter(|it| asks(&it.request)).count();
    let mut ends: BTreeMap<&Name, usize> = BTreeMap::new();
    for node in &seen.ended_with_fleet {
        *ends.entry(node).or_default() += 1;
    }
    let often = ends.into_iter().filter(|(_, times)| *times > asked);
    often.map(|(node, times)| format!("{node} ends {times} times, asked for {asked}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{history::AskedRequest, invariants::example, scenario::name};
    use mainstay_core::fleet::{RequestId, RunId};
    use std::time::Duration;

    #[test]
    fn it_can_fail() {
        let id = RequestId { node: name("b"), run: RunId::new("b"), number: 1 };
        let request = FleetRequest::EndFleet { again: true };
        let asked = AskedRequest { at: Duration::ZERO, id, request, is_orphan: false };
        let seen = |ends: &[&str]| {
            example::with(|it| {
                it.asked.push(asked.clone());
                it.ended_with_fleet.extend(ends.iter().map(|node| name(node)));
            })
        };
        assert_eq!(broken(&seen(&["a", "b", "c"])), Vec::<String>::new());
        assert_eq!(broken(&seen(&["a", "b", "a"])), ["a ends 2 times, asked for 1"]);
    }
}
