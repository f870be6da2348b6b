//! The command `mainstay`: arguments, wiring, and what people read.
#![forbid(unsafe_code)]

mod agent;
mod args;
mod check;
mod client;
mod control;
mod dirs;
mod events;
mod failure;
mod keeper;
mod logs;
mod run;
mod shutdown;
mod socket;
mod status;
mod term;
mod upgrade;
mod version;

use args::{Cli, Command};
use clap::Parser;
use failure::Failure;
use std::io::{self, Write};

fn main() {
    // After an upgrade this process is the keeper already, whatever its arguments mean by now.
    if let Some(code) = mainstay_keeper::take_over() {
        std::process::exit(code);
    }
    let code = match dispatch(Cli::parse().command) {
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
        Command::CheckHandover(args) => keeper::check_handover(&args),
        Command::Check(args) => check::check(&args),
        Command::Status(args) => status::status(&args),
        Command::Start(args) => control::control("start", &args),
        Command::Stop(args) => control::control("stop", &args),
        Command::Restart(args) => control::control("restart", &args),
        Command::Kill(args) => control::control("kill", &args),
        Command::Signal(args) => control::signal(&args),
        Command::Logs(args) => logs::logs(&args),
        Command::Events(args) => events::events(&args),
        Command::Shutdown(args) => shutdown::shutdown(&args),
        Command::Upgrade(args) => upgrade::upgrade(&args),
        Command::Version(args) => version::version(&args),
    }
}
