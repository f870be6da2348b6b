//! What the holder of a catalogue sees.

use mainstay_core::discovery::{Engine, Instance, Query, Registration, Standing};
use std::{fmt, sync::Arc};
use tokio::sync::mpsc;

/// The way to one catalogue.
#[derive(Debug)]
pub struct Catalogue {}

/// What has become of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// The service is in the catalogue, with the standing that was asked for. Said again when it
    /// had been lost there and is back.
    Announced { id: String },
    /// The service is out of the catalogue; or `done` is false, the first try has failed, and it
    /// goes on in the background: then this is said again with `done` if that succeeds.
    Withdrawn { id: String, done: bool },
    /// All passing instances: the first answer, and each one that differs from the last.
    Instances { watch: String, instances: Vec<Instance> },
    /// Something does not work, and is tried again. Said when it begins, and when the error changes.
    Trouble { about: About, error: String },
    /// It works again.
    Well { about: About },
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum About {
    /// By id.
    Service(String),
    /// By the name of the watch.
    Watch(String),
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            About::Service(id) => write!(f, "service {id}"),
            About::Watch(name) => write!(f, "watch {name}"),
        }
    }
}

impl Catalogue {
    /// Opens the way. Must be called on a tokio runtime, which does the work.
    #[must_use]
    pub fn open(_engine: Engine) -> (Catalogue, mpsc::UnboundedReceiver<Report>) {
        let (_report, reports) = mpsc::unbounded_channel();
        (Catalogue {}, reports)
    }

    /// Wants a service to be there with this standing. Told at once, and from then on by heartbeats.
    pub fn announce(
        &mut self,
        _registration: Arc<Registration>,
        _standing: Standing,
        _note: String,
    ) {
    }

    /// Wants a service not to be there, whoever announced it.
    pub fn withdraw(&mut self, _id: &str) {}

    /// Wants to know the passing instances; a watch of the same name is replaced.
    pub fn watch(&mut self, _name: &str, _query: Query) {}

    pub fn unwatch(&mut self, _name: &str) {}
}
