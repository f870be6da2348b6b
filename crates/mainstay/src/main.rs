//! The command `mainstay`: arguments, wiring, and what people read.
#![forbid(unsafe_code)]

mod agent;
mod args;
mod check;
mod client;
mod containerpilot;
mod control;
mod dirs;
mod environ;
mod events;
mod failure;
mod import;
mod keeper;
mod logs;
mod maintenance;
mod manual;
mod metric;
mod reload;
mod run;
mod shutdown;
mod socket;
mod status;
mod term;
mod upgrade;
mod version;
mod why;

use args::{Cli, Command};
use clap::Parser;
use failure::Failure;
use std::io::{self, Write};

fn main() {
    // After an upgrade this process is the keeper already, whatever its arguments mean by now.
    if let Some(code) = mainstay_keeper::take_over() {
        std::process::exit(code);
    }
    let outcome = match containerpilot::is_called() {
        true => containerpilot::containerpilot(),
        false => dispatch(Cli::parse().command),
    };
    let code = match outcome {
        Ok(code) => code,
        Err(failure) => {
            failure.tell();
            failure.code
        }
    };
    // A reader that has gone away has seen what it wanted.
    let _ = io::stdout().flush();
    std::process::exit(code);
}

/// `run` and `hold` become the keeper, so nothing above them may start a thread.
fn dispatch(command: Command) -> Result<i32, Failure> {
    match command {
        Command::Run(args) => run::run(args),
        Command::Hold(args) => run::hold(args),
        Command::Agent(args) => agent::agent(args),
        Command::Pause => loop {
            std::thread::park();
        },
        Command::CheckHandover(args) => keeper::check_handover(&args),
        Command::Check(args) => check::check(&args),
        Command::Status(args) => status::status(&args),
        Command::Why(args) => why::why(&args),
        Command::Start(args) => control::start(&args),
        Command::Stop(args) => control::control("stop", &args),
        Command::Restart(args) => control::restart(&args),
        Command::Kill(args) => control::control("kill", &args),
        Command::Signal(args) => control::signal(&args),
        Command::Enable(args) => control::control("enable", &args),
        Command::Disable(args) => control::control("disable", &args),
        Command::App(args) => control::app(&args),
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
