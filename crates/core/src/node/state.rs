//! The state of a node itself, apart from its jobs.

use crate::{
    app::BootSequence,
    clock::Mono,
    event::{History, Signals},
    job::Shutting,
    name::Name,
    plan::Awaited,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, time::Duration};

/// As observers see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodePhase {
    Starting,
    Running,
    Maintenance,
    Stopping,
}

/// The node's own state, apart from its jobs, apps and watches.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NodeState {
    pub(super) stage: NodeStage,
    #[serde(default)]
    pub(super) maintenance: bool,
    /// What the node itself has said at least once.
    #[serde(default, skip_serializing_if = "History::is_empty")]
    history: History,
    #[serde(default, skip_serializing_if = "Signals::is_empty")]
    signals: Signals,
    #[serde(default, skip_serializing_if = "BootSequence::is_idle")]
    pub(super) boot: BootSequence,
    /// Jobs that a user disabled and that are not in the plan: they come back disabled.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) disabled_absent: BTreeSet<Name>,
    /// The last time that the journal was lost in this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) journal_loss: Option<JournalLoss>,
    #[serde(default, skip_serializing_if = "JointStop::is_over")]
    pub(super) joint_stop: JointStop,
}

/// Jobs that are to stop in their order: each is told when those of them that need it are gone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct JointStop {
    /// Not told yet.
    untold: BTreeSet<Name>,
    /// Told, and perhaps still there.
    told: BTreeSet<Name>,
}

impl JointStop {
    pub(super) fn is_over(&self) -> bool {
        self.untold.is_empty()
    }

    pub(super) fn add(&mut self, job: Name) {
        self.told.remove(&job);
        self.untold.insert(job);
    }

    pub(super) fn has_told(&mut self, job: &Name) {
        if self.untold.remove(job) {
            self.told.insert(job.clone());
        }
        self.forget_if_over();
    }

    /// Somebody wants it to run, or it is to stop at once.
    pub(super) fn leave_out(&mut self, job: &Name) {
        self.untold.remove(job);
        self.told.remove(job);
        self.forget_if_over();
    }

    /// With all of them told there is no order left to keep.
    fn forget_if_over(&mut self) {
        if self.untold.is_empty() {
            self.told.clear();
        }
    }

    pub(super) fn untold(&self) -> impl Iterator<Item = &Name> {
        self.untold.iter()
    }

    pub(super) fn told(&self) -> impl Iterator<Item = &Name> {
        self.told.iter()
    }
}

/// A journal was lost, and what cannot be known since.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct JournalLoss {
    /// When that was found: wall clock, ns.
    pub since: i64,
    pub reason: String,
    /// Jobs that have ended: what they had said before is not known.
    pub unknown: Vec<Name>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum NodeStage {
    /// Not yet booted.
    Starting,
    Running,
    Stopping(Shutdown),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Shutdown {
    /// Everything is gone by then.
    pub(super) deadline: Mono,
    /// When what is left is killed.
    pub(super) kill_by: Mono,
    /// A signal has asked for it. The next one is impatient.
    pub(super) signalled: bool,
    pub(super) killing: bool,
    /// Half of its time.
    #[serde(default)]
    pub(super) half: Duration,
    /// What the run ends with, as far as that is decided.
    pub(super) code: Option<i32>,
    /// Another run follows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) again: bool,
}

/// What a kill needs at most, kept back from the time of a shutdown.
const RESERVE: Duration = Duration::from_millis(500);
/// So many processes are killed and seen to be gone in a millisecond.
const KILLED_IN_A_MILLISECOND: usize = 5;

/// What it takes to kill so many, of the time there is.
fn reserve(time: Duration, processes: usize) -> Duration {
    let many = u64::try_from(processes / KILLED_IN_A_MILLISECOND).unwrap_or(u64::MAX);
    RESERVE.min(time / 10) + Duration::from_millis(many).min(time / 3)
}

impl Default for NodeState {
    fn default() -> NodeState {
        NodeState {
            stage: NodeStage::Starting,
            maintenance: false,
            history: History::default(),
            signals: Signals::default(),
            boot: BootSequence::default(),
            disabled_absent: BTreeSet::new(),
            journal_loss: None,
            joint_stop: JointStop::default(),
        }
    }
}

impl NodeState {
    #[must_use]
    pub fn phase(&self) -> NodePhase {
        match self.stage {
            NodeStage::Starting => NodePhase::Starting,
            NodeStage::Running if self.maintenance => NodePhase::Maintenance,
            NodeStage::Running => NodePhase::Running,
            NodeStage::Stopping(_) => NodePhase::Stopping,
        }
    }

    pub(super) fn shutting(&self) -> Option<Shutting> {
        match &self.stage {
            NodeStage::Starting | NodeStage::Running => None,
            NodeStage::Stopping(Shutdown { kill_by, killing, half, .. }) => {
                Some(Shutting { kill_by: *kill_by, killing: *killing, half: *half })
            }
        }
    }

    pub(super) fn has_said(&self, event: Awaited) -> bool {
        match event {
            Awaited::Signal { signal } => self.signals.has(signal),
            Awaited::Event(_) => self.history.has(event),
        }
    }

    pub(super) fn note(&mut self, event: Awaited) {
        if let Awaited::Signal { signal } = event {
            self.signals.note(signal);
        }
        self.history.note(event);
    }
}

impl Shutdown {
    /// Of so many processes, in so much time.
    pub(super) fn new(now: Mono, time: Duration, processes: usize, why: Why) -> Shutdown {
        let (signalled, code) = match why {
            Why::Signalled => (true, None),
            Why::Asked | Why::BeginsAnew => (false, None),
            Why::Ended { code } => (false, Some(code)),
        };
        Shutdown {
            deadline: now.after(time),
            kill_by: now.after(time.saturating_sub(reserve(time, processes))),
            signalled,
            killing: false,
            half: time / 2,
            code,
            again: matches!(why, Why::BeginsAnew),
        }
    }
}

/// What a shutdown is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Why {
    Asked,
    /// Another run is to follow.
    BeginsAnew,
    Signalled,
    /// There is nothing left to run for.
    Ended {
        code: i32,
    },
}
