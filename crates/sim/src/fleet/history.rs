//! What has happened in a fleet so far, as far as somebody asks for it later.

use mainstay_core::{
    fleet::{FailureKey, FleetRequest, Number, RequestAnswer, RequestId, RunId, Term, Work},
    name::Name,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

#[derive(Debug, Clone, Default)]
pub struct History {
    /// The losses that were answered.
    pub answered: Vec<Answer>,
    /// Who has seen whom join.
    pub joined: Vec<(Name, Name)>,
    pub asked: Vec<AskedRequest>,
    pub replies: Vec<(RequestId, RequestAnswer)>,
    /// Masters that have done a request.
    pub done: Vec<(RequestId, Term)>,
    pub placements: Vec<Placing>,
    pub taken: Vec<TakenOrder>,
    /// Terms, and the runs that have begun them.
    pub reigns: BTreeSet<(Term, Name, RunId)>,
    /// Runs that were ended on purpose.
    pub ended: BTreeSet<(Name, RunId)>,
    /// Nodes whose run has ended with the fleet, each time.
    pub ended_with_fleet: Vec<Name>,
    /// Jobs that somebody has started on one node, whatever the fleet says, and when.
    pub by_hand: Vec<(Duration, Name)>,
    /// Jobs that were started by order while they ran elsewhere.
    pub twice: Vec<Twice>,
    /// Who was given up although it ran, and by whom.
    pub false_alarms: Vec<FalseAlarm>,
    /// Nodes that have followed one that they isolate.
    pub followed_isolated: Vec<(Name, Term)>,
    /// Nodes whose disk was torn.
    pub torn: BTreeSet<Name>,
    /// Nodes could give each other up although both ran, from then on.
    pub divided: bool,
    /// What the master of each term has answered so far.
    answers: BTreeMap<Term, BTreeSet<RequestId>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub failure: FailureKey,
    pub by: Name,
    /// The lost node had come back to it so often.
    pub times: usize,
    pub term: Option<Term>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AskedRequest {
    pub at: Duration,
    pub id: RequestId,
    pub request: FleetRequest,
    /// The agent that was asked is gone: nobody waits for the answer.
    pub is_orphan: bool,
}

/// A master gives a job to a node, of which it knows this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placing {
    pub job: Name,
    pub node: Name,
    pub takes_part: bool,
    pub is_drained: bool,
    pub is_ending: bool,
    pub hands_over: bool,
    /// Its file has the same table for the job as the master's.
    pub is_known: bool,
    /// What its machine bears with the job.
    pub load: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenOrder {
    pub node: Name,
    pub run: RunId,
    pub job: Name,
    pub number: Number,
    /// The highest term that the node has seen.
    pub highest: Option<Term>,
    pub from_isolated: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Twice {
    pub job: Name,
    pub nodes: Vec<Name>,
    pub at: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FalseAlarm {
    pub by: Name,
    pub node: Name,
    pub at: Duration,
}

impl History {
    /// A master has said what it has in hand.
    pub(super) fn work_is(&mut self, work: &Work) {
        let term = &work.number.term;
        let now: BTreeSet<RequestId> = work.answers.keys().cloned().collect();
        let before = self.answers.insert(term.clone(), now.clone());
        // What a new master has taken over was done by the one before.
        let inherited = |id: &RequestId| before.is_none() && self.done.iter().any(|it| it.0 == *id);
        let known = |id: &RequestId| before.as_ref().is_some_and(|it| it.contains(id));
        let done: Vec<_> = now.iter().filter(|id| !known(id) && !inherited(id)).cloned().collect();
        self.done.extend(done.into_iter().map(|id| (id, term.clone())));
    }

    /// The agent of a node is gone, and whoever asked it.
    pub(super) fn orphan(&mut self, node: &Name) {
        for it in self.asked.iter_mut().filter(|it| it.id.node == *node) {
            it.is_orphan = true;
        }
    }
}
