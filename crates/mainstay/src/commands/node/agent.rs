//! `mainstay __agent`: the process that decides, started by the keeper.

use crate::{
    args::RunArgs,
    dirs,
    failure::{Failure, USAGE},
};
use mainstay_agent::{Options, Source, role};

pub(crate) fn agent(args: RunArgs) -> Result<i32, Failure> {
    let run_dir = dirs::run_dir(args.node.run_dir.as_deref())?;
    let state_dir = dirs::state_dir(args.state_dir.as_deref(), &run_dir)?;
    let source = match (args.from.as_slice(), args.command.is_empty()) {
        ([format, file], _) => Source::Import {
            format: format.parse().map_err(|no: mainstay_import::UnknownFormat| {
                Failure::new(USAGE, no.to_string())
            })?,
            file: file.into(),
        },
        (_, true) => Source::Config(args.config),
        (_, false) => Source::Command { command: args.command, restart: args.restart },
    };
    Ok(role(&Options { run_dir, state_dir, source }, mainstay_api::serve))
}
