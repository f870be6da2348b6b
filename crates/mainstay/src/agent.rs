//! `mainstay __agent`: the process that decides, started by the keeper.

use crate::{args::RunArgs, dirs, failure::Failure};
use mainstay_agent::{Options, Source, role};

pub(crate) fn agent(args: RunArgs) -> Result<i32, Failure> {
    let run_dir = dirs::run_dir(args.node.run_dir.as_deref())?;
    let state_dir = dirs::state_dir(args.state_dir.as_deref(), &run_dir)?;
    let source = match args.command.is_empty() {
        true => Source::Config(args.config),
        false => Source::Command { command: args.command, restart: args.restart },
    };
    Ok(role(&Options { run_dir, state_dir, source }, mainstay_api::serve))
}
