//! `mainstay start`, `stop`, `restart`, `kill`, `enable`, `disable` and `signal`.

use crate::{
    args::{ControlArgs, RestartArgs, SignalArgs, StartArgs},
    client::{Answer, Client, PROMPT},
    failure::{FAILED, Failure, USAGE},
    term::{Page, print_json, tell as tell_stderr},
};
use mainstay_net::percent::segment;
use mainstay_wire::api::{RestartRequest, SignalRequest, StartRequest};
use serde_json::{Value, json};
use std::{slice, thread};

/// So many jobs are asked for at a time.
const AT_ONCE: usize = 16;

pub(crate) fn control(verb: &str, args: &ControlArgs) -> Result<i32, Failure> {
    let client = Client::of(&args.node)?;
    let wait = args.wait.patience();
    if let Some(code) = missing(&client, &args.jobs, args.json.json)? {
        return Ok(code);
    }
    each(&args.jobs, args.json.json, |job| {
        let path = format!("/v1/jobs/{}/{verb}?{}", segment(job), query(args));
        client.post(&path, &json!({}), wait + PROMPT)
    })
}

/// How long to wait, and where to act.
fn query(args: &ControlArgs) -> String {
    let here = if args.here { "&here=true" } else { "" };
    format!("wait={}ms{here}", args.wait.patience().as_millis())
}

/// All names are looked up before anything is done; `Some`: one is not there.
fn missing(client: &Client, jobs: &[String], json: bool) -> Result<Option<i32>, Failure> {
    if jobs.len() < 2 {
        return Ok(None);
    }
    let answer = client.get(&format!("/v1/jobs/{}", list(jobs)))?;
    Ok(if answer.is_ok() { None } else { Some(tell("", &answer, json)?) })
}

/// Several names in one path.
fn list(jobs: &[String]) -> String {
    jobs.iter().map(|job| segment(job)).collect::<Vec<_>>().join(",")
}

pub(crate) fn stop(args: &ControlArgs) -> Result<i32, Failure> {
    together("stop", args, &json!({}))
}

pub(crate) fn start(args: &StartArgs) -> Result<i32, Failure> {
    for_one(&args.control, args.args.as_deref())?;
    let request = StartRequest { args: args.args.clone(), now: args.now };
    together("start", &args.control, &json!(request))
}

pub(crate) fn restart(args: &RestartArgs) -> Result<i32, Failure> {
    for_one(&args.control, args.args.as_deref())?;
    let request = RestartRequest { args: args.args.clone() };
    together("restart", &args.control, &json!(request))
}

fn for_one(control: &ControlArgs, args: Option<&[String]>) -> Result<(), Failure> {
    if args.is_some() && control.jobs.len() > 1 {
        let text = "arguments after -- are for one job: start the others without them";
        return Err(Failure::new(USAGE, text));
    }
    Ok(())
}

/// One request for all of them: those that wait for one another go in that order.
fn together(verb: &str, args: &ControlArgs, body: &Value) -> Result<i32, Failure> {
    let client = Client::of(&args.node)?;
    let wait = args.wait.patience();
    let path = format!("/v1/jobs/{}/{verb}?{}", list(&args.jobs), query(args));
    let answer = client.post(&path, body, wait + PROMPT)?;
    let name = match args.jobs.as_slice() {
        [one] => one.as_str(),
        _ => "",
    };
    tell(name, &answer, args.json.json)
}

pub(crate) fn signal(args: &SignalArgs) -> Result<i32, Failure> {
    let client = Client::of(&args.node)?;
    let body = json!(SignalRequest { signal: args.signal, to: Some(args.to) });
    if let Some(code) = missing(&client, &args.jobs, args.json.json)? {
        return Ok(code);
    }
    let here = if args.here { "?here=true" } else { "" };
    each(&args.jobs, args.json.json, |job| {
        client.post(&format!("/v1/jobs/{}/signal{here}", segment(job)), &body, PROMPT)
    })
}

/// Does one thing to every job, and fails if it failed for one.
pub(super) fn each(
    jobs: &[String],
    json: bool,
    ask: impl Fn(&str) -> Result<Answer, Failure> + Sync,
) -> Result<i32, Failure> {
    let mut code = 0;
    for some in jobs.chunks(AT_ONCE) {
        let answers: Vec<Result<Answer, Failure>> = thread::scope(|scope| {
            let asked: Vec<_> = some.iter().map(|job| scope.spawn(|| ask(job))).collect();
            asked.into_iter().map(|one| one.join().unwrap_or_else(|_| Err(lost()))).collect()
        });
        for (job, answer) in some.iter().zip(answers) {
            code = tell(job, &answer?, json)?.max(code);
        }
    }
    Ok(code)
}

fn lost() -> Failure {
    Failure::failed("the request was not carried through")
}

fn tell(name: &str, answer: &Answer, json: bool) -> Result<i32, Failure> {
    let ok = answer.is_ok();
    if json {
        print_json(&answer.body)?;
    } else if ok {
        let mut page = Page::new();
        for job in several(&answer.body) {
            let name = job["name"].as_str().unwrap_or(name);
            page.line(format!("{name}: {}", line(job)));
        }
        page.show()?;
    } else {
        let detail = answer.detail();
        // Most of them begin with the name already.
        let named = detail.strip_prefix(name).is_some_and(|rest| rest.starts_with(' '));
        let about = if name.is_empty() || named { String::new() } else { format!("{name}: ") };
        tell_stderr(&format!("{about}{detail}"));
    }
    Ok(if ok { 0 } else { FAILED })
}

/// What an answer is about: one, or the list of them that a name stands for.
pub(crate) fn several(body: &Value) -> &[Value] {
    body["jobs"].as_array().map_or(slice::from_ref(body), Vec::as_slice)
}

fn line(job: &Value) -> String {
    if let Some(copy) = job["placed"]["copies"].as_array().and_then(|copies| copies.first()) {
        let word = |key: &str| copy[key].as_str().unwrap_or("?");
        return format!("{} on {}", word("state"), word("node"));
    }
    format!("{}{}", process(job), of_node(job))
}

/// The node of the fleet that has answered.
fn of_node(job: &Value) -> String {
    job["node"].as_str().map_or(String::new(), |node| format!(", on {node}"))
}

fn process(job: &Value) -> String {
    let state = job["state"].as_str().unwrap_or("?");
    let checked = job["checks"].as_array().is_some_and(|checks| !checks.is_empty());
    let healthy = if checked && job["health"] == "healthy" { ", healthy" } else { "" };
    match (job["pid"].as_u64(), job["exit"]["code"].as_i64()) {
        (Some(pid), _) => format!("{state}{healthy}, pid {pid}"),
        (None, Some(code)) if state == "EXITED" => format!("{state}, exit code {code}"),
        (None, _) => state.to_owned(),
    }
}
