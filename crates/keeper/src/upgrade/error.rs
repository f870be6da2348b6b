//! Why an upgrade is refused, and why a hand-over cannot be taken.

use mainstay_wire::format::{NUMBER, OLDEST};
use std::{fmt, io, path::PathBuf};

/// Why the keeper stays what it is.
#[derive(Debug)]
pub(crate) enum UpgradeRefusal {
    UnderWay,
    /// Whoever started the node still waits for it.
    NodeStarting,
    NodeStopping,
    /// No binary was named, and the one that runs cannot be found.
    NoOwnPath(io::Error),
    Binary {
        path: PathBuf,
        error: io::Error,
    },
    /// The new binary could not be started to look at the state.
    Check(io::Error),
    /// The new binary is no program.
    NoProgram {
        why: String,
    },
    /// The new binary has looked, in these words.
    CheckFailed {
        how: String,
        said: String,
    },
    /// Logs are on their way to a disk that does not take them.
    LogsHang {
        dir: PathBuf,
    },
    /// Files of the run directory are on their way to a disk that does not take them.
    RunDirHangs {
        dir: PathBuf,
    },
    /// The agent was killed and does not die.
    AgentHangs,
    Exec(io::Error),
    GaveBack {
        why: String,
    },
}

impl fmt::Display for UpgradeRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UpgradeRefusal::UnderWay => f.write_str("another upgrade is under way"),
            UpgradeRefusal::NodeStarting => {
                f.write_str("`run --detach` still waits for the node to start; try again")
            }
            UpgradeRefusal::NodeStopping => f.write_str("the node is stopping"),
            UpgradeRefusal::NoOwnPath(error) => {
                write!(f, "cannot find the binary that runs now: {error}; name one")
            }
            UpgradeRefusal::Binary { path, error } => {
                write!(f, "cannot use {} as the new binary: {error}", path.display())
            }
            UpgradeRefusal::Check(error) => write!(f, "cannot look at the new binary: {error}"),
            UpgradeRefusal::NoProgram { why } => write!(f, "the new binary is none: {why}"),
            UpgradeRefusal::CheckFailed { how, said } if said.is_empty() => {
                write!(f, "the new binary cannot take over ({how}), and says nothing about it")
            }
            UpgradeRefusal::CheckFailed { how, said } => {
                write!(f, "the new binary cannot take over ({how}): {said}")
            }
            UpgradeRefusal::LogsHang { dir } => write!(
                f,
                "logs cannot be written: the disk of {} does not answer; try again when it does",
                dir.display()
            ),
            UpgradeRefusal::RunDirHangs { dir } => {
                write!(f, "the disk of {} does not answer; try again when it does", dir.display())
            }
            UpgradeRefusal::AgentHangs => {
                f.write_str("the agent does not end: it waits for a disk that does not answer")
            }
            UpgradeRefusal::Exec(error) => write!(f, "cannot execute the new binary: {error}"),
            UpgradeRefusal::GaveBack { why } => {
                write!(f, "the new binary could not take over and gave back: {why}")
            }
        }
    }
}

/// Why what a keeper handed over cannot be read.
#[derive(Debug)]
pub enum HandoverError {
    Io(io::Error),
    /// It is something else.
    None(serde_json::Error),
    Format(u32),
    Content(serde_json::Error),
}

impl fmt::Display for HandoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandoverError::Io(error) => error.fmt(f),
            HandoverError::None(error) => write!(f, "it is not a keeper's state: {error}"),
            HandoverError::Format(number) => {
                write!(f, "its format is {number}, and this binary reads {OLDEST} to {NUMBER}")
            }
            HandoverError::Content(error) => write!(f, "its state cannot be read: {error}"),
        }
    }
}

impl std::error::Error for HandoverError {}

/// Why a fresh image does not go on as the keeper.
#[derive(Debug)]
pub enum TakeOverError {
    /// What the environment says is not what a keeper says.
    Variable(&'static str),
    /// The state, or a snapshot of it, is not there.
    Missing {
        what: &'static str,
        error: io::Error,
    },
    Handover(HandoverError),
    /// The old image has got it back, and cannot go on with it either.
    HandedBack(HandoverError),
    GoOn(io::Error),
    /// Something that was handed over is not there.
    Restore(io::Error),
    /// It could not become the old image again.
    NoWayBack {
        why: String,
        but: String,
    },
}

impl fmt::Display for TakeOverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TakeOverError::Variable(name) => write!(f, "{name} is not what a keeper writes"),
            TakeOverError::Missing { what, error } => write!(f, "{what}: {error}"),
            TakeOverError::Handover(error) => error.fmt(f),
            TakeOverError::HandedBack(error) => {
                write!(f, "cannot read what was handed back: {error}")
            }
            TakeOverError::GoOn(error) => write!(f, "cannot go on: {error}"),
            TakeOverError::Restore(error) => write!(f, "cannot take over: {error}"),
            TakeOverError::NoWayBack { why, but } => write!(f, "{why}; and {but}"),
        }
    }
}

impl std::error::Error for TakeOverError {}
