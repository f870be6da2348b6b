//! What can be typed.

mod config;

pub(crate) use config::{
    CheckArgs, CompletionsArgs, ImportArgs, ManArgs, PlanArgs, ReloadArgs, RunArgs, SchemaArgs,
};

use clap::{Args, Parser, Subcommand, ValueEnum};
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
    Enable(JobsArgs),
    /// Stop jobs and keep them from being started, over runs of the node as well
    Disable(JobsArgs),
    /// Start, stop or restart an app: its jobs, in order
    App(AppArgs),
    /// Show what a reload would change
    Plan(PlanArgs),
    /// Bring the configuration into force as it is written now; or let jobs reload
    Reload(ReloadArgs),
    /// Enter or leave maintenance: jobs that wait for it are told, processes and checks go on
    Maintenance(MaintenanceArgs),
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

#[derive(Debug, Args)]
#[command(after_help = "Exits with 3 if some job is not as it should be, so scripts can ask, too:
  mainstay status web > /dev/null && echo fine")]
pub(crate) struct StatusArgs {
    /// Only this job
    pub(crate) job: Option<String>,
    /// Every job, also when the terminal is not high enough [default: then those that need a look]
    #[arg(long, conflicts_with_all = ["failed", "job"])]
    pub(crate) all: bool,
    /// Only jobs that are not as they should be
    #[arg(long, conflicts_with = "job")]
    pub(crate) failed: bool,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// The job to explain
    pub(crate) job: String,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct WaitArgs {
    /// Do not wait until it is done
    #[arg(long, conflicts_with = "timeout")]
    pub(crate) no_wait: bool,
    /// Wait so long at most
    #[arg(long, default_value = "30s", value_parser = duration, value_name = "TIME")]
    pub(crate) timeout: Duration,
}

impl WaitArgs {
    pub(crate) fn patience(&self) -> Duration {
        if self.no_wait { Duration::ZERO } else { self.timeout }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mainstay start web                waits for what web's `when` asks for
  mainstay start web --now          does not
  mainstay start web -- --verbose   with more arguments, for as long as it is wanted")]
pub(crate) struct StartArgs {
    #[command(flatten)]
    pub(crate) control: ControlArgs,
    /// Do not wait for what its `when` asks for
    #[arg(long)]
    pub(crate) now: bool,
    /// Added to the command of the job
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) args: Option<Vec<String>>,
}

#[derive(Debug, Args)]
pub(crate) struct RestartArgs {
    #[command(flatten)]
    pub(crate) control: ControlArgs,
    /// Added to the command of the job, in place of those it was started with
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) args: Option<Vec<String>>,
}

#[derive(Debug, Args)]
pub(crate) struct JobsArgs {
    /// Names of jobs, as in the configuration
    #[arg(required = true, value_name = "JOB")]
    pub(crate) jobs: Vec<String>,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Deed {
    Start,
    Stop,
    Restart,
}

impl Deed {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Deed::Start => "start",
            Deed::Stop => "stop",
            Deed::Restart => "restart",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct AppArgs {
    /// What to do with it
    pub(crate) deed: Deed,
    /// Name of the app, as in the configuration
    #[arg(value_name = "APP")]
    pub(crate) app: String,
    #[command(flatten)]
    pub(crate) wait: WaitArgs,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
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
pub(crate) struct ControlArgs {
    /// Names of jobs, as in the configuration
    #[arg(required = true, value_name = "JOB")]
    pub(crate) jobs: Vec<String>,
    #[command(flatten)]
    pub(crate) wait: WaitArgs,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SignalArgs {
    /// For example SIGHUP, USR1 or 15
    pub(crate) signal: Signal,
    /// Names of jobs, as in the configuration
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
#[command(after_help = "Examples:
  mainstay logs -f                  everything, as it comes
  mainstay logs web db -n 20        the last lines of two jobs, in the order of their times
  mainstay logs web --since 10m     what was written in the last ten minutes

Reads the files directly: it works while no agent and no keeper runs.")]
pub(crate) struct LogsArgs {
    /// All jobs if none is named; `mainstay` is Mainstay's own log
    #[arg(value_name = "JOB")]
    pub(crate) jobs: Vec<String>,
    /// Go on with what is written from now on
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// The last so many lines of each job, or `all` [default: 100; with --since: all]
    #[arg(short = 'n', long, value_parser = lines)]
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

fn since(text: &str) -> Result<jiff::Timestamp, String> {
    let unknown = || format!("'{text}' is neither an age (10m) nor a time (2026-01-31T10:00:00Z)");
    match mainstay_config::duration(text) {
        Ok(age) => jiff::Timestamp::now().checked_sub(age).map_err(|_| unknown()),
        Err(_) => text.parse().map_err(|_| unknown()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    mainstay_config::duration(text)
}
