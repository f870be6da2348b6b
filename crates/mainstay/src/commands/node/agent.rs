//! `mainstay __agent`: the process that decides, started by the keeper.

use crate::{
    args::RunArgs,
    context::context,
    dirs::{self, TypedDirs, UserEnv},
    failure::{Failure, USAGE},
};
use mainstay_core::text::bytes;
use mainstay_import::{PlanSource, UnknownFormat};
use mainstay_wire::run_dir::Dirs;

pub(crate) fn agent(args: RunArgs) -> Result<i32, Failure> {
    let typed = TypedDirs { run: args.run_dir.as_deref(), state: args.state_dir.as_deref() };
    let env = UserEnv::of_process()?;
    let place = env.place(typed, &env.project_of(&args));
    let source = match (args.from.as_slice(), args.command.is_empty()) {
        ([format, file, others @ ..], _) => {
            let path = |file: &String| bytes::to_os(file).into_owned().into();
            PlanSource::Import {
                format: format
                    .parse()
                    .map_err(|no: UnknownFormat| Failure::new(USAGE, no.to_string()))?,
                file: path(file),
                others: others.iter().map(path).collect(),
            }
        }
        (_, true) => PlanSource::Config(args.config),
        (_, false) => PlanSource::Command { command: args.command, restart: args.restart },
    };
    let state = dirs::usable_state_dir(&place);
    let dirs = Dirs { run: place.run.dir().to_owned(), state };
    Ok(mainstay_agent::role(dirs, source, context, mainstay_api::serve))
}
