//! How a process ended.

use crate::signal::Signal;
use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Exit {
    Code {
        code: i32,
    },
    Signal {
        signal: Signal,
        oom: bool,
    },
    /// It never ran: what was tried, and why it failed. `errno` decides the exit code of a run.
    Error {
        error: String,
        errno: i32,
    },
}

/// Who wanted the end, as far as the keeper knows.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Asked {
    #[default]
    None,
    Stop,
    Kill,
}

impl Exit {
    /// The code a shell would report: 128+n for a signal, 127 and 126 for what cannot be run.
    #[must_use]
    pub fn shell_code(&self) -> i32 {
        const ENOENT: i32 = 2;
        match self {
            Exit::Code { code } => *code,
            Exit::Signal { signal, .. } => 128 + signal.number(),
            Exit::Error { errno: ENOENT, .. } => 127,
            Exit::Error { .. } => 126,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code { code } => write!(f, "exit code {code}"),
            Exit::Signal { signal, oom: true } => write!(f, "killed by {signal}, out of memory"),
            Exit::Signal { signal, oom: false } => write!(f, "killed by {signal}"),
            Exit::Error { error, .. } => f.write_str(error),
        }
    }
}
