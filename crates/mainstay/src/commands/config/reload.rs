//! `mainstay plan` and `mainstay reload`: what would change, and changing it.

use crate::{
    args::{ControlArgs, PlanArgs, ReloadArgs},
    client::{Answer, Client, read},
    commands::jobs::control,
    failure::{CONFIG, Failure},
    term::{self, Page, Tint, print_json},
};
use mainstay_core::{explain, plan};
use mainstay_wire::api::{Change, Changes};
use serde_json::json;
use std::time::Duration;

/// A configuration is read and applied by then.
const PATIENCE: Duration = Duration::from_secs(60);
const INVALID: u16 = 422;
/// What concerns the whole node and is a table of its own.
const TABLES: [&str; 4] = ["telemetry", "containerpilot", "log", "fleet"];

pub(crate) fn plan(args: &PlanArgs) -> Result<i32, Failure> {
    let client = Client::of(&args.node)?;
    tell(client.get("/v1/plan")?, args.json.json, "nothing would change")
}

pub(crate) fn reload(args: ReloadArgs) -> Result<i32, Failure> {
    let ReloadArgs { jobs, here, wait, json, node } = args;
    if !jobs.is_empty() {
        return control::control("reload", &ControlArgs { here, jobs, wait, json, node });
    }
    let client = Client::of(&node)?;
    let patience = wait.patience();
    let path = format!("/v1/reload?wait={}ms", patience.as_millis());
    let answer = client.post(&path, &json!({}), PATIENCE + patience)?;
    tell(answer, json.json, "reloaded: nothing has changed")
}

fn tell(answer: Answer, json: bool, nothing: &str) -> Result<i32, Failure> {
    if answer.status == INVALID {
        let failure = Failure::new(CONFIG, format!("nothing is changed: {}", answer.detail()));
        if json {
            print_json(&answer.body)?;
            return Ok(CONFIG);
        }
        return Err(failure);
    }
    let failed = (!answer.is_ok()).then(|| Failure::failed(answer.detail()));
    if json {
        print_json(&answer.body)?;
        return Ok(failed.map_or(0, |failure| failure.code));
    }
    // What is in force although something that follows from it failed.
    let done = if failed.is_some() { &answer.body["changes"] } else { &answer.body };
    if let (true, Some(failure)) = (done.is_null(), failed.as_ref()) {
        return Err(Failure::failed(failure.text()));
    }
    let changes: Changes = read(done)?;
    if !changes.warnings.is_empty() {
        term::tell_sent_diagnostics(&changes.warnings);
    }
    lines(&changes, nothing).show()?;
    failed.map_or(Ok(0), Err)
}

fn lines(changes: &Changes, nothing: &str) -> Page {
    let mut page = Page::new();
    for change in &changes.jobs {
        let (mark, tint) = match change.change {
            plan::Change::Added => ('+', Tint::Green),
            plan::Change::Removed => ('-', Tint::Red),
            plan::Change::Unchanged | plan::Change::Live | plan::Change::Restart => {
                ('~', Tint::Yellow)
            }
        };
        let line = format!(
            "{mark} {}  {}{}",
            change.job,
            explain::effect(change.effect, change.change, &change.waits),
            reason(change)
        );
        page.tinted_line(&[(&line, tint)]);
    }
    let (tables, keys): (Vec<&str>, Vec<&str>) =
        changes.node.iter().map(String::as_str).partition(|key| TABLES.contains(key));
    if !keys.is_empty() {
        page.line(format!("~ [node]  {} applied live", keys.join(", ")));
    }
    if !changes.api.is_empty() {
        page.line(format!("~ [api]  {} applied live", changes.api.join(", ")));
    }
    let others =
        [("apps", changes.apps), ("watches", changes.watches), ("discovery", changes.discovery)];
    let others = others.into_iter().filter(|(_, differs)| *differs).map(|(table, _)| table);
    for table in tables.into_iter().chain(others) {
        page.line(format!("~ [{table}]  applied live"));
    }
    if changes.ends {
        page.line("the node ends: nothing is left for it to run");
    }
    if page.is_empty() {
        page.line(nothing);
    }
    page
}

/// The keys that differ, or what moves it although none does.
fn reason(change: &Change) -> String {
    let keys = (!change.keys.is_empty()).then(|| change.keys.join(", "));
    let all: Vec<String> = keys.into_iter().chain(change.because.clone()).collect();
    if all.is_empty() { String::new() } else { format!(" ({})", all.join("; ")) }
}
