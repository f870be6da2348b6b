//! Mainstay beside s6, runit, supervisord, pm2, Horust, Supvisors and the floor, measured in one run.
//!
//! The floor is what no supervisor can beat: a bare spawn loop for processes, `cat` for output.
//! Peers take turns within a round, so that whatever disturbs the machine disturbs them alike;
//! figures are medians over rounds, and what counts is their ratio.
//!
//! ```text
//! options ─► rows (supervised lines meanwhile agent chain checks …) ─► figures ─► table, chart, JSON
//!                 │
//!                 ├─ peers: how each supervisor is set up, started and ended
//!                 ├─ process: what the kernel says about execs, exits, memory and wake-ups
//!                 ├─ web: the server that http checks ask, and `appconfig`, which profiles come from
//!                 └─ consul: a real one, where it is installed, and a bare client of it
//! ```
#![forbid(unsafe_code)]

mod appconfig;
mod consul;
mod failure;
mod figure;
mod machine;
mod options;
mod peer;
mod process;
mod report;
mod role;
mod row;
mod sample;
mod web;

use std::process::ExitCode;

use failure::Result;
use options::{Asked, Options};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match options::parse(&arguments) {
        Ok(Asked::Role(role)) => role::play(role),
        Ok(Asked::Help) => {
            print!("{}", options::HELP);
            Ok(())
        }
        Ok(Asked::Measure(options)) => measure(&options),
        Err(wrong) => {
            eprintln!("mainstay-bench: {wrong}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("mainstay-bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &Options) -> Result<()> {
    let machine = machine::Machine::look();
    eprintln!("{machine}");
    if let Some(warning) = machine.warning() {
        eprintln!("warning: {warning}");
    }
    let scene = row::Scene::set(options)?;
    let figures = row::measure(&scene)?;
    report::publish(options, &machine, &figures)
}
