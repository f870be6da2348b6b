//! Files of the run directory, as far as their format goes.

pub(crate) use mainstay_wire::format::Format;

use mainstay_wire::format::{NUMBER, OLDEST};
use std::{io, path::Path};

/// Why this binary could not go on with what an agent has written.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    #[error("cannot read {file}: {error}")]
    Io { file: &'static str, error: io::Error },
    #[error("{file} has format {number}, this binary reads {OLDEST} to {NUMBER}")]
    Format { file: &'static str, number: u32 },
    #[error("{file} is not what this binary expects: {what}")]
    Content { file: &'static str, what: String },
}

impl Unreadable {
    pub(crate) fn content(file: &'static str, what: impl ToString) -> Unreadable {
        Unreadable::Content { file, what: what.to_string() }
    }
}

/// The bytes of a file of the run directory; `None`: it is not there.
pub(super) fn bytes(run_dir: &Path, file: &'static str) -> Result<Option<Vec<u8>>, Unreadable> {
    match std::fs::read(run_dir.join(file)) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Unreadable::Io { file, error }),
    }
}

/// That this binary can read a file of that format.
pub(super) fn check(file: &'static str, format: Format) -> Result<(), Unreadable> {
    match format.is_readable() {
        true => Ok(()),
        false => Err(Unreadable::Format { file, number: format.number }),
    }
}
