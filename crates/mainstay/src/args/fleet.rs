//! What can be typed about a fleet.

use super::{JsonArgs, NodeArgs};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FleetAction {
    /// The fleet, its nodes, apps and placed jobs, as this node sees them
    Status,
    /// Its nodes
    Nodes,
    /// Let nothing be placed on a node any more, over boots; what runs there goes elsewhere
    Drain,
    /// Let jobs be placed on a node again
    Undrain,
    /// Let a node take part again that was isolated
    Readmit,
    /// Stop all apps in order, then end every node
    Shutdown,
    /// Stop all apps in order, then have every node begin a new run in its place
    Restart,
    /// Make the key of a fleet, for all of its nodes
    Key,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mainstay fleet key --out fleet.key   makes a key; give every node a copy of the file
  mainstay fleet drain web-2           what runs there goes elsewhere")]
pub(crate) struct FleetArgs {
    /// What to look at, or to do
    pub(crate) action: FleetAction,
    /// The node that drain, undrain and readmit are about
    #[arg(value_name = "NODE")]
    pub(crate) of: Option<String>,
    /// Where a new key goes, for its owner alone [default: it is printed]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Replace a key that is there already
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ConflictsArgs {
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rule {
    /// The youngest copy stays
    Senicide,
    /// The oldest copy stays
    Infanticide,
    /// All are stopped
    Stop,
    /// All are stopped, then one is started
    Restart,
    /// All are stopped, as if they had been lost with their nodes
    RunningFailure,
}

#[derive(Debug, Args)]
pub(crate) struct ConciliateArgs {
    /// What becomes of the copies
    pub(crate) rule: Rule,
    /// Name of a job; default: all that are in conflict
    #[arg(value_name = "JOB")]
    pub(crate) job: Option<String>,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
}
