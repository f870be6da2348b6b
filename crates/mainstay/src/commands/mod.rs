//! The commands, one module each, and the table that finds them.

mod config;
pub(crate) mod containerpilot;
mod fleet;
mod jobs;
mod manual;
mod node;
mod rollout;
mod version;

use crate::{args::Command, failure::Failure};
use config::{check, import, reload};
use fleet::{conflicts, status as fleet_status};
use jobs::{app, control, events, logs, status, why};
use node::{agent, detach, environ, held, maintenance, metric, ps, run, shutdown, sweep, upgrade};

/// `run` and `hold` become the keeper, so nothing above them may start a thread.
pub(crate) fn dispatch(command: Command) -> Result<i32, Failure> {
    match command {
        Command::Run(args) if args.detach => detach::detach(&args),
        Command::Run(args) => run::run(args.run, None),
        Command::Detached(args) => detach::detached(args),
        Command::Hold(args) => run::hold(args),
        Command::Held(args) => held::held(&args),
        Command::Sweep(args) => sweep::sweep(&args),
        Command::Agent(args) => agent::agent(args),
        Command::Render => Ok(mainstay_rollout::renderer::serve()),
        Command::Pause => loop {
            std::thread::park();
        },
        Command::CheckHandover(args) => upgrade::check_handover(&args),
        Command::Check(args) => check::check(&args),
        Command::Ps(args) => ps::ps(&args),
        Command::Status(args) => status::status(&args),
        Command::Why(args) => why::why(&args),
        Command::Start(args) => control::start(&args),
        Command::Stop(args) => control::stop(&args),
        Command::Restart(args) => control::restart(&args),
        Command::Kill(args) => control::control("kill", &args),
        Command::Signal(args) => control::signal(&args),
        Command::Enable(args) => control::control("enable", &args),
        Command::Disable(args) => control::control("disable", &args),
        Command::App(args) => app::app(&args),
        Command::Fleet(args) => fleet_status::fleet(&args),
        Command::Conflicts(args) => conflicts::conflicts(&args),
        Command::Conciliate(args) => conflicts::conciliate(&args),
        Command::Rollout(args) => rollout::rollout(&args),
        Command::Plan(args) => reload::plan(&args),
        Command::Reload(args) => reload::reload(args),
        Command::Maintenance(args) => maintenance::maintenance(&args),
        Command::Environ(args) => environ::environ(&args),
        Command::Metric(args) => metric::metric(&args),
        Command::Import(args) => import::import(&args),
        Command::Schema(args) => import::schema(&args),
        Command::Completions(args) => manual::completions(&args),
        Command::Man(args) => manual::man(&args),
        Command::Logs(args) => logs::logs(&args),
        Command::Events(args) => events::events(&args),
        Command::Shutdown(args) => shutdown::shutdown(&args),
        Command::Upgrade(args) => upgrade::upgrade(&args),
        Command::Version(args) => version::version(&args),
    }
}
