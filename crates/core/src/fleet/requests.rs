//! What users ask of a fleet, at any of its nodes.
//!
//! The node that takes a request gives it a number, says it with its facts until it is answered, and
//! so hands it to every new master. The master does it once, and says the answer with its work; the
//! node that asked drops it then, and the master forgets the answer when it has.

use super::{Conciliation, NotPlaced, RunId};
use crate::{clock::Mono, name::Name};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, time::Duration};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RequestId {
    pub node: Name,
    pub run: RunId,
    /// Rises with the time of asking.
    pub number: u64,
}

impl RequestId {
    /// How long ago it was asked, as its node says at this time of its clock.
    pub(super) fn age(&self, now: Mono) -> Duration {
        now.since(Mono(self.number))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FleetRequest {
    StartApp {
        app: Name,
    },
    StopApp {
        app: Name,
    },
    RestartApp {
        app: Name,
        /// So many of its jobs at a time, each as it should be before the next.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wave: Option<u32>,
    },
    StartJob {
        job: Name,
        args: Option<Vec<String>>,
    },
    StopJob {
        job: Name,
    },
    /// Stopped wherever it runs, then started where the rules say.
    RestartJob {
        job: Name,
        args: Option<Vec<String>>,
    },
    /// Stopped wherever it runs, and started by nothing but a user's enable.
    DisableJob {
        job: Name,
    },
    EnableJob {
        job: Name,
    },
    /// Stopped where it runs, then started there.
    MoveJob {
        job: Name,
        to: Name,
    },
    /// All of its jobs that run.
    MoveApp {
        app: Name,
        to: Name,
    },
    /// Nothing is to be placed on a node, and what runs there goes elsewhere; or it may be again.
    Drain {
        node: Name,
        on: bool,
    },
    /// What runs on a node that is to end goes elsewhere; the node says itself that it hands over.
    HandOver {
        node: Name,
    },
    /// An isolated node may take part again, for all nodes of this side.
    Readmit {
        node: Name,
    },
    /// Solve the conflicts of one job, or all.
    Conciliate {
        job: Option<Name>,
        rule: Conciliation,
    },
    /// Stop all apps in order, then end every node, or have it begin a new run.
    EndFleet {
        again: bool,
    },
    /// Of a later version: it is passed over, and said on as it came.
    #[serde(untagged)]
    Unknown(serde_json::Value),
}

/// What the master makes of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestAnswer {
    /// The master has begun it.
    Begun,
    NoSuchApp,
    NoSuchJob,
    /// The fleet starts nothing now: it conciliates, or ends.
    NotNow,
    /// No node of this name takes part.
    NoSuchNode,
    /// What is to be moved does not run.
    NotRunning,
    /// A user has disabled the job.
    Disabled,
    /// It has no home there.
    NotPlaced(NotPlaced),
    /// The master has begun it; these have no other home and stay.
    Stays {
        jobs: Vec<Name>,
    },
    /// Of a later version.
    #[serde(untagged)]
    Unknown(serde_json::Value),
}

/// Requests of this node that no master has answered yet.
#[derive(Debug, Clone, Default)]
pub struct OpenRequests {
    last: u64,
    open: BTreeMap<RequestId, FleetRequest>,
}

impl OpenRequests {
    /// Those of an agent that takes over have other numbers than those of the one before.
    #[must_use]
    pub fn after(now: Mono) -> OpenRequests {
        OpenRequests { last: now.0, open: BTreeMap::new() }
    }

    /// Its number is the time of asking, by the clock of this node.
    pub fn take(
        &mut self,
        now: Mono,
        node: &Name,
        run: &RunId,
        request: FleetRequest,
    ) -> RequestId {
        self.last = now.0.max(self.last + 1);
        let id = RequestId { node: node.clone(), run: run.clone(), number: self.last };
        self.open.insert(id.clone(), request);
        id
    }

    #[must_use]
    pub fn open(&self) -> &BTreeMap<RequestId, FleetRequest> {
        &self.open
    }

    /// Those that the master has answered.
    pub fn close_answered(
        &mut self,
        answers: &BTreeMap<RequestId, RequestAnswer>,
    ) -> Vec<(RequestId, RequestAnswer)> {
        let answered = |id: &RequestId| Some((id.clone(), answers.get(id)?.clone()));
        let closed: Vec<_> = self.open.keys().filter_map(answered).collect();
        closed.iter().for_each(|(id, _)| drop(self.open.remove(id)));
        closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_str, to_string};

    /// Versions of a fleet that is upgraded hear each other, whatever is asked of the later one.
    #[test]
    fn what_a_later_version_says_is_read_and_said_on_as_it_came() {
        for text in [r#"{"paint-job":{"job":"web","colour":3}}"#, r#""tidy-up""#] {
            let request: FleetRequest = from_str(text).expect("a request");
            assert!(matches!(request, FleetRequest::Unknown(_)), "{request:?}");
            assert_eq!(to_string(&request).expect("text"), text);
            let answer: RequestAnswer = from_str(text).expect("an answer");
            assert!(matches!(answer, RequestAnswer::Unknown(_)), "{answer:?}");
            assert_eq!(to_string(&answer).expect("text"), text);
        }
    }

    #[test]
    fn what_is_known_is_read_as_what_it_is() {
        let job = Name::new("web").expect("a name");
        for request in [
            FleetRequest::StopJob { job: job.clone() },
            FleetRequest::DisableJob { job: job.clone() },
            FleetRequest::EndFleet { again: true },
        ] {
            let text = to_string(&request).expect("text");
            assert_eq!(from_str::<FleetRequest>(&text).expect("a request"), request);
        }
        for answer in [RequestAnswer::Begun, RequestAnswer::Stays { jobs: vec![job] }] {
            let text = to_string(&answer).expect("text");
            assert_eq!(from_str::<RequestAnswer>(&text).expect("an answer"), answer);
        }
        // A later version may say more of it.
        let more = r#"{"stop-job":{"job":"web","gently":true}}"#;
        assert!(matches!(from_str(more).expect("a request"), FleetRequest::StopJob { .. }));
    }
}
