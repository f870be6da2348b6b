//! What a catalogue must be able to do. One driver for each kind of backend.
//!
//! Each call is one try with a time limit of its own; trying again is the caller's part. At most one
//! call about a service and one about a watch is under way at a time.

use mainstay_core::discovery::{InstanceList, Query, Registration, Standing};
use std::{fmt::Display, future::Future};

pub(crate) trait Driver: Send + Sync + 'static {
    /// The place of one watch in the catalogue's history, kept between two looks.
    type Cursor: Send;

    /// Makes or replaces an entry.
    fn register(
        &self,
        registration: &Registration,
        standing: Standing,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Tells the standing of an entry, and thereby that whoever announced it is alive.
    fn tell(
        &self,
        registration: &Registration,
        standing: Standing,
        note: &str,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Removes an entry; well done if there is none. `service` where it is known.
    fn remove(
        &self,
        id: &str,
        service: Option<&str>,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    fn cursor(&self, query: &Query) -> Self::Cursor;

    /// All passing instances: the first time at once, then when there may be news or the query's
    /// interval is over. May be dropped at any time. There may be many: the list is made on another
    /// thread.
    fn look(
        &self,
        cursor: &mut Self::Cursor,
    ) -> impl Future<Output = Result<InstanceList, Failure>> + Send;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The catalogue has no such entry.
    Unknown,
    /// In words.
    Failed(String),
}

impl Failure {
    pub(crate) fn of(error: impl Display) -> Failure {
        Failure::Failed(error.to_string())
    }

    pub(crate) fn into_words(self) -> String {
        match self {
            Failure::Unknown => "the catalogue does not have this entry".to_owned(),
            Failure::Failed(error) => error,
        }
    }
}
