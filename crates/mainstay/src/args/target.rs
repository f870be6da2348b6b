//! Which node is meant, and how to get to it.

use clap::Args;
use std::path::PathBuf;

/// The node that lives in a directory of this machine.
#[derive(Debug, Clone, Args)]
pub(crate) struct DirArgs {
    /// Run directory [default: MAINSTAY_RUN_DIR, else /run/mainstay as root, else
    /// $XDG_RUNTIME_DIR/mainstay, else /tmp/mainstay-UID]
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
    #[arg(long, value_name = "URL", help_heading = ELSEWHERE, conflicts_with = "run_dir")]
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
}
