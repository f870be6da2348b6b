//! Why a run directory or a state directory is not one to live in.

use std::{fmt, io, path::PathBuf};

/// What is wrong with a directory.
#[derive(Debug)]
pub(crate) struct DirError {
    pub(crate) dir: PathBuf,
    pub(crate) wrong: Wrong,
}

#[derive(Debug)]
pub(crate) enum Wrong {
    ForeignLink,
    Foreign,
    /// Something is in it that a run would clear away.
    Holds(&'static str),
    OpenToAll,
    /// Another run is in it, by a keeper with this pid if that is known.
    InUse(Option<u32>),
    CannotMake(io::Error),
    CannotUse(io::Error),
    CannotWrite(io::Error),
    CannotLock(io::Error),
    /// Of a state directory.
    LogsInUse,
    StateCannotWrite(io::Error),
}

const ANOTHER: &str = "choose another with --run-dir or MAINSTAY_RUN_DIR";

impl fmt::Display for DirError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dir = self.dir.display();
        match &self.wrong {
            Wrong::ForeignLink => write!(
                f,
                "the run directory {dir} is a link that belongs to somebody else; {ANOTHER}"
            ),
            Wrong::Foreign => {
                write!(f, "the run directory {dir} belongs to somebody else; {ANOTHER}")
            }
            Wrong::Holds(found) => write!(
                f,
                "{dir} is no run directory: it holds '{found}', which no mainstay made; {ANOTHER}"
            ),
            Wrong::OpenToAll => write!(
                f,
                "everybody can write in the run directory {dir}, and so replace what is run; use chmod go-w on it, or choose another with --run-dir"
            ),
            Wrong::InUse(pid) => {
                let pid = pid.map_or_else(|| "unknown".to_owned(), |pid| pid.to_string());
                write!(
                    f,
                    "another mainstay (pid {pid}) runs in {dir}; stop it with 'mainstay shutdown --run-dir {dir}', or {ANOTHER}"
                )
            }
            Wrong::CannotMake(error) => {
                write!(f, "cannot make the run directory {dir}: {error}; {ANOTHER}")
            }
            Wrong::CannotUse(error) => write!(f, "cannot use the run directory {dir}: {error}"),
            Wrong::CannotWrite(error) => {
                write!(f, "cannot write in the run directory {dir}: {error}; {ANOTHER}")
            }
            Wrong::CannotLock(error) => write!(f, "cannot lock the run directory {dir}: {error}"),
            Wrong::LogsInUse => {
                write!(
                    f,
                    "another mainstay keeps its logs in {dir}; choose another with --state-dir"
                )
            }
            Wrong::StateCannotWrite(error) => {
                write!(f, "cannot write in the state directory {dir}: {error}")
            }
        }
    }
}
