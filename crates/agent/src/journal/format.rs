//! The format of what is written for the next agent: its number, and the lowest number of a binary
//! that can read it.
//!
//! | number | lowest | what |
//! |---|---|---|
//! | 2 | (2) | all or nothing: it says no lowest number, and binaries of it read no other |
//! | 3 | 3 | the first that says what can read it |
//!
//! A new field has a default and an unknown one is passed over, so the number before stays the
//! lowest. Only what an older binary would get wrong raises it.

use serde::{Deserialize, Serialize};
use std::{io, path::Path};

/// That of this binary.
const NUMBER: u32 = 3;
/// The lowest number that can read what this binary writes.
const LOWEST: u32 = 3;
/// The lowest number that this binary can read.
const OLDEST: u32 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Format {
    #[serde(rename = "format")]
    number: u32,
    /// `None`: whoever has another number cannot read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    lowest: Option<u32>,
}

impl Format {
    pub(crate) const OURS: Format = Format { number: NUMBER, lowest: Some(LOWEST) };

    pub(crate) fn is_readable(self) -> bool {
        self.number >= OLDEST && self.lowest.unwrap_or(self.number) <= NUMBER
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_is_read_both_ways_and_what_says_otherwise_is_not() {
        let read = |text: &str| serde_json::from_str::<Format>(text).expect("JSON").is_readable();
        assert!(read(r#"{"format":2}"#), "the last that says nothing");
        assert!(!read(r#"{"format":1}"#), "too old");
        assert!(read(r#"{"format":4,"lowest":3,"more":true}"#), "newer, and readable");
        assert!(!read(r#"{"format":5,"lowest":4}"#), "newer, and not readable");
        assert!(!read(r#"{"format":9}"#), "all or nothing");
        let ours = serde_json::to_string(&Format::OURS).expect("JSON");
        assert!(read(&ours), "{ours}");
    }
}
