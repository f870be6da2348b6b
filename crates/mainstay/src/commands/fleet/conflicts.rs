//! `mainstay conflicts` and `mainstay conciliate`

use super::status::job;
use crate::{
    args::{ConciliateArgs, ConflictsArgs, Rule},
    client::{Answer, Client, PROMPT, read},
    failure::{Failure, NOT_AS_DESIRED},
    term::{Page, print_json},
};
use mainstay_wire::api::{Conflicts, PATIENCE};
use serde_json::json;

pub(crate) fn conflicts(args: &ConflictsArgs) -> Result<i32, Failure> {
    let answer = Client::of(&args.node)?.get("/v1/conflicts")?;
    tell(answer, args.json.json)
}

pub(crate) fn conciliate(args: &ConciliateArgs) -> Result<i32, Failure> {
    let rule = match args.rule {
        Rule::Senicide => "senicide",
        Rule::Infanticide => "infanticide",
        Rule::Stop => "stop",
        Rule::Restart => "restart",
        Rule::RunningFailure => "running-failure",
    };
    let body = json!({ "job": args.job, "rule": rule });
    let answer = Client::of(&args.node)?.post("/v1/conflicts", &body, PATIENCE + PROMPT)?;
    tell(answer, args.json.json)?;
    Ok(0)
}

fn tell(answer: Answer, json: bool) -> Result<i32, Failure> {
    let body = answer.or_told(json)?;
    let Conflicts { conflicts } = read(&body)?;
    if json {
        print_json(&body)?;
    } else if !conflicts.is_empty() {
        let mut page = Page::new();
        let rows: Vec<_> = conflicts.iter().map(job).collect();
        page.table(&["JOB", "STATE", "NODE", "NOTE"], &rows);
        page.show()?;
    }
    Ok(if conflicts.is_empty() { 0 } else { NOT_AS_DESIRED })
}
