//! What tells one run, one reign and one order from another.

use crate::name::Name;
use serde::{Deserialize, Serialize};
use std::{fmt, sync::Arc};

/// One run of a node, as its keeper names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(Arc<str>);

impl RunId {
    #[must_use]
    pub fn new(text: &str) -> RunId {
        RunId(text.into())
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The time in which one node is master. A node that begins one takes a number above all it has
/// seen; on both sides of a cut it may be the same, and then the name tells them apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Term {
    pub number: u64,
    pub master: Name,
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.number, self.master)
    }
}

/// What a master numbers: its orders, its wishes, what it says of its work.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Number {
    pub term: Term,
    pub counter: u64,
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.term, self.counter)
    }
}
