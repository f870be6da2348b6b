//! What was lost with a node, until somebody has answered it.
//!
//! Every node that sees a run go writes down what ran there, keyed by (node, run, job, incarnation).
//! The master answers what stands in the queue of any node, and remembers it; the others drop what
//! the master has answered. So a master that is lost itself leaves nothing unanswered, and nothing
//! is answered twice.

use super::{RunId, Shared};
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
pub struct FailureQueue(Shared<BTreeSet<FailureKey>>);

impl FailureQueue {
    pub fn add(&mut self, failures: impl IntoIterator<Item = FailureKey>) {
        let new: Vec<FailureKey> = failures.into_iter().filter(|it| !self.0.contains(it)).collect();
        if !new.is_empty() {
            self.0.edit().extend(new);
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &FailureKey> {
        self.0.iter()
    }

    /// Where both are equal they become one.
    pub(super) fn share(&mut self, with: &FailureQueue) {
        self.0.share(&with.0);
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// This run is there after all: nothing of it was lost.
    pub fn cancel(&mut self, node: &Name, run: &RunId) {
        self.retain(|it| it.node != *node || it.run != *run);
    }

    pub fn drop_answered(&mut self, answered: &Answered) {
        self.retain(|it| !answered.has(it));
    }

    fn retain(&mut self, stays: impl Fn(&FailureKey) -> bool) {
        if !self.0.iter().all(&stays) {
            self.0.edit().retain(stays);
        }
    }
}

/// Losses that a master has answered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Answered(Shared<VecDeque<FailureKey>>);

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
        let answered = self.0.edit();
        if answered.len() == REMEMBERED {
            answered.pop_front();
        }
        answered.push_back(failure);
        true
    }

    /// This run is there again: when it is lost once more, that is another loss.
    pub fn forget(&mut self, is_there: impl Fn(&Name, &RunId) -> bool) {
        let is_there = |it: &FailureKey| is_there(&it.node, &it.run);
        if self.0.iter().any(is_there) {
            self.0.edit().retain(|it| !is_there(it));
        }
    }

    /// What another master has answered, too.
    pub fn merge(&mut self, other: &Answered) {
        for failure in other.0.iter() {
            self.insert(failure.clone());
        }
    }
}
