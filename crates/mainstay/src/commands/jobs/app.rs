//! `mainstay app`

use super::control::each;
use crate::{
    args::{AppAction, AppArgs},
    client::{Client, PROMPT, read},
    failure::{FAILED, Failure, USAGE},
    term::{Page, Tint, print_json},
};
use mainstay_core::app::AppPhase;
use mainstay_net::percent::segment;
use mainstay_wire::api::{JobStatus, NodeStatus, PlacedStatus};
use serde_json::{Value, json};
use std::slice;

pub(crate) fn app(args: &AppArgs) -> Result<i32, Failure> {
    let client = Client::of(&args.node)?;
    match args.action {
        AppAction::List => list(&client, args),
        AppAction::Status => jobs(&client, args),
        AppAction::Start => ask_for(&client, args, "start"),
        AppAction::Stop => ask_for(&client, args, "stop"),
        AppAction::Restart => ask_for(&client, args, "restart"),
        AppAction::Move => move_to(&client, args),
    }
}

fn named(args: &AppArgs) -> Result<&String, Failure> {
    args.app.as_ref().ok_or_else(|| Failure::new(USAGE, "name the app: mainstay app start APP"))
}

fn ask_for(client: &Client, args: &AppArgs, verb: &str) -> Result<i32, Failure> {
    let wait = args.wait.patience();
    let here = if args.here { "&here=true" } else { "" };
    each(slice::from_ref(named(args)?), args.json.json, |app| {
        let path = format!("/v1/apps/{}/{verb}?wait={}ms{here}", segment(app), wait.as_millis());
        client.post(&path, &json!({}), wait + PROMPT)
    })
}

/// An app of this name, else a placed job.
fn move_to(client: &Client, args: &AppArgs) -> Result<i32, Failure> {
    let (name, wait) = (named(args)?, args.wait.patience());
    let usage = || Failure::new(USAGE, "say where to: mainstay app move APP --to NODE");
    let to = args.to.as_ref().ok_or_else(usage)?;
    let status: NodeStatus = read(&client.get("/v1/status")?.or_told(args.json.json)?)?;
    let is_app = status.apps.iter().any(|app| app.name.as_str() == name);
    let kind = if is_app { "apps" } else { "jobs" };
    let path = format!("/v1/{kind}/{}/move?wait={}ms", segment(name), wait.as_millis());
    let body = client.post(&path, &json!({ "to": to }), wait + PROMPT)?.or_told(args.json.json)?;
    match args.json.json {
        true => print_json(&body)?,
        false => {
            let mut page = Page::new();
            page.line(format!("{name} runs on {to}"));
            page.show()?;
        }
    }
    Ok(0)
}

fn list(client: &Client, args: &AppArgs) -> Result<i32, Failure> {
    let body = client.get("/v1/status")?.or_told(args.json.json)?;
    let status: NodeStatus = read(&body)?;
    // The fleet knows how its apps are, and more of them.
    let apps: Vec<(String, AppPhase)> = match &status.fleet {
        Some(fleet) => fleet.apps.iter().map(|app| (app.name.to_string(), app.state)).collect(),
        None => status.apps.iter().map(|app| (app.name.to_string(), app.state)).collect(),
    };
    if args.json.json {
        let apps: Vec<Value> =
            apps.iter().map(|(name, state)| json!({ "name": name, "state": state })).collect();
        print_json(&json!({ "apps": apps }))?;
        return Ok(0);
    }
    let mut page = Page::new();
    let row = |(name, state): &(String, AppPhase)| {
        vec![(name.clone(), Tint::Plain), (word(*state).to_owned(), tint(*state))]
    };
    page.table(&["APP", "STATE"], &apps.iter().map(row).collect::<Vec<_>>());
    page.show()?;
    Ok(0)
}

fn jobs(client: &Client, args: &AppArgs) -> Result<i32, Failure> {
    let name = named(args)?;
    let body = client.get("/v1/status")?.or_told(args.json.json)?;
    let status: NodeStatus = read(&body)?;
    let of_app = |job: &&JobStatus| job.app.as_ref() == Some(name);
    let jobs: Vec<&JobStatus> = status.jobs.iter().filter(of_app).collect();
    if jobs.is_empty() {
        return Err(Failure::new(FAILED, format!("there is no app '{name}'")));
    }
    if args.json.json {
        print_json(&json!({ "app": name, "jobs": jobs }))?;
        return Ok(0);
    }
    let mut page = Page::new();
    let row = |job: &&JobStatus| {
        let home = job.placed.as_ref().and_then(PlacedStatus::home);
        let (state, node) = match home {
            Some(copy) => (copy.state.clone(), copy.node.to_string()),
            None => (format!("{:?}", job.state).to_uppercase(), String::new()),
        };
        let note = job.placed.as_ref().and_then(|it| it.reason.clone()).unwrap_or_default();
        [job.name.to_string(), state, node, note].map(|text| (text, Tint::Plain)).to_vec()
    };
    page.table(&["JOB", "STATE", "NODE", "NOTE"], &jobs.iter().map(row).collect::<Vec<_>>());
    page.show()?;
    Ok(0)
}

pub(crate) fn word(phase: AppPhase) -> &'static str {
    match phase {
        AppPhase::Stopped => "stopped",
        AppPhase::Starting => "starting",
        AppPhase::Running => "running",
        AppPhase::Stopping => "stopping",
        AppPhase::Backoff => "backoff",
    }
}

pub(crate) fn tint(phase: AppPhase) -> Tint {
    match phase {
        AppPhase::Running => Tint::Green,
        AppPhase::Starting | AppPhase::Stopping | AppPhase::Backoff => Tint::Yellow,
        AppPhase::Stopped => Tint::Plain,
    }
}
