//! What a rollout wants done. Nothing of it decides: who carries it out reports what came of it, as
//! the [`RolloutInput`](super::RolloutInput) that is named, with the same [`Op`].
//!
//! ```text
//!  Load ─► Store ─► Stage ─► Check … ─► (record) ─► Switch ─► per service: Inspect, Tell, Probe …
//!                                          │                        │ a failure, recorded first
//!                                          └──────── Restore ◄──────┘
//! ```
//!
//! The record is no command: it is a part of [`RolloutKept`](super::RolloutKept), which has to be on
//! the disk before any command of the step that changed it is carried out. Everything may be said
//! twice, with another `Op`: by an agent that takes over.

use super::{Content, Digest, Version};
use crate::{clock::Mono, name::Name, signal::Signal};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

/// Names something that was asked for: an answer with another number comes too late.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Op(pub u64);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RolloutCommand {
    /// Ask the source of a profile, with what its content refers to. Answered by `Loaded`.
    Load {
        op: Op,
        profile: Name,
        /// As if for the first time: whatever the source serves comes back whole, also if it is
        /// what was served before.
        fresh: bool,
    },
    /// Keep the content of a version, private and fsync'ed, beside that of others. Answered by
    /// `Stored`.
    Store { op: Op, profile: Name, version: Version, content: Arc<Content> },
    /// Render templates, compare them with what is in place, and stage those that differ beside
    /// their destinations, fsync'ed, 0600; copies of what they replace are kept, fsync'ed. Nothing
    /// that can be seen has changed. Answered by `Staged`.
    Stage { op: Op, set: StageSet },
    /// Run the `check` of a template on its staged file. Answered by `Checked`.
    Check { op: Op, template: Name, staged: PathBuf },
    /// Put the staged files in place of the others; one that is in place already is left. Answered
    /// by `Switched`.
    Switch { op: Op, files: Arc<[StagedFile]> },
    /// Put back what was there before; what somebody else has put there since is set aside.
    /// Answered by `Restored`.
    Restore { op: Op, files: Arc<[StagedFile]> },
    /// How a service is. Answered by `Inspected`.
    Inspect { op: Op, service: Name },
    /// Tell a service, and find out what came of it, at the latest at `deadline`. Answered by
    /// `Told`.
    Tell { op: Op, service: Name, action: ServiceAction, deadline: Mono },
    /// Ask one of the checks of a service once, at the latest at `deadline`. Answered by `Probed`.
    Probe { op: Op, service: Name, check: usize, target: ProbeTarget, deadline: Mono },
    /// Run `on_failure`. Answered by `HookDone`.
    RunHook { op: Op, failure: FailureReport },
    /// Publish the metric: whether something has failed. Nobody waits for what comes of it.
    Publish { failing: bool },
    /// Tell people something of a service that its update does not fail of. Nobody waits for it.
    Note { service: Name, note: String },
    /// What was stored, staged and copied can go, all but this. Said whenever less is needed, and
    /// at the first input: what an agent before has staged without a record goes, too.
    Retain { versions: BTreeMap<Name, Vec<Version>>, files: Arc<[StagedFile]> },
    /// systemd may be told that the node is ready.
    Ready,
    /// The node ends with exit code 1.
    Exit,
}

/// What is rendered, and from what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageSet {
    pub templates: Vec<StageTemplate>,
    /// The version of each profile that they may use. Its content was stored.
    pub profiles: BTreeMap<Name, Version>,
    /// Overwrite what somebody else has edited.
    pub force: bool,
    /// The set of an update that was cut off: what it has replaced stays, as that is what this one
    /// goes back to.
    pub open: Arc<[StagedFile]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageTemplate {
    pub template: Name,
    /// Of what we have put there last. A destination that exists and has neither this nor the new
    /// content was edited by somebody else. `None`: whatever is there is the version before the
    /// first.
    pub expected: Option<Digest>,
}

/// A destination whose content changes, and all that is needed to change it or to bring it back.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StagedFile {
    pub template: Name,
    #[serde(with = "crate::text::path")]
    pub destination: PathBuf,
    /// Where the new content is until it is switched: beside the destination.
    #[serde(with = "crate::text::path")]
    pub staged: PathBuf,
    /// Of the new content.
    pub new: Digest,
    /// What was there; `None`: nothing.
    pub old: Option<OldFile>,
    /// Of what an update that was cut off has put in place and nobody has confirmed: that may be
    /// there as well, and is nobody's edit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unconfirmed: Option<Digest>,
}

/// What a destination was before.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OldFile {
    pub digest: Digest,
    /// Where a copy of it is, with its mode and owner.
    #[serde(with = "crate::text::path")]
    pub copy: PathBuf,
}

/// What a service is told.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ServiceAction {
    /// Done when the manager says so. Never starts what does not run. Of a job: its own `reload`,
    /// else a restart; done when the command has ended well, or the new process is healthy.
    ReloadOrRestart,
    Signal(Signal),
    /// The command of its `reload`.
    Exec,
    /// Start it again: it has died of an update that is taken back. Done when it runs, of a job when
    /// it is healthy.
    BringUp,
    /// Of flip-flop. Done when it is active.
    Start(InstanceNumber),
    /// Of flip-flop. Done when it is gone.
    Stop(InstanceNumber),
}

/// `@1` or `@2` of a flip-flop service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum InstanceNumber {
    One,
    Two,
}

/// What a check is asked about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ProbeTarget {
    /// The service, as it is now.
    Service,
    /// Of flip-flop: the instance that was started, and the one that it takes over from.
    Instances { new: InstanceNumber, old: Option<InstanceNumber> },
}

/// What `on_failure` is told.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FailureReport {
    /// Never given twice. A hook that may have run before runs again with the same.
    pub number: u64,
    /// `None`: no profile is to blame, but the configuration itself.
    #[serde(default)]
    pub profile: Option<Name>,
    #[serde(default)]
    pub version: Option<Version>,
    /// For people.
    pub failure: String,
}

impl InstanceNumber {
    #[must_use]
    pub fn other(self) -> InstanceNumber {
        match self {
            InstanceNumber::One => InstanceNumber::Two,
            InstanceNumber::Two => InstanceNumber::One,
        }
    }

    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            InstanceNumber::One => 1,
            InstanceNumber::Two => 2,
        }
    }
}
