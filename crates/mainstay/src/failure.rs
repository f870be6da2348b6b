//! How a command fails: a text for people and an exit code for scripts.

use crate::term;
use std::fmt::Display;

pub(crate) const FAILED: i32 = 1;
pub(crate) const USAGE: i32 = 2;
/// `status`: some job is not in its desired state.
pub(crate) const NOT_AS_DESIRED: i32 = 3;
/// `import`: what came out is not in all as it was.
pub(crate) const DIFFERS: i32 = 3;
/// No agent answers at the socket.
pub(crate) const NO_AGENT: i32 = 4;
pub(crate) const CONFIG: i32 = 78;

#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: i32,
    text: String,
}

impl Failure {
    pub(crate) fn new(code: i32, text: impl Into<String>) -> Failure {
        Failure { code, text: text.into() }
    }

    /// It was tried and failed.
    pub(crate) fn failed(text: impl Into<String>) -> Failure {
        Failure::new(FAILED, text)
    }

    /// `what` was being done when `error` came up.
    pub(crate) fn of(what: impl Display, error: impl Display) -> Failure {
        Failure::failed(format!("{what}: {error}"))
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn tell(&self) {
        term::tell(&self.text);
    }
}
