//! Which node is meant, and how to get to it.

use clap::Args;
use std::path::PathBuf;

/// A node of this machine.
#[derive(Debug, Clone, Args)]
pub(crate) struct DirArgs {
    /// The node of this configuration, a file or directory [default: MAINSTAY_CONFIG, else that of
    /// the directory we are in]
    #[arg(short, long, value_name = "FILE", conflicts_with = "run_dir")]
    pub(crate) config: Option<PathBuf>,
    /// Its run directory [default: MAINSTAY_RUN_DIR, else as for run]
    #[arg(long, value_name = "DIR")]
    pub(crate) run_dir: Option<PathBuf>,
}

/// That one, or one that is elsewhere.
#[derive(Debug, Clone, Args)]
pub(crate) struct NodeArgs {
    #[command(flatten)]
    pub(crate) dir: DirArgs,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

const ELSEWHERE: &str = "A node elsewhere";

#[derive(Debug, Clone, Args)]
pub(crate) struct RemoteArgs {
    /// Where its [api] listens, for example https://10.0.0.1:7070 [default: MAINSTAY_URL, else the
    /// node of the run directory]
    #[arg(long, value_name = "URL", help_heading = ELSEWHERE, conflicts_with_all = ["run_dir", "config"])]
    pub(crate) url: Option<String>,
    /// File with its token [default: MAINSTAY_TOKEN_FILE]
    #[arg(long, value_name = "FILE", help_heading = ELSEWHERE)]
    pub(crate) token_file: Option<PathBuf>,
    /// Certificates to trust [default: MAINSTAY_CA, else those of this machine]
    #[arg(long, value_name = "FILE", help_heading = ELSEWHERE)]
    pub(crate) ca: Option<PathBuf>,
    /// Our own certificate, with its key in --key [default: MAINSTAY_CERT]
    #[arg(long, value_name = "FILE", help_heading = ELSEWHERE)]
    pub(crate) cert: Option<PathBuf>,
    /// The key of --cert [default: MAINSTAY_KEY]
    #[arg(long, value_name = "FILE", help_heading = ELSEWHERE)]
    pub(crate) key: Option<PathBuf>,
    /// Another node of its fleet, by name: the node passes it on
    #[arg(long, value_name = "NODE", help_heading = ELSEWHERE)]
    pub(crate) on: Option<String>,
}
