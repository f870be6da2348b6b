//! `mainstay run` and `mainstay hold`: this process becomes the keeper.

use crate::{
    args::{HoldArgs, RunArgs},
    dirs::{self, Former, Place, StatePlace, TypedDirs, UserEnv},
    failure::{Failure, USAGE},
};
use mainstay_agent::inherit_disabled;
use mainstay_core::text::bytes;
use mainstay_import::{Format, UnknownFormat};
use mainstay_keeper::{HoldOptions, RunOptions};
use std::{ffi::OsString, fs, os::fd::OwnedFd, path::Path};

/// `starter`: who waits until it has started.
pub(crate) fn run(args: RunArgs, starter: Option<OwnedFd>) -> Result<i32, Failure> {
    let env = UserEnv::of_process()?;
    let typed = TypedDirs { run: args.run_dir.as_deref(), state: args.state_dir.as_deref() };
    for dir in typed.run.into_iter().chain(typed.state) {
        dirs::made_absolute(dir)?;
    }
    let project = env.project_of(&args);
    let place = env.place(typed, &project);
    make_way(&place, &project)?;
    let (run_dir, state_dir) = (place.run.dir().to_owned(), dirs::usable_state_dir(&place));
    let mut agent_args = vec!["__agent".into()];
    agent_args.extend(["--run-dir".into(), run_dir.clone().into()]);
    agent_args.extend(["--state-dir".into(), state_dir.clone().into()]);
    agent_args.extend(source(&args)?);
    let run_parent = place.run.parent().map(Path::to_owned);
    let project = Some(project);
    let options = RunOptions { run_dir, state_dir, run_parent, project, agent_args };
    Ok(mainstay_keeper::run(options, starter))
}

/// What is to be run, as arguments that mean the same from everywhere.
pub(super) fn source(args: &RunArgs) -> Result<Vec<OsString>, Failure> {
    let mut words: Vec<OsString> = Vec::new();
    if let Some(config) = &args.config {
        words.extend(["--config".into(), dirs::made_absolute(config)?.into()]);
    }
    if let [format, files @ ..] = args.from.as_slice() {
        let format: Format = format
            .parse()
            .map_err(|unknown: UnknownFormat| Failure::new(USAGE, unknown.to_string()))?;
        words.extend(["--from".into(), format.to_string().into()]);
        for file in files {
            words.push(dirs::made_absolute(Path::new(&bytes::to_os(file)))?.into());
        }
    }
    if let Some(rule) = &args.restart {
        words.extend(["--restart".into(), rule.into()]);
    }
    if !args.command.is_empty() {
        words.push("--".into());
        words.extend(args.command.iter().map(|word| bytes::to_os(word).into_owned()));
    }
    Ok(words)
}

/// From the place that the version before had for all projects. A node of this one that still runs
/// there is not doubled; the first run in the new place takes along which jobs are disabled.
fn make_way(place: &Place, project: &Path) -> Result<(), Failure> {
    let former = place.run.parent().map(Former::new);
    if let Some(pid) = former.as_ref().and_then(|former| former.keeper_of(project)) {
        return Err(Failure::failed(format!(
            "another mainstay (pid {pid}) runs this configuration, in the place of the version \
             before; stop it with `mainstay shutdown`, or bring it to this version with \
             `mainstay upgrade`"
        )));
    }
    if let StatePlace::OfProject { parent, dir } = &place.state
        && !dir.exists()
        && former.is_none_or(|former| former.may_be_of(project))
    {
        // Where nothing can be written the run says so by itself.
        let _ = fs::create_dir_all(dir).and_then(|()| inherit_disabled(parent, dir));
    }
    Ok(())
}

pub(crate) fn hold(args: HoldArgs) -> Result<i32, Failure> {
    let HoldArgs { dir, stop_timeout, command } = args;
    Ok(mainstay_keeper::hold(HoldOptions { dir, stop_timeout, command }))
}
