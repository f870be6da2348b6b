//! The words of service discovery: what is told to a catalogue, what is asked, what it answers.
//!
//! Plain data. `config` makes it, the machines decide with it, the crate `discovery` carries it.
//! What follows from an answer is in [`Watch`].

mod watch;

pub use crate::tls::Tls;
pub use watch::Watch;

use crate::text::{Json, Secret};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

/// Which catalogue, and how to reach it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    Consul(Consul),
    File(FileCatalogue),
}

impl Backend {
    /// Whether both lead to one catalogue, whatever the way: other tokens and certificates do not
    /// make another catalogue.
    #[must_use]
    pub fn is_same_place(&self, other: &Backend) -> bool {
        match (self, other) {
            (Backend::Consul(one), Backend::Consul(other)) => one.address == other.address,
            (Backend::File(one), Backend::File(other)) => one == other,
            (Backend::Consul(_), Backend::File(_)) | (Backend::File(_), Backend::Consul(_)) => {
                false
            }
        }
    }
}

/// The agent of a Consul cluster, usually the one on the same machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consul {
    /// `host:port`, `[ip6]:port` or `unix:/path`.
    pub address: String,
    pub https: bool,
    pub token: Option<Secret>,
    #[serde(default)]
    pub tls: Tls,
}

impl Consul {
    /// Where a Consul agent listens unless told otherwise.
    pub const ADDRESS: &str = "127.0.0.1:8500";
}

impl Default for Consul {
    fn default() -> Consul {
        Consul {
            address: Consul::ADDRESS.to_owned(),
            https: false,
            token: None,
            tls: Tls::default(),
        }
    }
}

/// A directory that the nodes of one machine share: a file for each service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileCatalogue {
    #[serde(with = "crate::text::path")]
    pub directory: PathBuf,
}

/// One service to be announced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// Unique in the catalogue of the machine.
    pub id: String,
    /// What watches ask for.
    pub service: String,
    pub address: String,
    pub port: u16,
    pub tags: Vec<String>,
    pub meta: BTreeMap<String, String>,
    /// Not heard of for so long, the service counts as critical.
    pub ttl: Duration,
    /// How often it is heard of.
    pub heartbeat: Duration,
    /// Critical for so long, the catalogue forgets the service by itself.
    pub deregister_critical_after: Option<Duration>,
    pub enable_tag_override: bool,
}

/// How well an announced service is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    Passing,
    Warning,
    Critical,
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Standing::Passing => "passing",
            Standing::Warning => "warning",
            Standing::Critical => "critical",
        })
    }
}

/// What a watch asks: which instances of a service are passing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Query {
    pub service: String,
    pub tag: Option<String>,
    /// Data centre, where the catalogue knows more than one.
    pub dc: Option<String>,
    /// The longest time between two looks.
    pub interval: Duration,
    /// The shortest time between two answers.
    pub debounce: Duration,
}

/// One answer to a watch. This JSON is handed to jobs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Instance {
    pub id: String,
    pub name: String,
    pub address: String,
    pub port: u16,
    pub tags: Vec<String>,
    pub meta: BTreeMap<String, String>,
    /// The machine, as the catalogue calls it.
    pub node: String,
}

/// The instances of a service, in order, each once.
///
/// As the JSON that jobs are handed: a list can be long, and nobody here looks into it. So it is
/// kept, compared, journaled and passed on as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InstanceList {
    count: usize,
    json: Json,
}

impl InstanceList {
    /// Takes its time with a long list: to be made outside of any loop.
    #[must_use]
    pub fn new(mut instances: Vec<Instance>) -> InstanceList {
        instances.sort();
        instances.dedup();
        let json = Json::of(&instances).expect("texts and numbers can be JSON");
        InstanceList { count: instances.len(), json }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    #[must_use]
    pub fn as_json(&self) -> &str {
        self.json.as_str()
    }
}

impl Default for InstanceList {
    fn default() -> InstanceList {
        InstanceList::new(Vec::new())
    }
}

impl FromIterator<Instance> for InstanceList {
    fn from_iter<I: IntoIterator<Item = Instance>>(instances: I) -> InstanceList {
        InstanceList::new(instances.into_iter().collect())
    }
}

impl Serialize for InstanceList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for InstanceList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<InstanceList, D::Error> {
        Vec::deserialize(deserializer).map(InstanceList::new)
    }
}
