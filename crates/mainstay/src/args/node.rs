//! What can be typed about the node as a whole.

use super::{DirArgs, JsonArgs, NodeArgs, any_bytes, duration};
use clap::{Args, ValueEnum, builder::TypedValueParser};
use mainstay_core::signal::Signal;
use std::{path::PathBuf, time::Duration};

#[derive(Debug, Args)]
pub(crate) struct HoldArgs {
    /// Directory of the control socket and the state file
    #[arg(long, default_value = ".")]
    pub(crate) dir: PathBuf,
    /// From SIGTERM to SIGKILL
    #[arg(long, default_value = "10s", value_parser = duration, value_name = "TIME")]
    pub(crate) stop_timeout: Duration,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND", value_parser = any_bytes())]
    pub(crate) command: Vec<String>,
}

/// What is asked of something that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HeldAction {
    /// Say what it is
    Status,
    /// Wait until it has ended, and end with its code
    Wait,
    /// Its stop signal, then SIGKILL when its time is over; no restart follows
    Stop,
    /// SIGKILL; no restart follows
    Kill,
    /// Send it a signal
    Signal,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mainstay held DIR                 up, finished, crashed, or not started yet?
  mainstay held DIR wait            until its end; ends with its code
  mainstay held DIR stop            and wait until it is down
  mainstay held DIR signal SIGHUP

DIR is that of `mainstay hold --dir DIR`, or jobs/JOB in the run directory of a node.")]
pub(crate) struct HeldArgs {
    /// Directory of the control socket and the state file
    pub(crate) dir: PathBuf,
    /// What to do
    #[arg(default_value = "status")]
    pub(crate) action: HeldAction,
    /// For `signal`: for example SIGHUP, USR1 or 15
    pub(crate) signal: Option<Signal>,
    /// Wait so long at most; 0: for ever
    #[arg(long, default_value = "0s", value_parser = duration, value_name = "TIME")]
    pub(crate) timeout: Duration,
    /// Do not wait until it has stopped
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// The process that starts it: while that lives, what is not there yet may still come
    #[arg(long, value_name = "PID")]
    pub(crate) starter: Option<u32>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    /// Directory of a node or of `hold` [default: the run directory]
    pub(crate) dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    #[command(flatten)]
    pub(crate) node: DirArgs,
}

#[derive(Debug, Args)]
#[command(
    after_help = "A node that runs is told with its state. One that is `dead` was killed, or its machine was:
`mainstay sweep --run-dir DIR` clears what is left of it, and so does its next run."
)]
pub(crate) struct PsArgs {
    /// Also those that have ended in order
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

#[derive(Debug, Args)]
pub(crate) struct MaintenanceArgs {
    pub(crate) switch: Switch,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mainstay environ                   what has been changed so far
  mainstay environ LEVEL=debug       jobs and tasks that start later have it
  mainstay environ --unset LEVEL     they have it no more, even if the node was started with it

Nothing is restarted. A job's own env wins. `mainstay reload` sees the change in ${VAR}.")]
pub(crate) struct EnvironArgs {
    /// Variables to set
    #[arg(value_name = "NAME=VALUE", value_parser = any_bytes().try_map(assignment))]
    pub(crate) set: Vec<(String, String)>,
    /// A variable to take away; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) unset: Vec<String>,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
}

#[derive(Debug, Args)]
#[command(
    after_help = "A counter adds the value, a gauge is set to it, a histogram or summary takes it in.
  mainstay metric orders_total=1 queue_length=17"
)]
pub(crate) struct MetricArgs {
    /// Whole names of metrics, and a number each
    #[arg(required = true, value_name = "NAME=VALUE", value_parser = measured)]
    pub(crate) values: Vec<(String, f64)>,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ShutdownArgs {
    /// What the fleet has placed on the node goes elsewhere first
    #[arg(long)]
    pub(crate) drain: bool,
    /// Wait until it is done; this is the default
    #[arg(long, conflicts_with = "no_wait")]
    pub(crate) wait: bool,
    /// Do not wait until it is done
    #[arg(long, conflicts_with = "timeout")]
    pub(crate) no_wait: bool,
    /// Wait so long at most
    #[arg(long, default_value = "60s", value_parser = duration, value_name = "TIME")]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct UpgradeArgs {
    /// The new binary [default: the path that the keeper was started from]
    pub(crate) binary: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    #[command(flatten)]
    pub(crate) node: DirArgs,
}

#[derive(Debug, Args)]
pub(crate) struct VersionArgs {
    #[command(flatten)]
    pub(crate) json: JsonArgs,
}

fn assignment(text: String) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => Err(format!("write {text}=VALUE, or --unset {text}")),
    }
}

fn measured(text: &str) -> Result<(String, f64), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("write {text}=NUMBER"))?;
    match value.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok((name.to_owned(), number)),
        Ok(_) | Err(_) => Err(format!("'{value}' is not a number")),
    }
}
