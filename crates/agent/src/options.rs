//! What an agent is started with.

use mainstay_config::Context;
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

/// What a configuration may refer to: this process's host name and environment.
#[must_use]
pub fn context() -> Context {
    let text = |value: std::ffi::OsString| value.to_string_lossy().into_owned();
    Context {
        host_name: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        env: std::env::vars_os().map(|(key, value)| (text(key), text(value))).collect(),
    }
}
