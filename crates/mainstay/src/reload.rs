//! `mainstay plan` and `mainstay reload`: what would change, and changing it.

use crate::{
    args::{JobsArgs, PlanArgs, ReloadArgs},
    client::{Answer, Client},
    control, dirs,
    failure::{CONFIG, Failure},
    term::{Tint, print, print_json, stdout_color, tinted},
};
use mainstay_agent::view::Changes;
use mainstay_core::node::Effect;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// A configuration is read and applied by then.
const PATIENCE: Duration = Duration::from_secs(60);
const INVALID: u16 = 422;

pub(crate) fn plan(args: &PlanArgs) -> Result<i32, Failure> {
    let client = Client::new(dirs::run_dir(args.node.run_dir.as_deref())?);
    tell(client.get("/v1/plan")?, args.json.json, "nothing would change")
}

pub(crate) fn reload(args: ReloadArgs) -> Result<i32, Failure> {
    let ReloadArgs { jobs, json, node } = args;
    if !jobs.is_empty() {
        return control::at_once("reload", &JobsArgs { jobs, json, node });
    }
    let client = Client::new(dirs::run_dir(node.run_dir.as_deref())?);
    let answer = client.post("/v1/reload", &json!({}), PATIENCE)?;
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
    let body = answer.into_result()?;
    if json {
        print_json(&body)?;
        return Ok(0);
    }
    let changes = understood(&body)?;
    if !changes.warnings.is_empty() {
        eprintln!("{}", changes.warnings.trim_end());
    }
    print(&lines(&changes, nothing))?;
    Ok(0)
}

fn understood(body: &Value) -> Result<Changes, Failure> {
    Changes::deserialize(body).map_err(|error| {
        Failure::of("the agent is of another version and answers in another form", error)
    })
}

fn lines(changes: &Changes, nothing: &str) -> String {
    let color = stdout_color();
    let mut text = String::new();
    for job in &changes.removed {
        text.push_str(&tinted(&format!("- {job}  is stopped and forgotten"), Tint::Red, color));
        text.push('\n');
    }
    for change in &changes.changed {
        let keys = change.keys.join(", ");
        let line = format!("~ {}  {} ({keys})", change.job, effect(change.effect));
        text.push_str(&tinted(&line, Tint::Yellow, color));
        text.push('\n');
    }
    for job in &changes.added {
        text.push_str(&tinted(&format!("+ {job}"), Tint::Green, color));
        text.push('\n');
    }
    if !changes.node.is_empty() {
        text.push_str(&format!("~ [node]  {} applied live\n", changes.node.join(", ")));
    }
    if !changes.api.is_empty() {
        text.push_str(&format!("~ [api]  {} applied live\n", changes.api.join(", ")));
    }
    if changes.apps {
        text.push_str("~ [apps]  applied live\n");
    }
    if text.is_empty() {
        text = format!("{nothing}\n");
    }
    text
}

fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::Keep => "is the same",
        Effect::Live => "goes on with what has changed",
        Effect::Start => "is started",
        Effect::Restart => "is restarted",
        Effect::Stop => "is stopped",
        Effect::NotAgain => "has ended well and is not run again",
        Effect::Later => "rests, and has it when it is started next",
    }
}
