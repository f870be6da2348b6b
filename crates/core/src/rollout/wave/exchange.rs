//! What nodes say to each other of a profile that goes through their fleet in waves, and what the
//! rollout and the fleet machine of one node say to each other.
//!
//! ```text
//!  Rollout ──WaveReport──► Fleet ──WaveFacts──► the fleets of other nodes
//!     ▲                      │
//!     └──────WaveFeed────────┘        ProfileDelivery: the content itself, to one node
//! ```

use super::{ProfileCopy, Version, WaveFailure, WaveOffer, WaveRecord};
use crate::{
    fleet::{Number, Shared},
    name::Name,
    plan::WavePlan,
    rollout::{Content, SecretValue},
    text::bytes,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{collections::BTreeMap, fmt, sync::Arc};

/// What a node says of profiles that go in waves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WaveFacts {
    /// Those that its file has, and how each stands there.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub copies: BTreeMap<Name, ProfileCopy>,
    /// What the fleet has decided, as far as it knows.
    #[serde(skip_serializing_if = "are_none")]
    pub records: WaveRecords,
    /// It takes no version now: its rollout is paused, or it is in maintenance.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rests: bool,
}

/// The records of all profiles, by name.
pub type WaveRecords = Shared<BTreeMap<Name, WaveRecord>>;

pub(crate) fn are_none(records: &WaveRecords) -> bool {
    records.is_empty()
}

impl WaveFacts {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == WaveFacts::default()
    }
}

/// What the rollout of a node says to its fleet machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaveReport {
    pub plan: WavePlan,
    pub copies: BTreeMap<Name, ProfileCopy>,
    pub rests: bool,
    /// Versions whose content is to be on its disk, and is not.
    pub wants: BTreeMap<Name, Version>,
    /// What sources have served that this node asks.
    pub offers: BTreeMap<Name, WaveOffer>,
}

/// What the fleet serves to one node in place of the source of a profile.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct WaveFeed {
    /// Who asks the source.
    pub conductor: Option<Name>,
    /// This node does.
    pub conducts: bool,
    /// `None`: nothing yet, what it has stays.
    pub serves: Option<Version>,
    /// The attempt that the served version is a part of; `None`: it is the one before.
    pub attempt: Option<Number>,
    /// To be on its disk, though it may be served later, or never.
    pub stores: Option<Version>,
    /// A version is on its way through the fleet.
    pub under_way: bool,
    /// What the fleet has come back from, as long as nothing has followed. A version that somebody
    /// wanted back by hand is not among it: nothing is wrong without it.
    pub failed: Option<FailedVersion>,
}

/// A version that a fleet has come back from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FailedVersion {
    /// Of the record: the same version may be tried again.
    pub begun: Number,
    pub version: Version,
    pub failure: WaveFailure,
}

/// The content of a version on its way to another node. Its secrets are for that node's disk alone:
/// nothing of it is ever shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileDelivery {
    pub profile: Name,
    pub version: Version,
    content_type: String,
    #[serde(serialize_with = "write_bytes", deserialize_with = "read_bytes")]
    body: Arc<Vec<u8>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    secrets: BTreeMap<String, SecretValue>,
}

impl ProfileDelivery {
    #[must_use]
    pub fn new(profile: Name, version: Version, content: Content) -> ProfileDelivery {
        let Content { content_type, body, secrets } = content;
        ProfileDelivery { profile, version, content_type, body: Arc::new(body), secrets }
    }

    #[must_use]
    pub fn content(&self) -> Content {
        Content {
            content_type: self.content_type.clone(),
            body: Vec::clone(&self.body),
            secrets: self.secrets.clone(),
        }
    }
}

impl fmt::Debug for ProfileDelivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({} bytes of profile '{}', {})", self.body.len(), self.profile, self.version)
    }
}

/// Profiles are text, nearly always.
fn write_bytes<S: Serializer>(body: &Arc<Vec<u8>>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&bytes::to_text(body))
}

fn read_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<Vec<u8>>, D::Error> {
    Ok(Arc::new(bytes::of_text(&String::deserialize(from)?)))
}
