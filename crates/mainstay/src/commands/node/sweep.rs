//! `mainstay sweep`: kills what a node or `hold` that was itself killed has left.

use crate::{
    args::SweepArgs,
    dirs::{self, UserEnv},
    failure::Failure,
    term::{Page, print_json},
};
use mainstay_keeper::Sweep;
use serde_json::json;

pub(crate) fn sweep(args: &SweepArgs) -> Result<i32, Failure> {
    let dir = match &args.dir {
        Some(dir) => dirs::made_absolute(dir)?,
        None => UserEnv::of_process()?.candidates(&args.node)?.dead(),
    };
    if !dir.is_dir() {
        return Err(Failure::failed(format!("there is no directory {}", dir.display())));
    }
    let Sweep { run, killed } =
        mainstay_keeper::sweep(&dir).map_err(|error| Failure::failed(error.to_string()))?;
    if args.json.json {
        let killed: Vec<_> = killed
            .iter()
            .map(|it| json!({ "pid": it.pid, "command": it.command, "found": it.found.word() }))
            .collect();
        print_json(&json!({ "run": run, "killed": killed }))?;
        return Ok(0);
    }
    let mut page = Page::new();
    for it in &killed {
        page.line(format!("killed {} (by its {}): {}", it.pid, it.found.word(), it.command));
    }
    page.line(match (run, killed.len()) {
        (None, _) => format!("nothing to sweep: no run was killed in {}", dir.display()),
        (Some(run), 0) => format!("nothing is left of run {run}"),
        (Some(run), 1) => format!("one process was left of run {run}"),
        (Some(run), count) => format!("{count} processes were left of run {run}"),
    });
    page.show()?;
    Ok(0)
}
