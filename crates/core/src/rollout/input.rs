//! What a rollout is told.

use super::{Content, Digest, InstanceNumber, Op, StagedFile, Version, WaveFeed};
use crate::{clock::Mono, name::Name, plan::RolloutPlan};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

#[derive(Debug, Clone, PartialEq)]
pub enum RolloutInput {
    /// The first input.
    Start {
        /// The agent takes over from one that has died; else the run begins.
        takes_over: bool,
    },
    /// A profile was asked of its source. `not_before`: how long the source wants to be left alone.
    Loaded {
        op: Op,
        profile: Name,
        outcome: LoadOutcome,
        not_before: Option<Duration>,
    },
    Stored {
        op: Op,
        outcome: Result<(), Trouble>,
    },
    Staged {
        op: Op,
        outcome: Result<StagedSet, StageFailure>,
    },
    Checked {
        op: Op,
        outcome: Result<(), Trouble>,
    },
    /// A failure has changed nothing, or some: all of it is put back.
    Switched {
        op: Op,
        outcome: Result<(), Trouble>,
    },
    Restored {
        op: Op,
        outcome: RestoreOutcome,
    },
    Inspected {
        op: Op,
        outcome: Result<ServiceFacts, Trouble>,
    },
    Told {
        op: Op,
        outcome: Result<(), Trouble>,
    },
    Probed {
        op: Op,
        outcome: ProbeOutcome,
    },
    HookDone {
        op: Op,
        outcome: Result<(), Trouble>,
    },
    /// The source of a profile has noticed something: it is worth asking.
    Noticed {
        profile: Name,
    },
    /// What the fleet serves in place of sources; nothing, while it has no master.
    Fed(BTreeMap<Name, WaveFeed>),
    /// The content of a version has come from another node, and is what it says.
    Arrived {
        profile: Name,
        version: Version,
        content: Arc<Content>,
    },
    /// A content that is known is not on the disk any more.
    Lost {
        profile: Name,
        version: Version,
    },
    /// A user asks.
    Asked(RolloutRequest),
    /// Another plan is in force.
    Planned(Arc<RolloutPlan>),
    Maintenance {
        on: bool,
    },
    /// The node is about to end: nothing new begins, and what is told is given up if it would take
    /// longer.
    Ending {
        by: Mono,
    },
    /// Time has passed: at the time of [`RolloutOutcome::wake`](super::RolloutOutcome::wake), at the
    /// latest.
    Tick,
}

/// Why something did not work, in a sentence for people, without any secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
#[error("{0}")]
pub struct Trouble(pub String);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadOutcome {
    /// What it served last, as far as it says. Never of a fresh one.
    Unchanged,
    Served {
        version: Version,
        content: Arc<Content>,
    },
    Failed(Trouble),
}

/// A set that is staged: every template of it is in one of the two.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StagedSet {
    pub changed: Vec<StagedFile>,
    /// What is in place is what was rendered.
    pub unchanged: BTreeMap<Name, Digest>,
}

/// Why a set is not staged. Nothing that can be seen has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StageFailure {
    /// Names template, line and column.
    Render { template: Name, trouble: Trouble },
    /// Somebody else has edited destinations since.
    Edited { templates: Vec<Name>, trouble: Trouble },
    /// The content of a version that it is to be made of is gone.
    Lost { profile: Name, version: Box<Version>, trouble: Trouble },
    /// A directory that is missing, a full or read-only disk, a process that was killed: no version is
    /// guilty of it.
    Disk(Trouble),
}

/// What came of putting files back. Each was tried.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestoreOutcome {
    /// Edits of somebody else, and where they are now.
    pub set_aside: Vec<(PathBuf, PathBuf)>,
    /// What could not be put back.
    pub failed: Vec<(Name, Trouble)>,
}

/// How a service is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ServiceFacts {
    /// It has a process, or gets one by itself. Of flip-flop: an instance has.
    pub running: bool,
    /// Nothing speaks against it: of a job, its checks do not fail; of a unit, it has not failed.
    pub healthy: bool,
    /// It has ended by itself, and nothing starts it again.
    pub died: bool,
    /// Of flip-flop: the instances that are active, activating or reloading.
    pub instances: BTreeSet<InstanceNumber>,
    pub main_pid: Option<u32>,
    /// Of the main process.
    pub children: BTreeSet<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeOutcome {
    Passed,
    Failed(Trouble),
    /// Of a check that compares children: what there is now.
    Children {
        main_pid: Option<u32>,
        children: BTreeSet<u32>,
    },
    /// Of a check that compares instances: what each has counted, or why that cannot be read.
    Requests {
        new: Result<RequestCount, Trouble>,
        old: Result<RequestCount, Trouble>,
    },
}

/// What an instance has counted since it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestCount {
    pub requests: u64,
    pub failures: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RolloutRequest {
    /// Ask the sources now; a version that failed before is tried again.
    Refresh {
        /// `None`: all.
        profile: Option<Name>,
        /// Overwrite what somebody else has edited.
        force: bool,
    },
    /// Back to the version before the applied one, or to one of the history.
    Rollback {
        profile: Name,
        to: Option<Version>,
        force: bool,
    },
    /// Begin no update until `Resume`; kept over boots.
    Pause,
    Resume,
}
