//! Why a run directory or a state directory is not one to live in.

use std::{fmt, io, path::PathBuf};

/// What is wrong with a directory.
#[derive(Debug)]
pub(crate) struct DirError {
    pub(crate) dir: PathBuf,
    pub(crate) role: DirRole,
    pub(crate) wrong: Wrong,
}

/// What a directory is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DirRole {
    Run,
    State,
}

#[derive(Debug)]
pub(crate) enum Wrong {
    ForeignLink,
    /// It belongs to this user; `inside`: we can make a directory in it.
    Foreign {
        uid: u32,
        inside: bool,
    },
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
}

impl DirRole {
    /// How it is made.
    pub(crate) fn mode(self) -> u32 {
        match self {
            DirRole::Run => 0o711,
            DirRole::State => 0o750,
        }
    }

    fn word(self) -> &'static str {
        match self {
            DirRole::Run => "run directory",
            DirRole::State => "state directory",
        }
    }

    fn flag(self) -> &'static str {
        match self {
            DirRole::Run => "--run-dir",
            DirRole::State => "--state-dir",
        }
    }

    fn another(self) -> &'static str {
        match self {
            DirRole::Run => "choose another with --run-dir or MAINSTAY_RUN_DIR",
            DirRole::State => "choose another with --state-dir or MAINSTAY_STATE_DIR",
        }
    }
}

impl fmt::Display for DirError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (dir, role) = (self.dir.display(), self.role);
        let (what, another, flag) = (role.word(), role.another(), role.flag());
        // A directory of our own in it, closed to others, is as good as any.
        let inside = self.dir.join("mainstay");
        let inside = inside.display();
        match &self.wrong {
            Wrong::ForeignLink => {
                write!(f, "the {what} {dir} is a link that belongs to somebody else; {another}")
            }
            Wrong::Foreign { uid, inside: true } => write!(
                f,
                "the {what} {dir} belongs to somebody else (user {uid}); a directory in it would do: {flag} {inside}"
            ),
            Wrong::Foreign { uid, inside: false } => {
                write!(f, "the {what} {dir} belongs to somebody else (user {uid}); {another}")
            }
            Wrong::Holds(found) => write!(
                f,
                "{dir} is no run directory: it holds '{found}', which no mainstay made; a directory in it would do: {flag} {inside}"
            ),
            Wrong::OpenToAll => write!(
                f,
                "the {what} {dir} serves others too, who could replace what is run; a directory in it would do: {flag} {inside}"
            ),
            Wrong::InUse(pid) => {
                let pid = pid.map_or_else(|| "unknown".to_owned(), |pid| pid.to_string());
                write!(
                    f,
                    "another mainstay (pid {pid}) runs in {dir}; stop it with 'mainstay shutdown --run-dir {dir}', or {another}"
                )
            }
            Wrong::CannotMake(error) => {
                write!(f, "cannot make the {what} {dir}: {error}; {another}")
            }
            Wrong::CannotUse(error) => write!(f, "cannot use the {what} {dir}: {error}"),
            Wrong::CannotWrite(error) => {
                write!(f, "cannot write in the {what} {dir}: {error}; {another}")
            }
            Wrong::CannotLock(error) => write!(f, "cannot lock the {what} {dir}: {error}"),
            Wrong::LogsInUse => {
                write!(f, "another mainstay keeps its logs in {dir}; {another}")
            }
        }
    }
}
