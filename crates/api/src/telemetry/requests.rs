//! Counts of answered requests to telemetry and to ContainerPilot's socket.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// An answered request: where it was made to, and what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Request {
    /// One of a few words.
    pub(crate) path: &'static str,
    pub(crate) code: u16,
}

impl Request {
    pub(crate) fn is_v3(&self) -> bool {
        self.path.starts_with("/v3/")
    }
}

/// Counts of answered requests.
#[derive(Debug, Default)]
pub(crate) struct Requests(Mutex<BTreeMap<Request, u64>>);

impl Requests {
    pub(crate) fn note(&self, path: &'static str, code: u16) {
        *self.lock().entry(Request { path, code }).or_default() += 1;
    }

    pub(crate) fn all(&self) -> Vec<(Request, u64)> {
        self.lock().iter().map(|(request, count)| (*request, *count)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Request, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
