//! What must hold of a fleet, one rule a file, each with a test that it can fail.
//!
//! `settled` are those that hold once nothing disturbs the fleet any more; `always` those that hold
//! at every moment.

mod answered_once;
mod args_travel;
mod done_once;
mod ends_are_asked_for;
mod ends_are_no_failures;
mod isolated_unheard;
mod no_false_alarm;
mod nothing_left;
mod one_copy;
mod one_master;
mod orders_rise;
mod placed_well;
mod replied_once;
mod room;
mod same_wishes;
mod terms_are_new;
mod users_count;
mod wanted_runs;
mod while_whole;

use super::Observation;

type Rule = (&'static str, fn(&Observation) -> Vec<String>);

const ALWAYS: &[Rule] = &[
    ("a failure is answered once", answered_once::broken),
    ("a request is replied to once", replied_once::broken),
    ("a request is done once", done_once::broken),
    ("orders rise, and no older term is obeyed", orders_rise::broken),
    ("a term is begun once", terms_are_new::broken),
    ("a job is placed where it may be", placed_well::broken),
    ("nothing an isolated node says is taken", isolated_unheard::broken),
    ("nobody is given up who can be reached", no_false_alarm::broken),
    ("the end of a node is no failure", ends_are_no_failures::broken),
    ("a fleet ends when somebody asks for it", ends_are_asked_for::broken),
    ("a whole fleet runs no job twice", while_whole::broken),
];

const SETTLED: &[Rule] = &[
    ("there is one master, and all follow it", one_master::broken),
    ("a job runs once", one_copy::broken),
    ("what is wanted runs, what is not rests", wanted_runs::broken),
    ("what a user has said last counts", users_count::broken),
    ("arguments stay with their job", args_travel::broken),
    ("all nodes have the same wishes", same_wishes::broken),
    ("no machine bears more than it can", room::broken),
    ("every request has its reply", replied_once::open),
    ("nothing is left in hand", nothing_left::broken),
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
    use crate::fleet::{
        History, Observation,
        observation::NodeSeen,
        scenario::{Scenario, name},
    };
    use mainstay_core::{
        fleet::{CopyState, FleetStage, RunId, Term, Wishes},
        plan::OnFailure,
    };
    use std::{
        collections::{BTreeMap, BTreeSet},
        sync::Arc,
    };

    pub(super) fn term(number: u64, master: &str) -> Term {
        Term { number, master: name(master) }
    }

    /// Three nodes that follow a, and a job `web` that runs on b.
    pub(super) fn fleet() -> Observation {
        let node = |text: &str| {
            let runs = if text == "b" { CopyState::Running } else { CopyState::Stopped };
            NodeSeen {
                run: RunId::new(text),
                machine: text.to_owned(),
                stage: FleetStage::Operation,
                term: Some(term(1, "a")),
                is_master: text == "a",
                drained: false,
                jobs: BTreeMap::from([(name("web"), runs)]),
                by_hand: BTreeSet::new(),
                stopped_by_hand: BTreeSet::new(),
                args: BTreeMap::new(),
                args_lost: BTreeSet::new(),
                wishes: Wishes::default(),
                failures: 0,
                open_requests: 0,
                work: None,
            }
        };
        let scenario = Scenario::of("a b c").app("shop", OnFailure::Continue).job("web", 1, 60);
        Observation {
            nodes: ["a", "b", "c"].iter().map(|it| (name(it), node(it))).collect(),
            history: Arc::default(),
            catalogue: Arc::new(scenario.catalogue),
            rules: scenario.rules,
        }
    }

    /// The same, with something else in its past.
    pub(super) fn with(edit: impl FnOnce(&mut History)) -> Observation {
        let mut seen = fleet();
        edit(Arc::make_mut(&mut seen.history));
        seen
    }
}
