//! One error for the whole harness: what was being done, and why it failed.

use std::{fmt, io};

pub(crate) type Result<T> = std::result::Result<T, Failure>;

#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Failure(why.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Says what was being done when a system call failed.
pub(crate) trait Doing<T> {
    fn doing(self, what: impl fmt::Display) -> Result<T>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, what: impl fmt::Display) -> Result<T> {
        self.map_err(|error| Failure(format!("{what}: {error}")))
    }
}

impl<T> Doing<T> for rustix::io::Result<T> {
    fn doing(self, what: impl fmt::Display) -> Result<T> {
        self.map_err(|error| Failure(format!("{what}: {error}")))
    }
}
