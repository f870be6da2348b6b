//! What can be typed about what is rolled out.

use super::{JsonArgs, NodeArgs, WaitArgs};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RolloutAction {
    /// Profiles, templates and services, what is under way and what has failed
    Status,
    /// What a refresh would change, and who would be told
    Plan,
    /// Ask the sources now, and try again what has failed
    Refresh,
    /// The versions that profiles had
    History,
    /// Apply an earlier version of a profile
    Rollback,
    /// What somebody else has edited; of a profile, what a rollback would change
    Diff,
    /// Let no update begin, over boots
    Pause,
    /// Let updates begin again
    Resume,
    /// The path units by which systemd is told where the node has no right to
    Units,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mainstay rollout plan                    look first
  mainstay rollout refresh --force         take what the source has over what somebody has edited
  mainstay rollout diff app                what a rollback of app would change
  mainstay rollout rollback app v41        the version with this label, or the beginning of its digest
  mainstay rollout units --install /etc/systemd/system

Secrets are shown by their names. `status` ends with 3 while something has failed.")]
pub(crate) struct RolloutArgs {
    /// What to look at, or to do
    #[arg(default_value = "status", hide_default_value = true)]
    pub(crate) action: RolloutAction,
    /// The profile that plan, refresh, history, rollback and diff are about [default: all, or the
    /// only one]
    #[arg(value_name = "PROFILE")]
    pub(crate) profile: Option<String>,
    /// The version that rollback and diff are about [default: the one before the applied one]
    #[arg(value_name = "VERSION")]
    pub(crate) version: Option<String>,
    /// Overwrite what somebody else has edited
    #[arg(long)]
    pub(crate) force: bool,
    /// Write the units of `units` into this directory instead of printing them
    #[arg(long, value_name = "DIR")]
    pub(crate) install: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) wait: WaitArgs,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
}
