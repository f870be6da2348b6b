//! What a node tells its fleet machine, what that wants, and what outlives a boot.

use super::{
    Catalogue, EngineCommand, EngineEvent, FailureKey, FailureQueue, FleetRequest, FleetRules,
    FleetStage, JobCopy, JobSaid, NotPlaced, Number, RequestAnswer, RequestId, RunId, Term, Wishes,
};
use crate::{
    clock::Mono,
    name::Name,
    rollout::{ProfileDelivery, Version, WaveRecords, WaveReport},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// What a node tells its fleet machine.
#[derive(Debug, Clone, PartialEq)]
pub enum FleetInput {
    Engine(EngineEvent),
    /// How the placed jobs are here.
    Jobs(BTreeMap<Name, JobCopy>),
    /// Another plan is in force here.
    Known(Arc<Catalogue>),
    /// Its `[fleet]` is another one.
    Rules(FleetRules),
    /// A user asks, here.
    Asked(FleetRequest),
    /// A user wants an isolated node back.
    Readmit {
        node: Name,
    },
    /// This node hands over what it runs, to end after that, or does not any more.
    HandOver {
        on: bool,
    },
    /// How its rollout stands; `None`: nothing of it goes in waves.
    Waves(Option<WaveReport>),
    /// This node is about to end, on purpose.
    Ending,
    /// Time has passed: at the time of [`FleetOutcome::wake`], at the latest.
    Tick,
}

/// What this node is to do with its jobs. The copy shows the order once it is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FleetCommand {
    Start {
        order: Number,
        job: Name,
        args: Vec<String>,
        fails_over: bool,
        /// What it has said before in the life that goes on.
        said: JobSaid,
    },
    Stop {
        order: Number,
        job: Name,
    },
    /// The fleet ends, or begins anew.
    EndRun {
        again: bool,
    },
    /// Send the content of a version that is on the disk here.
    GiveProfile {
        to: Name,
        profile: Name,
        version: Version,
    },
    /// Put the content of a version on the disk here.
    TakeProfile(ProfileDelivery),
}

/// For observers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FleetEvent {
    Joined {
        node: Name,
    },
    Lost {
        node: Name,
    },
    Isolated {
        node: Name,
    },
    Refused {
        node: Name,
        run: RunId,
    },
    Master {
        term: Term,
    },
    Stage {
        stage: FleetStage,
    },
    Placed {
        job: Name,
        node: Name,
    },
    NotPlaced {
        job: Name,
        why: NotPlaced,
    },
    /// The master answers the loss of a job.
    Failure {
        failure: FailureKey,
    },
    Conflict {
        job: Name,
        nodes: Vec<Name>,
    },
    /// A job of an app did not come up in its wave.
    WavesStopped {
        app: Name,
        job: Name,
    },
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct FleetOutcome {
    /// In this order: what is said comes before what is sent.
    pub engine: Vec<EngineCommand>,
    pub commands: Vec<FleetCommand>,
    pub events: Vec<FleetEvent>,
    pub answers: Vec<(RequestId, RequestAnswer)>,
    /// The number of the request that was asked, if one was.
    pub request: Option<RequestId>,
    /// When the node is to come back with [`FleetInput::Tick`].
    pub wake: Option<Mono>,
}

/// What outlives a boot.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Kept {
    pub highest_term: Option<Term>,
    pub isolates: BTreeSet<Name>,
    pub drained: bool,
    pub wishes: Wishes,
    pub failures: FailureQueue,
    #[serde(skip_serializing_if = "crate::rollout::are_none")]
    pub waves: WaveRecords,
}

/// Who a node is.
#[derive(Debug, Clone)]
pub struct Identity {
    pub name: Name,
    pub run: RunId,
    pub machine: String,
}
