//! What an agent is started with.

use std::path::PathBuf;

#[derive(Debug, Clone)]
pub struct Options {
    pub run_dir: PathBuf,
    pub state_dir: PathBuf,
    pub source: Source,
}

/// Where the plan of a fresh run comes from.
#[derive(Debug, Clone)]
pub enum Source {
    /// A file or directory; `None`: wherever configurations are looked for.
    Config(Option<PathBuf>),
    /// One command, without a file.
    Command { command: Vec<String>, restart: Option<String> },
}
