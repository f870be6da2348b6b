//! What can be typed about jobs and apps.

use super::{JsonArgs, NodeArgs, any_bytes, duration};
use clap::{Args, ValueEnum};
use mainstay_config::since;
use mainstay_core::{plan::SignalTarget, signal::Signal};
use mainstay_wire::logs::Lines;
use std::{path::PathBuf, time::Duration};

#[derive(Debug, Args)]
#[command(after_help = "Exits with 3 if some job is not as it should be, so scripts can ask, too:
  mainstay status web > /dev/null && echo fine")]
pub(crate) struct StatusArgs {
    /// Only this job, or the instances of it
    pub(crate) job: Option<String>,
    /// Every job, also when the terminal is not high enough [default: then those that need a look]
    #[arg(long, conflicts_with_all = ["failed", "job"])]
    pub(crate) all: bool,
    /// Only jobs that are not as they should be
    #[arg(long, conflicts_with = "job")]
    pub(crate) failed: bool,
    /// The job as it is on this node, wherever its fleet has it
    #[arg(long, requires = "job")]
    pub(crate) here: bool,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// The job to explain; or profile.NAME, template.NAME or service.NAME of what is rolled out
    pub(crate) job: String,
    /// As it is on this node, wherever its fleet has it
    #[arg(long)]
    pub(crate) here: bool,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct WaitArgs {
    /// Wait until it is done; this is the default
    #[arg(long, conflicts_with = "no_wait")]
    wait: bool,
    /// Do not wait until it is done
    #[arg(long, conflicts_with = "timeout")]
    no_wait: bool,
    /// Wait so long at most
    #[arg(long, default_value = "30s", value_parser = duration, value_name = "TIME")]
    timeout: Duration,
}

impl WaitArgs {
    pub(crate) fn patience(&self) -> Duration {
        if self.no_wait { Duration::ZERO } else { self.timeout }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ControlArgs {
    /// On this node alone, whatever its fleet says
    #[arg(long)]
    pub(crate) here: bool,
    /// Names of jobs, as in the configuration; one with `instances` stands for all of them
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
    #[arg(last = true, value_name = "ARGS", value_parser = any_bytes())]
    pub(crate) args: Option<Vec<String>>,
}

#[derive(Debug, Args)]
pub(crate) struct RestartArgs {
    #[command(flatten)]
    pub(crate) control: ControlArgs,
    /// Added to the command of the job, in place of those it was started with
    #[arg(last = true, value_name = "ARGS", value_parser = any_bytes())]
    pub(crate) args: Option<Vec<String>>,
}

#[derive(Debug, Args)]
pub(crate) struct SignalArgs {
    /// For example SIGHUP, USR1 or 15
    pub(crate) signal: Signal,
    /// Names of jobs, as in the configuration
    #[arg(required = true, value_name = "JOB")]
    pub(crate) jobs: Vec<String>,
    /// Whom it reaches: leader, group or tree
    #[arg(long, default_value = "leader", value_parser = signal_target)]
    pub(crate) to: SignalTarget,
    /// On this node alone, whatever its fleet says
    #[arg(long)]
    pub(crate) here: bool,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AppAction {
    /// The apps, and how they are
    List,
    /// The jobs of an app
    Status,
    Start,
    Stop,
    Restart,
    /// Stop the jobs of an app, or one placed job, where they run, and start them on another node
    Move,
}

#[derive(Debug, Args)]
pub(crate) struct AppArgs {
    /// What to do with it
    pub(crate) action: AppAction,
    /// Name of the app, as in the configuration; a job can be moved as well
    #[arg(value_name = "APP")]
    pub(crate) app: Option<String>,
    /// Only show what a start would do: where each job would go, and why not
    #[arg(long)]
    pub(crate) plan: bool,
    /// Restart so many jobs at a time, each healthy before the next; one that fails stops it
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) wave: Option<u32>,
    /// The node to move to
    #[arg(long, value_name = "NODE")]
    pub(crate) to: Option<String>,
    /// On this node alone, whatever its fleet says
    #[arg(long)]
    pub(crate) here: bool,
    #[command(flatten)]
    pub(crate) wait: WaitArgs,
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
  mainstay logs --all               also of jobs that are no longer in the configuration

Reads the files directly: it works while no agent and no keeper runs. With --url or --on the node
reads them. A job that the fleet places has written on the node where it runs: that one reads.")]
pub(crate) struct LogsArgs {
    /// All jobs of the configuration if none is named; one with `instances` stands for all of them; `mainstay` is
    /// Mainstay's own log
    #[arg(value_name = "JOB")]
    pub(crate) jobs: Vec<String>,
    /// Every job that has ever written, also in earlier configurations
    #[arg(long, conflicts_with = "jobs")]
    pub(crate) all: bool,
    /// What was written on this node, wherever the fleet has the job
    #[arg(long)]
    pub(crate) here: bool,
    /// Go on with what is written from now on
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// The last so many lines of each job, or `all` [default: 100; with --since: all]
    #[arg(short = 'n', long, value_parser = str::parse::<Lines>)]
    pub(crate) lines: Option<Lines>,
    /// Only what is younger: an age (10m, 2h) or a time (2026-01-31T10:00:00Z)
    #[arg(long, value_name = "TIME", value_parser = since)]
    pub(crate) since: Option<i64>,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
    /// State directory [default: that of the node in the run directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mainstay events web               what happened to web, on the node where it runs
  mainstay events --fleet -f        what happens on all nodes of the fleet")]
pub(crate) struct EventsArgs {
    /// Only what is about this job, or the instances of it
    pub(crate) job: Option<String>,
    /// Of all nodes of the fleet
    #[arg(long, conflicts_with_all = ["here", "since"])]
    pub(crate) fleet: bool,
    /// Of this node, wherever the fleet has the job
    #[arg(long)]
    pub(crate) here: bool,
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

fn signal_target(text: &str) -> Result<SignalTarget, String> {
    match text {
        "leader" => Ok(SignalTarget::Leader),
        "group" => Ok(SignalTarget::Group),
        "tree" => Ok(SignalTarget::Tree),
        _ => Err("use leader, group or tree".to_owned()),
    }
}
