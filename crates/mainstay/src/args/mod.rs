//! What can be typed.

mod config;
mod fleet;
mod jobs;
mod node;
mod rollout;
mod target;

pub(crate) use config::{
    CheckArgs, CompletionsArgs, ImportArgs, ManArgs, PlanArgs, ReloadArgs, RunArgs, RunCommandArgs,
    SchemaArgs,
};
pub(crate) use fleet::{ConciliateArgs, ConflictsArgs, FleetAction, FleetArgs, Rule};
pub(crate) use jobs::{
    AppAction, AppArgs, ControlArgs, EventsArgs, LogsArgs, RestartArgs, SignalArgs, StartArgs,
    StatusArgs, WaitArgs, WhyArgs,
};
pub(crate) use node::{
    EnvironArgs, HeldAction, HeldArgs, HoldArgs, MaintenanceArgs, MetricArgs, PsArgs, ShutdownArgs,
    SweepArgs, Switch, UpgradeArgs, VersionArgs,
};
pub(crate) use rollout::{RolloutAction, RolloutArgs};
pub(crate) use target::{DirArgs, NodeArgs, RemoteArgs};

use clap::{
    Args, Parser, Subcommand, ValueEnum,
    builder::{OsStringValueParser, TypedValueParser},
};
use mainstay_core::text::bytes;
use std::time::Duration;

/// Keeps processes running.
#[derive(Debug, Parser)]
#[command(name = "mainstay", version, max_term_width = 100)]
pub(crate) struct Cli {
    /// Colours: on a terminal that has them (NO_COLOR and TERM=dumb decline), always, or never
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_default_value = true
    )]
    pub(crate) color: Color,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the jobs of a configuration, or one command, until they end or the node is shut down
    Run(RunCommandArgs),
    /// Hold one command behind a control socket, without an agent
    Hold(HoldArgs),
    /// Look at, wait for, stop, kill or signal what is held in a directory
    Held(HeldArgs),
    /// Kill what a node or `hold` that was itself killed has left behind
    Sweep(SweepArgs),
    /// Show the node and its jobs
    Status(StatusArgs),
    /// List all nodes of this user
    Ps(PsArgs),
    /// Why is a job as it is? What it waits for, and whether that can come
    Why(WhyArgs),
    /// Start jobs, and wait until they are healthy, have lived for a while, or have ended
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
    /// Look at the fleet that the node belongs to, or change its part in it
    Fleet(FleetArgs),
    /// Show the placed jobs that run on several nodes of the fleet
    Conflicts(ConflictsArgs),
    /// Solve conflicts: what becomes of jobs that run on several nodes
    Conciliate(ConciliateArgs),
    /// Look at what is rolled out, roll it out now, or back
    Rollout(RolloutArgs),
    /// Show what a reload would change
    Plan(PlanArgs),
    /// Bring the configuration into force as it is written now; or let jobs reload
    Reload(ReloadArgs),
    /// Enter or leave maintenance: jobs that wait for it are told, processes go on, checks rest
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
    /// `run`, for one that waits until it has started
    #[command(name = "__detached", hide = true)]
    Detached(RunArgs),
    #[command(name = "__check", hide = true)]
    CheckHandover(DirArgs),
    /// Renders templates for the agent, within limits
    #[command(name = "__render", hide = true)]
    Render,
    /// Stands for a job that is only announced
    #[command(name = "__pause", hide = true)]
    Pause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct JsonArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// An argument that may be any bytes, as `core::text::bytes` writes them.
fn any_bytes() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new().map(|text| bytes::from_os(&text))
}

fn duration(text: &str) -> Result<Duration, mainstay_config::DurationError> {
    mainstay_config::duration(text)
}
