//! The command `mainstay`: arguments, wiring, and what people read.
#![forbid(unsafe_code)]
// What is shown goes through `term`.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod client;
mod commands;
mod context;
mod dirs;
mod failure;
mod held;
mod keeper;
mod socket;
mod term;

use args::Cli;
use clap::Parser;
use commands::{containerpilot, dispatch};
use std::io::{self, Write};

fn main() {
    // After an upgrade this process is the keeper already, whatever its arguments mean by now.
    if let Some(code) = mainstay_keeper::take_over() {
        std::process::exit(code);
    }
    if let Some(code) = mainstay_keeper::spare() {
        std::process::exit(code);
    }
    let outcome = match containerpilot::is_called() {
        true => containerpilot::containerpilot(),
        false => {
            let cli = Cli::parse();
            term::choose_color(cli.color);
            dispatch(cli.command)
        }
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
