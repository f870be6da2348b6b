//! What a node says of itself, and what it sends.
//!
//! A node says all of its facts, in place of what it said before: to lose one of them, or to hear
//! one twice, changes nothing that the next one does not mend. Only orders are sent, and they are
//! sent again until the facts of the node show them.

mod later;
mod own;
mod shared;

pub use later::LaterFields;
pub use shared::Shared;

use super::{
    Catalogue, Departed, FailureQueue, FleetRequest, FleetStage, JobSaid, Number, RequestId, RunId,
    Term, Wishes, Work,
};
use crate::{
    clock::Mono,
    name::Name,
    rollout::{ProfileDelivery, Version, WaveFacts},
    text::pairs,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeFacts {
    pub run: RunId,
    /// Later facts of a run have a higher one: what comes late is passed over.
    pub version: u64,
    /// The clock of the node when it says so.
    pub now: Mono,
    /// Nodes of one machine share its load.
    pub machine: String,
    /// It is in sync with the others, or has met somebody who is.
    pub in_sync: bool,
    /// The others that take part, as it sees them.
    pub peers: Shared<BTreeSet<Name>>,
    /// The runs that it can reach and has not refused.
    pub accepts: Shared<BTreeMap<Name, RunId>>,
    /// The master that it follows.
    pub term: Option<Term>,
    /// The highest term that it has seen.
    pub highest_term: Option<Term>,
    pub stage: FleetStage,
    /// Those that it has decided to isolate.
    pub isolates: Shared<BTreeSet<Name>>,
    /// Nothing is to be placed there.
    pub drained: bool,
    /// What runs there goes elsewhere, because it is to end after that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hands_over: bool,
    /// It is about to end, on purpose.
    pub ending: bool,
    pub catalogue: Arc<Catalogue>,
    pub jobs: Shared<BTreeMap<Name, JobCopy>>,
    pub wishes: Wishes,
    pub failures: FailureQueue,
    /// What was asked of it and is not answered.
    #[serde(with = "pairs")]
    pub requests: BTreeMap<RequestId, FleetRequest>,
    /// What jobs have said on nodes that are gone.
    #[serde(default, skip_serializing_if = "Departed::is_empty")]
    pub departed: Departed,
    /// What the master has in hand; only the master says so.
    pub work: Option<Arc<Work>>,
    /// Of profiles that go through the fleet in waves.
    #[serde(default, skip_serializing_if = "waves_are_empty")]
    pub waves: Shared<WaveFacts>,
}

fn waves_are_empty(waves: &Shared<WaveFacts>) -> bool {
    waves.is_empty()
}

impl NodeFacts {
    /// Whether they say the same, whenever they are said.
    #[must_use]
    pub fn is_same(&self, other: &NodeFacts) -> bool {
        let NodeFacts { run, version: _, now: _, machine, in_sync, peers, accepts, .. } = self;
        let NodeFacts { term, highest_term, stage, isolates, drained, hands_over, .. } = self;
        let NodeFacts { ending, catalogue, jobs, wishes, failures, requests, .. } = self;
        let NodeFacts { departed, work, waves, .. } = self;
        (run, machine, in_sync) == (&other.run, &other.machine, &other.in_sync)
            && (peers, accepts, isolates) == (&other.peers, &other.accepts, &other.isolates)
            && (term, highest_term, stage) == (&other.term, &other.highest_term, &other.stage)
            && (drained, hands_over) == (&other.drained, &other.hands_over)
            && (ending, requests) == (&other.ending, &other.requests)
            && (catalogue, jobs, wishes) == (&other.catalogue, &other.jobs, &other.wishes)
            && (failures, departed, work) == (&other.failures, &other.departed, &other.work)
            && *waves == other.waves
    }

    /// Where they say the same as these they become one with them: what a node says again and again
    /// is held once, and found to be the same without a look at it.
    pub(super) fn share(&mut self, with: &NodeFacts) {
        self.peers.share(&with.peers);
        self.accepts.share(&with.accepts);
        self.isolates.share(&with.isolates);
        self.jobs.share(&with.jobs);
        self.wishes.share(&with.wishes);
        self.failures.share(&with.failures);
        self.departed.share(&with.departed);
        self.waves.share(&with.waves);
        self.share_catalogue(&with.catalogue);
    }

    /// As [`NodeFacts::share`], with what the node that hears them holds itself.
    pub(super) fn share_own(&mut self, wishes: &Wishes, catalogue: &Arc<Catalogue>) {
        self.wishes.share(wishes);
        self.share_catalogue(catalogue);
    }

    fn share_catalogue(&mut self, with: &Arc<Catalogue>) {
        if self.catalogue == *with {
            self.catalogue = with.clone();
        }
    }
}

/// A placed job on one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobCopy {
    pub state: CopyState,
    pub incarnation: u64,
    /// When this process was started, by the clock of the node.
    pub since: Mono,
    pub args: Vec<String>,
    /// Nobody knows its arguments: they were lost with the journal, and its process was not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub args_lost: bool,
    /// Somebody has started or stopped it on this node alone, whatever the fleet says.
    pub by_hand: bool,
    /// The last order for it that was taken.
    pub order: Option<Number>,
    /// It has checks, and they have not passed yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub awaits_health: bool,
    /// A user has taken its node from the candidates.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
    /// What it has said in its life; `None`: nothing beyond what its state says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Box<JobSaid>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CopyState {
    Stopped,
    /// Its `when` keeps it.
    Waiting,
    Starting,
    Running,
    Backoff,
    Stopping,
    Exited {
        well: bool,
    },
    Fatal,
}

impl CopyState {
    /// It runs, in a broad sense: another copy would be one too many.
    #[must_use]
    pub fn is_active(self) -> bool {
        match self {
            CopyState::Waiting
            | CopyState::Starting
            | CopyState::Running
            | CopyState::Backoff
            | CopyState::Stopping => true,
            CopyState::Stopped | CopyState::Exited { .. } | CopyState::Fatal => false,
        }
    }

    /// It runs and is not on its way out.
    #[must_use]
    pub fn is_up(self) -> bool {
        self.is_active() && self != CopyState::Stopping
    }
}

impl JobCopy {
    /// Nothing of it has been there yet.
    #[must_use]
    pub fn none() -> JobCopy {
        JobCopy {
            state: CopyState::Stopped,
            incarnation: 0,
            since: Mono(0),
            args: Vec::new(),
            args_lost: false,
            by_hand: false,
            order: None,
            awaits_health: false,
            disabled: false,
            said: None,
        }
    }
}

/// What is sent to one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Message {
    Order(JobOrder),
    /// Send me the content of a version. Only to who says that it has some of that profile.
    WantProfile {
        profile: Name,
        version: Version,
    },
    /// What was wanted.
    Profile(ProfileDelivery),
}

/// What a master wants of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobOrder {
    pub number: Number,
    pub job: Name,
    pub what: OrderKind,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OrderKind {
    Start {
        args: Vec<String>,
        /// It ran elsewhere: that is a restart by policy.
        fails_over: bool,
    },
    Stop,
}
