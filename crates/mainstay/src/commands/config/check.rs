//! `mainstay check`: is this configuration valid?

use super::{machine, templates, units};
use crate::{
    args::CheckArgs,
    context::context,
    failure::{CONFIG, Failure},
    term::{self, Page, print_json},
};
use mainstay_config::{Errors, Loaded, Severity, duration};
use mainstay_core::plan::{LongestStop, Plan};
use serde_json::{Value, json};

pub(crate) fn check(args: &CheckArgs) -> Result<i32, Failure> {
    let context = context();
    let path = mainstay_config::find(args.config.as_deref(), &context)
        .map_err(|text| Failure::new(CONFIG, text))?;
    let color = term::stderr_color();
    match mainstay_config::load(&path, &context).and_then(with_what_is_here) {
        Ok(loaded) => {
            if args.json.json {
                let warnings: Vec<Value> = loaded.warnings.iter().map(diagnostic).collect();
                let stop_timeout = loaded.plan.node.stop_timeout.as_secs_f64();
                print_json(&json!({
                    "valid": true,
                    "file": path,
                    "diagnostics": warnings,
                    "stop_timeout": stop_timeout,
                }))?;
                return Ok(0);
            }
            for warning in &loaded.warnings {
                term::tell_diagnostics(&(warning.render(color) + "\n"));
            }
            let jobs = loaded.plan.jobs.len();
            let noun = if jobs == 1 { "job" } else { "jobs" };
            let mut page = Page::new();
            page.line(format!("{} is valid: {jobs} {noun}", path.display()));
            if let Some(longest) = &loaded.longest_stop {
                page.line(long_shutdown(&loaded.plan, longest));
            }
            page.show()?;
            Ok(0)
        }
        Err(errors) => {
            if args.json.json {
                let all: Vec<Value> = errors.iter().map(diagnostic).collect();
                print_json(&json!({ "valid": false, "file": path, "diagnostics": all }))?;
            } else {
                term::tell_diagnostics(errors.render(color).trim_end());
            }
            Ok(CONFIG)
        }
    }
}

/// With what the files and the machine say that it names.
fn with_what_is_here(mut loaded: Loaded) -> Result<Loaded, Errors> {
    let (errors, warnings): (Vec<_>, Vec<_>) =
        templates::diagnostics(&loaded).into_iter().partition(|it| it.severity == Severity::Error);
    if !errors.is_empty() {
        return Err(Errors::of_file(errors));
    }
    let units = units::diagnostics(&loaded);
    loaded.warnings.extend(machine::warnings(&loaded).into_iter().chain(warnings).chain(units));
    Ok(loaded)
}

/// What whoever stops the node has to know: by default Docker allows ten seconds.
fn long_shutdown(plan: &Plan, longest: &LongestStop) -> String {
    const NAMED: usize = 6;
    let names = longest.jobs.iter().take(NAMED).map(|at| plan.jobs[*at].name.as_str());
    let names = names.collect::<Vec<_>>().join(", then ");
    let more = if longest.jobs.len() > NAMED { ", …" } else { "" };
    let time = plan.node.stop_timeout;
    let allowed = time.as_secs() + 2;
    format!(
        "a shutdown may take {}, because of {names}{more}: allow it {allowed}s \
         (docker stop -t {allowed}, stop_grace_period, TimeoutStopSec)",
        duration::written(time)
    )
}

fn diagnostic(one: &mainstay_config::Diagnostic) -> Value {
    json!({
        "severity": format!("{:?}", one.severity).to_lowercase(),
        "message": one.message,
        "file": one.file,
        "line": one.spot.as_ref().map(|spot| spot.line),
        "column": one.spot.as_ref().map(|spot| spot.column),
        "help": one.help,
    })
}
