//! What can be typed.

mod config;
mod jobs;
mod node;

pub(crate) use config::{
    CheckArgs, CompletionsArgs, ImportArgs, ManArgs, PlanArgs, ReloadArgs, RunArgs, SchemaArgs,
};

pub(crate) use jobs::{
    AppArgs, ControlArgs, RestartArgs, SignalArgs, StartArgs, StatusArgs, WaitArgs, WhyArgs,
};
pub(crate) use node::{DirArgs, NodeArgs, RemoteArgs};

use clap::{Args, Parser, Subcommand, ValueEnum};
use mainstay_api::logs::{Lines, since};
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
    /// Why is a job as it is? What it waits for, and whether that can come
    Why(WhyArgs),
    /// Start jobs
    Start(StartArgs),
    /// Stop jobs: their stop signal, then SIGKILL when their time is over
    Stop(ControlArgs),
    /// Stop jobs and start them again
    Restart(RestartArgs),
    /// Kill jobs without grace
    Kill(ControlArgs),
    /// Send a signal to jobs
    Signal(SignalArgs),
    /// Let jobs be started again
    Enable(ControlArgs),
    /// Stop jobs and keep them from being started, over runs of the node as well
    Disable(ControlArgs),
    /// Start, stop or restart an app: its jobs, in order
    App(AppArgs),
    /// Show what a reload would change
    Plan(PlanArgs),
    /// Bring the configuration into force as it is written now; or let jobs reload
    Reload(ReloadArgs),
    /// Enter or leave maintenance: jobs that wait for it are told, processes and checks go on
    Maintenance(MaintenanceArgs),
    /// Show or change variables for whatever is started from now on
    Environ(EnvironArgs),
    /// Feed metrics that [telemetry] declares
    Metric(MetricArgs),
    /// Show what jobs have written
    Logs(LogsArgs),
    /// Show what has happened
    Events(EventsArgs),
    /// Stop all jobs and end the run
    Shutdown(ShutdownArgs),
    /// Check a configuration
    Check(CheckArgs),
    /// Print the configuration that does what a file of another supervisor says
    Import(ImportArgs),
    /// Print the JSON schema of configurations, for editors
    Schema(SchemaArgs),
    /// Replace the running keeper and agent by another binary; the jobs go on
    Upgrade(UpgradeArgs),
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Print the manual page
    Man(ManArgs),
    /// Show the version
    Version(VersionArgs),
    #[command(name = "__agent", hide = true)]
    Agent(RunArgs),
    #[command(name = "__check", hide = true)]
    CheckHandover(DirArgs),
    /// Stands for a job that is only announced
    #[command(name = "__pause", hide = true)]
    Pause,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct JsonArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct HoldArgs {
    /// Directory of the control socket and the state file
    #[arg(long, default_value = ".")]
    pub(crate) dir: PathBuf,
    /// From SIGTERM to SIGKILL
    #[arg(long, default_value = "10s", value_parser = duration, value_name = "TIME")]
    pub(crate) stop_timeout: Duration,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
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
    #[arg(value_name = "NAME=VALUE", value_parser = assignment)]
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
#[command(after_help = "Examples:
  mainstay logs -f                  everything, as it comes
  mainstay logs web db -n 20        the last lines of two jobs, in the order of their times
  mainstay logs web --since 10m     what was written in the last ten minutes

Reads the files directly: it works while no agent and no keeper runs. With --url the node reads
them.")]
pub(crate) struct LogsArgs {
    /// All jobs if none is named; one with `instances` stands for all of them; `mainstay` is
    /// Mainstay's own log
    #[arg(value_name = "JOB")]
    pub(crate) jobs: Vec<String>,
    /// Go on with what is written from now on
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// The last so many lines of each job, or `all` [default: 100; with --since: all]
    #[arg(short = 'n', long, value_parser = str::parse::<Lines>)]
    pub(crate) lines: Option<Lines>,
    /// Only what is younger: an age (10m, 2h) or a time (2026-01-31T10:00:00Z)
    #[arg(long, value_name = "TIME", value_parser = since)]
    pub(crate) since: Option<jiff::Timestamp>,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
    /// State directory [default: that of the node in the run directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
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

fn assignment(text: &str) -> Result<(String, String), String> {
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

fn duration(text: &str) -> Result<Duration, String> {
    mainstay_config::duration(text)
}
