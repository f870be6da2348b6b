//! What the node says to service discovery, and what it asks.

use crate::{
    discovery::Standing,
    interface::{self, InterfaceSpec},
    name::Name,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::PathBuf, time::Duration};

/// How a job is announced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advertise {
    pub port: u16,
    /// Its name in the catalogue.
    pub service: String,
    /// `None`: the job's name and the node's.
    pub id: Option<String>,
    /// Without a heartbeat for so long it counts as failing.
    pub ttl: Duration,
    pub heartbeat: Duration,
    pub tags: Vec<String>,
    pub meta: BTreeMap<String, String>,
    /// Which address is announced: the first of these that the host has.
    pub interfaces: Vec<InterfaceSpec>,
    /// Announced with this from its start on, before any check has passed.
    pub initial_status: Option<Standing>,
    pub enable_tag_override: bool,
    /// When the catalogue removes an entry that fails.
    pub deregister_critical_after: Option<Duration>,
}

/// A question that is put again and again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchPlan {
    pub name: Name,
    pub of: Watched,
    /// The longest time between two looks.
    pub interval: Duration,
    /// The shortest time between two changes that are told.
    pub debounce: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Watched {
    Service {
        service: String,
        tag: Option<String>,
        dc: Option<String>,
    },
    /// Up while it exists, changed when its content is.
    File(#[serde(with = "crate::text::path")] PathBuf),
}

impl Advertise {
    pub const TTL: Duration = Duration::from_secs(25);
    pub const HEARTBEAT: Duration = Duration::from_secs(10);

    #[must_use]
    pub fn new(service: &str) -> Advertise {
        Advertise {
            port: 0,
            service: service.to_owned(),
            id: None,
            ttl: Advertise::TTL,
            heartbeat: Advertise::HEARTBEAT,
            tags: Vec::new(),
            meta: BTreeMap::new(),
            interfaces: interface::defaults(),
            initial_status: None,
            enable_tag_override: false,
            deregister_critical_after: None,
        }
    }
}

impl WatchPlan {
    pub const INTERVAL: Duration = Duration::from_secs(10);
    pub const DEBOUNCE: Duration = Duration::from_millis(200);
}
