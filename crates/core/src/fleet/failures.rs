//! What was lost with a node, until somebody has answered it.
//!
//! Every node that sees a run go writes down what ran there, keyed by (node, run, job, incarnation).
//! The master answers what stands in the queue of any node, and remembers it; the others drop what
//! the master has answered. So a master that is lost itself leaves nothing unanswered, and nothing
//! is answered twice.

use super::RunId;
use crate::name::Name;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};

/// So many answered ones are remembered.
const REMEMBERED: usize = 4096;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FailureKey {
    /// The lost node, and which run of it.
    pub node: Name,
    pub run: RunId,
    pub job: Name,
    pub incarnation: u64,
}

/// Losses that nobody has answered, as this node knows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FailureQueue(BTreeSet<FailureKey>);

impl FailureQueue {
    pub fn add(&mut self, failures: impl IntoIterator<Item = FailureKey>) {
        self.0.extend(failures);
    }

    pub fn iter(&self) -> impl Iterator<Item = &FailureKey> {
        self.0.iter()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// This run is there after all: nothing of it was lost.
    pub fn cancel(&mut self, node: &Name, run: &RunId) {
        self.0.retain(|it| it.node != *node || it.run != *run);
    }

    pub fn drop_answered(&mut self, answered: &Answered) {
        self.0.retain(|it| !answered.has(it));
    }
}

/// Losses that a master has answered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Answered(VecDeque<FailureKey>);

impl Answered {
    #[must_use]
    pub fn has(&self, failure: &FailureKey) -> bool {
        self.0.contains(failure)
    }

    /// `true`: it is the first time.
    pub fn insert(&mut self, failure: FailureKey) -> bool {
        if self.has(&failure) {
            return false;
        }
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(failure);
        true
    }

    /// This run is there again: when it is lost once more, that is another loss.
    pub fn forget(&mut self, is_there: impl Fn(&Name, &RunId) -> bool) {
        self.0.retain(|it| !is_there(&it.node, &it.run));
    }

    /// What another master has answered, too.
    pub fn merge(&mut self, other: &Answered) {
        for failure in &other.0 {
            self.insert(failure.clone());
        }
    }
}
