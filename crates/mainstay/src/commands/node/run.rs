//! `mainstay run` and `mainstay hold`: this process becomes the keeper.

use crate::{
    args::{HoldArgs, RunArgs},
    dirs,
    failure::{Failure, USAGE},
};
use mainstay_import::{Format, UnknownFormat};
use mainstay_keeper::{HoldOptions, RunOptions};
use std::path::Path;

pub(crate) fn run(args: RunArgs) -> Result<i32, Failure> {
    let run_dir = dirs::run_dir(args.node.run_dir.as_deref())?;
    let state_dir = dirs::state_dir(args.state_dir.as_deref(), &run_dir)?;
    let mut agent_args: Vec<String> = vec!["__agent".to_owned()];
    let mut flag = |name: &str, value: &Path| -> Result<(), Failure> {
        agent_args.extend([name.to_owned(), text(value)?]);
        Ok(())
    };
    flag("--run-dir", &run_dir)?;
    flag("--state-dir", &state_dir)?;
    if let Some(config) = &args.config {
        flag("--config", &dirs::made_absolute(config)?)?;
    }
    if let [format, file] = args.from.as_slice() {
        let format: Format = format
            .parse()
            .map_err(|unknown: UnknownFormat| Failure::new(USAGE, unknown.to_string()))?;
        let file = text(&dirs::made_absolute(Path::new(file))?)?;
        agent_args.extend(["--from".to_owned(), format.to_string(), file]);
    }
    if let Some(rule) = args.restart {
        agent_args.extend(["--restart".to_owned(), rule]);
    }
    if !args.command.is_empty() {
        agent_args.push("--".to_owned());
        agent_args.extend(args.command);
    }
    Ok(mainstay_keeper::run(RunOptions { run_dir, state_dir, agent_args }))
}

fn text(path: &Path) -> Result<String, Failure> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| Failure::new(USAGE, format!("'{}' is not UTF-8", path.display())))
}

pub(crate) fn hold(args: HoldArgs) -> Result<i32, Failure> {
    let HoldArgs { dir, stop_timeout, command } = args;
    Ok(mainstay_keeper::hold(HoldOptions { dir, stop_timeout, command }))
}
