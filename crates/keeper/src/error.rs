//! Why a keeper does not begin, or cannot go on.

use crate::{run::DirError, upgrade::TakeOverError};
use std::{fmt, io};

#[derive(Debug)]
pub(crate) enum KeeperError {
    Dir(DirError),
    /// What was being done.
    Failed {
        doing: String,
        error: io::Error,
    },
    /// Its disk does not answer.
    Silent {
        dir: String,
    },
    /// Another one holds a process there.
    Held {
        dir: String,
    },
    TakeOver(TakeOverError),
}

impl KeeperError {
    /// For `map_err`: what could not be done.
    pub(crate) fn doing(doing: impl Into<String>) -> impl FnOnce(io::Error) -> KeeperError {
        let doing = doing.into();
        move |error| KeeperError::Failed { doing, error }
    }
}

impl fmt::Display for KeeperError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeeperError::Dir(error) => error.fmt(f),
            KeeperError::Failed { doing, error } => write!(f, "cannot {doing}: {error}"),
            KeeperError::Silent { dir } => {
                write!(f, "cannot use {dir}: its disk does not answer; try again when it does")
            }
            KeeperError::Held { dir } => write!(f, "another mainstay holds a process in {dir}"),
            KeeperError::TakeOver(error) => error.fmt(f),
        }
    }
}

impl From<DirError> for KeeperError {
    fn from(error: DirError) -> KeeperError {
        KeeperError::Dir(error)
    }
}

impl From<TakeOverError> for KeeperError {
    fn from(error: TakeOverError) -> KeeperError {
        KeeperError::TakeOver(error)
    }
}
