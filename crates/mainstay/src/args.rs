//! What can be typed.

use clap::{Args, Parser, Subcommand};
use mainstay_core::{plan::Reach, signal::Signal};
use std::{path::PathBuf, time::Duration};

/// Keeps processes running.
#[derive(Debug, Parser)]
#[command(name = "mainstay", version, disable_help_subcommand = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the jobs of a configuration, or one command, until they end or the node is shut down
    Run(RunArgs),
    /// Hold one command behind a control socket, without an agent
    Hold(HoldArgs),
    /// Show the node and its jobs
    Status(StatusArgs),
    /// Start jobs
    Start(ControlArgs),
    /// Stop jobs: their stop signal, then SIGKILL when their time is over
    Stop(ControlArgs),
    /// Stop jobs and start them again
    Restart(ControlArgs),
    /// Kill jobs without grace
    Kill(ControlArgs),
    /// Send a signal to jobs
    Signal(SignalArgs),
    /// Show what jobs have written
    Logs(LogsArgs),
    /// Show what has happened
    Events(EventsArgs),
    /// Stop all jobs and end the run
    Shutdown(ShutdownArgs),
    /// Check a configuration
    Check(CheckArgs),
    /// Replace the running keeper and agent by another binary; the jobs go on
    Upgrade(UpgradeArgs),
    /// Show the version
    Version(VersionArgs),
    #[command(name = "__agent", hide = true)]
    Agent(RunArgs),
    #[command(name = "__check", hide = true)]
    CheckHandover(NodeArgs),
}

/// Which node is meant.
#[derive(Debug, Clone, Args)]
pub(crate) struct NodeArgs {
    /// Run directory [default: MAINSTAY_RUN_DIR, else /run/mainstay as root, else
    /// $XDG_RUNTIME_DIR/mainstay, else /tmp/mainstay-UID]
    #[arg(long, value_name = "DIR")]
    pub(crate) run_dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct JsonArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Configuration file or directory [default: MAINSTAY_CONFIG, else ./mainstay.toml, else
    /// /etc/mainstay/]
    #[arg(short, long, value_name = "FILE", conflicts_with = "command")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
    /// State directory, with the logs [default: MAINSTAY_STATE_DIR, else /var/lib/mainstay as root,
    /// else $XDG_STATE_HOME/mainstay]
    #[arg(long, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
    /// When to restart COMMAND: never, on-failure or always [default: never]
    #[arg(long, value_name = "RULE", requires = "command")]
    pub(crate) restart: Option<String>,
    /// One command to run instead of a configuration
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct HoldArgs {
    /// Directory of the control socket and the state file
    #[arg(long, default_value = ".")]
    pub(crate) dir: PathBuf,
    /// From SIGTERM to SIGKILL
    #[arg(long, default_value = "10s", value_parser = duration, value_name = "TIME")]
    pub(crate) stop_timeout: Duration,
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Only this job
    pub(crate) job: Option<String>,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ControlArgs {
    #[arg(required = true, value_name = "JOB")]
    pub(crate) jobs: Vec<String>,
    /// Do not wait until it is done
    #[arg(long, conflicts_with = "timeout")]
    pub(crate) no_wait: bool,
    /// Wait so long at most
    #[arg(long, default_value = "30s", value_parser = duration, value_name = "TIME")]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SignalArgs {
    /// For example SIGHUP, USR1 or 15
    pub(crate) signal: Signal,
    #[arg(required = true, value_name = "JOB")]
    pub(crate) jobs: Vec<String>,
    /// Whom it reaches: leader, group or tree
    #[arg(long, default_value = "leader", value_parser = reach)]
    pub(crate) to: Reach,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// All jobs if none is named; `mainstay` is Mainstay's own log
    #[arg(value_name = "JOB")]
    pub(crate) jobs: Vec<String>,
    /// Go on with what is written from now on
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// The last so many lines of each job, or `all`
    #[arg(short = 'n', long, default_value = "100", value_parser = lines)]
    pub(crate) lines: Lines,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
    /// State directory [default: that of the node in the run directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lines {
    All,
    Last(usize),
}

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// Go on with what happens from now on
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Begin after the event with this number [default: all that are kept; with -f: now]
    #[arg(long, value_name = "SEQ")]
    pub(crate) since: Option<u64>,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ShutdownArgs {
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
pub(crate) struct CheckArgs {
    /// Configuration file or directory [default: as for run]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct UpgradeArgs {
    /// The new binary [default: the path that the keeper was started from]
    pub(crate) binary: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct VersionArgs {
    #[command(flatten)]
    pub(crate) json: JsonArgs,
}

fn reach(text: &str) -> Result<Reach, String> {
    match text {
        "leader" => Ok(Reach::Leader),
        "group" => Ok(Reach::Group),
        "tree" => Ok(Reach::Tree),
        _ => Err("use leader, group or tree".to_owned()),
    }
}

fn lines(text: &str) -> Result<Lines, String> {
    match text {
        "all" => Ok(Lines::All),
        _ => text.parse().map(Lines::Last).map_err(|_| "use a number or `all`".to_owned()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    mainstay_config::duration(text)
}
