//! What must hold of a fleet, one rule a file, each with a test that it can fail.
//!
//! `settled` are those that hold once nothing disturbs the fleet any more; `always` those that hold
//! at every moment.

mod answered_once;
mod one_copy;
mod one_master;
mod replied_once;
mod room;
mod same_wishes;
mod wanted_runs;

use super::Observation;

type Rule = (&'static str, fn(&Observation) -> Vec<String>);

const ALWAYS: &[Rule] = &[
    ("a failure is answered once", answered_once::broken),
    ("a request is replied to once", replied_once::broken),
];

const SETTLED: &[Rule] = &[
    ("there is one master, and all follow it", one_master::broken),
    ("a job runs once", one_copy::broken),
    ("what is wanted runs, what is not rests", wanted_runs::broken),
    ("all nodes have the same wishes", same_wishes::broken),
    ("no machine bears more than it can", room::broken),
    ("every request has its reply", replied_once::open),
];

/// What is broken now, and must never be.
#[must_use]
pub fn always(seen: &Observation) -> Vec<String> {
    check(ALWAYS, seen)
}

/// What is broken although nothing has disturbed the fleet for long enough.
#[must_use]
pub fn settled(seen: &Observation) -> Vec<String> {
    check(SETTLED, seen)
}

fn check(rules: &[Rule], seen: &Observation) -> Vec<String> {
    let one = |(rule, broken): &Rule| {
        let found: Vec<String> = broken(seen).iter().map(|it| format!("{rule}: {it}")).collect();
        found
    };
    rules.iter().flat_map(one).collect()
}

#[cfg(test)]
mod example {
    use crate::fleet::{Observation, observation::NodeSeen, scenario::name};
    use mainstay_core::fleet::{CopyState, FleetStage, RunId, Term, Wishes};
    use std::collections::{BTreeMap, BTreeSet};

    /// Three nodes that follow a, and a job `web` that runs on b.
    pub(super) fn fleet() -> Observation {
        let node = |text: &str| {
            let runs = if text == "b" { CopyState::Running } else { CopyState::Stopped };
            NodeSeen {
                run: RunId::new(text),
                machine: text.to_owned(),
                stage: FleetStage::Operation,
                term: Some(Term { number: 1, master: name("a") }),
                is_master: text == "a",
                jobs: BTreeMap::from([(name("web"), runs)]),
                by_hand: BTreeSet::new(),
                args: BTreeMap::new(),
                wishes: Wishes::default(),
            }
        };
        Observation {
            nodes: ["a", "b", "c"].iter().map(|it| (name(it), node(it))).collect(),
            loads: BTreeMap::from([(name("web"), 60)]),
            ..Observation::default()
        }
    }
}
