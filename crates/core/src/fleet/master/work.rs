//! What a master has in hand. It says so before it does anything of it: the next master goes on
//! there.

use crate::{
    app::{App, AppFailure, AppState, BootSequence},
    clock::Mono,
    fleet::{
        Afterwards, Answered, FleetStage, LaterFields, NotPlaced, Number, OpenOrders,
        RequestAnswer, RequestId, RunId, Shared,
    },
    name::Name,
    text::pairs,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Work {
    pub number: Number,
    /// The clock of the master that says so.
    pub now: Mono,
    pub stage: FleetStage,
    pub boot: BootSequence,
    pub apps: Shared<BTreeMap<Name, AppState>>,
    pub jobs: Shared<BTreeMap<Name, JobStanding>>,
    pub orders: OpenOrders,
    /// What follows once all copies of a job are gone.
    pub then: BTreeMap<Name, Afterwards>,
    pub answered: Answered,
    #[serde(with = "pairs")]
    pub answers: BTreeMap<RequestId, RequestAnswer>,
    /// A node has joined since the last deployment.
    pub repair: bool,
    /// Jobs that are stopped to start elsewhere, and where, if somebody has said so.
    #[serde(default)]
    pub moves: BTreeMap<Name, Option<Name>>,
    /// Nodes that are to be drained (`true`) or not any more, and do not say so yet.
    #[serde(default)]
    pub drains: BTreeMap<Name, bool>,
    /// Nodes that nobody is to isolate any more.
    #[serde(default)]
    pub readmits: BTreeSet<Name>,
    /// The runs that end with the fleet; when it is restarted others follow them.
    #[serde(default)]
    pub ends: BTreeMap<Name, RunId>,
    /// Jobs that a user has asked for and that are not placed yet, and the node that was asked.
    #[serde(default)]
    pub asked_on: BTreeMap<Name, Name>,
    /// By app: the jobs that something is wrong with.
    #[serde(default)]
    pub failed: BTreeMap<Name, BTreeMap<Name, AppFailure>>,
    /// For the next master, which may know them.
    #[serde(flatten)]
    pub later: LaterFields,
}

/// Where a placed job is, as far as that is decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobStanding {
    /// Nobody has started it, or it was stopped.
    Rest,
    /// It runs there, in a broad sense.
    Up {
        node: Name,
        run: RunId,
        incarnation: u64,
        since: Mono,
    },
    /// It has ended by itself.
    Ended {
        well: bool,
    },
    /// It ran there, and that node is gone.
    Lost {
        node: Name,
    },
    NotPlaced(NotPlaced),
    /// It was ordered, and nothing came of it.
    OrderFailed {
        node: Name,
    },
}

impl Work {
    /// Apps as the next master has them, on its own clock.
    pub(super) fn take_apps(&self, now: Mono) -> BTreeMap<Name, App> {
        let apps = self.apps.iter();
        apps.map(|(name, state)| (name.clone(), App::taken_over(state, self.now, now))).collect()
    }

    /// It is of a restart of the fleet that this run has come out of, or came too late for.
    pub(in crate::fleet) fn is_before(&self, node: &Name, run: &RunId) -> bool {
        self.stage.begins_anew() && !self.ends_run(node, run)
    }

    /// The fleet ends, and this run with it.
    pub(in crate::fleet) fn ends_run(&self, node: &Name, run: &RunId) -> bool {
        self.stage.is_ending() && self.ends.get(node) == Some(run)
    }

    /// Whether it says the same, whenever it is said.
    pub(super) fn is_same(&self, other: &Work) -> bool {
        let Work { stage, boot, apps, jobs, orders, then, answered, answers, repair, .. } = self;
        let Work { moves, drains, readmits, ends, failed, asked_on, .. } = self;
        (stage, boot, apps, jobs) == (&other.stage, &other.boot, &other.apps, &other.jobs)
            && (orders, then, answered) == (&other.orders, &other.then, &other.answered)
            && (answers, repair) == (&other.answers, &other.repair)
            && (moves, drains, readmits) == (&other.moves, &other.drains, &other.readmits)
            && (ends, failed, asked_on) == (&other.ends, &other.failed, &other.asked_on)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::Term;
    use serde_json::{from_value, json, to_value};

    #[test]
    fn what_a_later_version_has_added_is_handed_on_to_the_next_master() {
        let term = Term { number: 1, master: Name::new("a").expect("a name") };
        let work = Work {
            number: Number { term, counter: 1 },
            now: Mono(1),
            stage: FleetStage::Operation,
            boot: BootSequence::default(),
            apps: Shared::default(),
            jobs: Shared::default(),
            orders: OpenOrders::default(),
            then: BTreeMap::new(),
            answered: Answered::default(),
            answers: BTreeMap::new(),
            repair: false,
            moves: BTreeMap::new(),
            drains: BTreeMap::new(),
            readmits: BTreeSet::new(),
            ends: BTreeMap::new(),
            asked_on: BTreeMap::new(),
            failed: BTreeMap::new(),
            later: LaterFields::default(),
        };
        let mut text = to_value(&work).expect("JSON");
        assert_eq!(from_value::<Work>(text.clone()).expect("work"), work);
        text["paints"] = json!({ "web": "red" });
        let heard: Work = from_value(text.clone()).expect("work");
        assert_eq!(to_value(&heard).expect("JSON"), text);
    }
}
