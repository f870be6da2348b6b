//! A journal that does not say how things were.

use std::io;

/// What is wrong with a journal.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Damage {
    #[error("it is missing")]
    Missing,
    #[error("it cannot be read: {0}")]
    Unreadable(io::Error),
    #[error("it does not begin as the journal of this run")]
    Foreign,
    /// Not its tail, which is cut.
    #[error("line {line} of it is damaged")]
    Broken { line: usize },
    #[error("it ends at event {has}, and event {told} was told")]
    Behind { has: u64, told: u64 },
}

impl From<io::Error> for Damage {
    fn from(error: io::Error) -> Damage {
        match error.kind() {
            io::ErrorKind::NotFound => Damage::Missing,
            _ => Damage::Unreadable(error),
        }
    }
}
