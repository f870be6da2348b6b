//! `mainstay run` and `mainstay hold`: this process becomes the keeper.

use crate::{
    args::{HoldArgs, RunArgs},
    dirs,
    failure::{Failure, USAGE},
};
use mainstay_core::text::bytes;
use mainstay_import::{Format, UnknownFormat};
use mainstay_keeper::{HoldOptions, RunOptions};
use std::{ffi::OsString, path::Path};

pub(crate) fn run(args: RunArgs) -> Result<i32, Failure> {
    let run_dir = dirs::run_dir(args.node.run_dir.as_deref())?;
    let state_dir = dirs::state_dir(args.state_dir.as_deref(), &run_dir)?;
    let mut agent_args: Vec<OsString> = vec!["__agent".into()];
    let mut flag = |name: &str, value: &Path| agent_args.extend([name.into(), value.into()]);
    flag("--run-dir", &run_dir);
    flag("--state-dir", &state_dir);
    if let Some(config) = &args.config {
        flag("--config", &dirs::made_absolute(config)?);
    }
    if let [format, files @ ..] = args.from.as_slice() {
        let format: Format = format
            .parse()
            .map_err(|unknown: UnknownFormat| Failure::new(USAGE, unknown.to_string()))?;
        agent_args.extend(["--from".into(), format.to_string().into()]);
        for file in files {
            agent_args.push(dirs::made_absolute(Path::new(&bytes::to_os(file)))?.into());
        }
    }
    if let Some(rule) = args.restart {
        agent_args.extend(["--restart".into(), rule.into()]);
    }
    if !args.command.is_empty() {
        agent_args.push("--".into());
        agent_args.extend(args.command.iter().map(|word| bytes::to_os(word).into_owned()));
    }
    Ok(mainstay_keeper::run(RunOptions { run_dir, state_dir, agent_args }))
}

pub(crate) fn hold(args: HoldArgs) -> Result<i32, Failure> {
    let HoldArgs { dir, stop_timeout, command } = args;
    Ok(mainstay_keeper::hold(HoldOptions { dir, stop_timeout, command }))
}
