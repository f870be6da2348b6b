//! `mainstay app`

use super::control::each;
use crate::{
    args::{AppAction, AppArgs},
    client::{Client, PROMPT, read},
    failure::{FAILED, Failure, USAGE},
    term::{Page, Tint, print_json},
};
use mainstay_core::app::{AppFailure, AppPhase};
use mainstay_net::percent::segment;
use mainstay_wire::api::{AppDetail, AppList, AppMember, AppStatus, PlannedStart, StartPlan};
use serde_json::json;
use std::slice;

pub(crate) fn app(args: &AppArgs) -> Result<i32, Failure> {
    if args.plan && args.action != AppAction::Start {
        return Err(Failure::new(USAGE, "--plan is for a start: mainstay app start APP --plan"));
    }
    if args.wave.is_some() && args.action != AppAction::Restart {
        return Err(Failure::new(
            USAGE,
            "--wave is for a restart: mainstay app restart APP --wave 1",
        ));
    }
    let client = Client::of(&args.node)?;
    match args.action {
        AppAction::List => list(&client, args),
        AppAction::Status => jobs(&client, args),
        AppAction::Start if args.plan => plan_start(&client, args),
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
    let body = args.wave.map_or_else(|| json!({}), |wave| json!({ "wave": wave }));
    each(slice::from_ref(named(args)?), args.json.json, |app| {
        let path = format!("/v1/apps/{}/{verb}?wait={}ms{here}", segment(app), wait.as_millis());
        client.post(&path, &body, wait + PROMPT)
    })
}

/// An app of this name, else a placed job.
fn move_to(client: &Client, args: &AppArgs) -> Result<i32, Failure> {
    let (name, wait) = (named(args)?, args.wait.patience());
    let usage = || Failure::new(USAGE, "say where to: mainstay app move APP --to NODE");
    let to = args.to.as_ref().ok_or_else(usage)?;
    let AppList { apps } = read(&client.get("/v1/apps")?.or_told(args.json.json)?)?;
    let is_app = apps.iter().any(|app| app.name.as_str() == name);
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
    let body = client.get("/v1/apps")?.or_told(args.json.json)?;
    if args.json.json {
        print_json(&body)?;
        return Ok(0);
    }
    let AppList { apps } = read(&body)?;
    let mut page = Page::new();
    table(&mut page, &apps);
    page.show()?;
    Ok(0)
}

fn jobs(client: &Client, args: &AppArgs) -> Result<i32, Failure> {
    let path = format!("/v1/apps/{}", segment(named(args)?));
    let body = client.get(&path)?.or_told(args.json.json)?;
    if args.json.json {
        print_json(&body)?;
        return Ok(0);
    }
    let AppDetail { app, jobs } = read(&body)?;
    let mut page = Page::new();
    table(&mut page, slice::from_ref(&app));
    let row = |job: &AppMember| {
        let node = job.node.as_ref().map(ToString::to_string).unwrap_or_default();
        let (failure, tint) = failure(job.failure);
        vec![
            (job.name.to_string(), Tint::Plain),
            (job.state.clone(), Tint::Plain),
            (node, Tint::Plain),
            (failure.to_owned(), tint),
            (job.reason.clone().unwrap_or_default(), Tint::Plain),
        ]
    };
    let rows: Vec<_> = jobs.iter().map(row).collect();
    page.table(&["JOB", "STATE", "NODE", "FAILURE", "NOTE"], &rows);
    page.show()?;
    Ok(0)
}

/// Fails if some job would not start.
fn plan_start(client: &Client, args: &AppArgs) -> Result<i32, Failure> {
    let path = format!("/v1/apps/{}/plan", segment(named(args)?));
    let body = client.get(&path)?.or_told(args.json.json)?;
    let StartPlan { jobs, .. } = read(&body)?;
    let code = if jobs.iter().all(|job| job.node.is_some()) { 0 } else { FAILED };
    if args.json.json {
        print_json(&body)?;
        return Ok(code);
    }
    let row = |job: &PlannedStart| {
        let node = job.node.as_ref().map_or("-", |node| node.as_str()).to_owned();
        let note = match (&job.reason, job.runs) {
            (Some(reason), _) => (reason.clone(), Tint::Red),
            (None, true) => ("runs already".to_owned(), Tint::Plain),
            (None, false) => (String::new(), Tint::Plain),
        };
        let sequence = job.start_sequence.to_string();
        let plain = [sequence, job.job.to_string(), node].map(|text| (text, Tint::Plain));
        plain.into_iter().chain([note]).collect()
    };
    let mut page = Page::new();
    let rows: Vec<_> = jobs.iter().map(row).collect();
    page.table(&["SEQUENCE", "JOB", "NODE", "NOTE"], &rows);
    page.show()?;
    Ok(code)
}

/// Apps, how far they are, and what is wrong with them.
pub(crate) fn table(page: &mut Page, apps: &[AppStatus]) {
    let row = |app: &AppStatus| {
        let ((state, tint), (failure, bad)) = (phase(app.state), failure(app.failure));
        let name = (app.name.to_string(), Tint::Plain);
        vec![name, (state.to_owned(), tint), (failure.to_owned(), bad)]
    };
    let rows: Vec<_> = apps.iter().map(row).collect();
    page.table(&["APP", "STATE", "FAILURE"], &rows);
}

fn phase(phase: AppPhase) -> (&'static str, Tint) {
    match phase {
        AppPhase::Running => ("running", Tint::Green),
        AppPhase::Stopped => ("stopped", Tint::Plain),
        AppPhase::Starting => ("starting", Tint::Yellow),
        AppPhase::Stopping => ("stopping", Tint::Yellow),
        AppPhase::Backoff => ("backoff", Tint::Yellow),
    }
}

fn failure(failure: AppFailure) -> (&'static str, Tint) {
    match failure {
        AppFailure::None => ("-", Tint::Plain),
        AppFailure::Minor => ("minor", Tint::Yellow),
        AppFailure::Major => ("major", Tint::Red),
    }
}
