//! `mainstay logs`: reads the files directly, so it needs neither agent nor keeper. Only for a node
//! elsewhere is its agent asked, and for jobs that the fleet has there.

use crate::{
    args::LogsArgs,
    client::{Client, read},
    context::context,
    dirs::{self, UserEnv},
    failure::Failure,
    term::JobLines,
};
use mainstay_config::nearest;
use mainstay_core::name::stands_for;
use mainstay_net::percent::segment;
use mainstay_wire::{
    api::{FleetStatus, LogLine, PlacedStatus},
    logs::{self, ConfiguredJobs, Entry, Lines, LogsOf, Wanted},
    run_dir::started_jobs,
    stamp::rfc3339,
};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    io::{self, BufRead},
    path::Path,
    thread,
    time::Duration,
};

/// A line that was written is shown after so long.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// An agent that has not said by then where jobs are is not waited for: the files are there.
const FLEET: Duration = Duration::from_millis(500);

pub(crate) fn logs(args: &LogsArgs) -> Result<i32, Failure> {
    let client = Client::of(&args.node)?;
    match client.run_dir() {
        Some(run_dir) if !is_elsewhere(args, &client) => local(args, run_dir),
        Some(_) | None => remote(args, &client),
    }
}

/// The fleet has one of these jobs on another node. Without an answer the files here are read.
fn is_elsewhere(args: &LogsArgs, client: &Client) -> bool {
    if args.jobs.is_empty() || args.here || args.state_dir.is_some() || !client.is_there() {
        return false;
    }
    let Ok(answer) = client.get_within("/v1/fleet", FLEET) else { return false };
    let Ok(fleet) = read::<FleetStatus>(&answer.body) else { return false };
    let is_named =
        |job: &&PlacedStatus| args.jobs.iter().any(|name| stands_for(name, job.job.as_str()));
    let named = fleet.jobs.iter().filter(is_named);
    let mut homes = named.filter_map(|job| job.last_home(&fleet.node));
    homes.any(|home| *home != fleet.node)
}

fn local(args: &LogsArgs, run_dir: &Path) -> Result<i32, Failure> {
    let candidates = UserEnv::of_process()?.candidates(&args.node.dir)?;
    let state_dir = dirs::existing_state_dir(args.state_dir.as_deref(), run_dir, &candidates)?;
    let root = state_dir.join("logs");
    let mut names = Vec::new();
    for name in &args.jobs {
        names.extend(meant(&root, name, args, run_dir)?);
    }
    let mut logs_of = match names.is_empty() {
        false => LogsOf::Named(names),
        true => configured(args, run_dir, &state_dir),
    };
    if !args.follow && read_failed(&root, logs_of.names(&root))?.is_empty() {
        return Err(nothing(&root));
    }
    let wanted = Wanted { lines: args.lines, since: args.since };
    let (backlog, mut followers) = read_failed(&root, logs::open(&root, logs_of, wanted))?;
    let mut printer = Printer::new(args);
    for (name, entry) in backlog {
        printer.show(&name, &entry)?;
    }
    printer.flush()?;
    if !args.follow {
        return Ok(0);
    }
    loop {
        let fresh = read_failed(&root, followers.read())?;
        for (name, entry) in &fresh {
            printer.show(name, entry)?;
        }
        printer.flush()?;
        if fresh.is_empty() {
            thread::sleep(LOOK_AGAIN);
        }
    }
}

/// The jobs of the configuration, if it can be told whose logs these are.
fn configured(args: &LogsArgs, run_dir: &Path, state_dir: &Path) -> LogsOf {
    let others = dirs::state_dir_of(run_dir).is_some_and(|its| !is_same(&its, state_dir));
    if args.all || others {
        return LogsOf::Everybody;
    }
    let started = started_jobs(run_dir);
    let written = written_jobs(args.node.dir.config.as_deref());
    let at_rest = match (started.is_empty(), written) {
        (true, None) => None,
        (false, None) => Some(started),
        (_, Some(written)) => Some(&started | &written),
    };
    LogsOf::Configured(ConfiguredJobs::new(run_dir, at_rest))
}

fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or(path.to_owned());
    real(one) == real(other)
}

/// The jobs that the configuration has, as it is written now; `None`: there is none that is valid.
fn written_jobs(config: Option<&Path>) -> Option<BTreeSet<String>> {
    let context = context();
    let path = mainstay_config::find(config, &context).ok()?;
    let loaded = mainstay_config::load(&path, &context).ok()?;
    Some(loaded.plan.jobs.iter().map(|job| job.name.to_string()).collect())
}

fn nothing(root: &Path) -> Failure {
    let shown = root.display();
    match logs::all(root).is_ok_and(|all| !all.is_empty()) {
        true => Failure::failed(format!(
            "no job of this configuration has written anything to {shown}; --all shows those of \
             earlier ones"
        )),
        false => Failure::failed(format!("no job has written anything to {shown}")),
    }
}

/// The job of this name; else the instances of it, as far as they have written anything.
fn meant(root: &Path, name: &str, args: &LogsArgs, run_dir: &Path) -> Result<Vec<String>, Failure> {
    let dir = root.join(name);
    if !name.contains('/') && dir.is_dir() {
        return Ok(vec![name.to_owned()]);
    }
    let all = read_failed(root, logs::all(root))?;
    let instances: Vec<String> =
        all.iter().filter(|other| stands_for(name, other)).cloned().collect();
    if !instances.is_empty() {
        return Ok(instances);
    }
    if args.follow && !name.contains('/') {
        return Ok(vec![name.to_owned()]);
    }
    let mut known = started_jobs(run_dir);
    if known.is_empty() {
        known = written_jobs(args.node.dir.config.as_deref()).unwrap_or_default();
    }
    let is_known = known.iter().any(|job| stands_for(name, job));
    known.extend(all);
    let near = nearest(name, known.iter().map(String::as_str)).filter(|_| !is_known);
    let near = near.map_or_else(String::new, |near| format!(": did you mean '{near}'?"));
    let dir = dir.display();
    Err(Failure::failed(format!("'{name}' has written nothing: there is no {dir}{near}")))
}

fn read_failed<T>(dir: &Path, read: io::Result<T>) -> Result<T, Failure> {
    read.map_err(|error| Failure::of(format!("cannot read the logs in {}", dir.display()), error))
}

fn remote(args: &LogsArgs, client: &Client) -> Result<i32, Failure> {
    let mut path = format!("/v1/logs?format=json&follow={}", args.follow);
    if let Some(lines) = args.lines {
        path.push_str(&match lines {
            Lines::All => "&lines=all".to_owned(),
            Lines::Last(count) => format!("&lines={count}"),
        });
    }
    if let Some(since) = args.since {
        path.push_str(&format!("&since={}", segment(&rfc3339(since))));
    }
    if args.all {
        path.push_str("&all=true");
    }
    if args.here {
        path.push_str("&here=true");
    }
    if !args.jobs.is_empty() {
        let names: Vec<String> = args.jobs.iter().map(|name| segment(name)).collect();
        path.push_str(&format!("&jobs={}", names.join(",")));
    }
    let stream = client.stream(&path, None)?;
    let mut printer = Printer::new(args);
    for line in stream.lines() {
        // Cut off: what comes next may be another agent, and nobody knows how far this one got.
        let Ok(line) = line else { break };
        printer.pass(&line)?;
        if args.follow {
            printer.flush()?;
        }
    }
    printer.flush()?;
    Ok(0)
}

struct Printer {
    out: JobLines,
    /// The one job that was asked for: its lines need no name before them.
    only: Option<String>,
    json: bool,
}

impl Printer {
    fn new(args: &LogsArgs) -> Printer {
        let only = match args.jobs.as_slice() {
            [one] => Some(one.clone()),
            [] | [_, ..] => None,
        };
        Printer { out: JobLines::new(), only, json: args.json.json }
    }

    fn show(&mut self, job: &str, entry: &Entry) -> Result<(), Failure> {
        match self.json {
            true => self.out.raw(&LogLine::of(job, entry).to_json()),
            false => self.line(job, &entry.text),
        }
    }

    /// A line as the API sends it.
    fn pass(&mut self, line: &str) -> Result<(), Failure> {
        if self.json {
            return self.out.raw(line);
        }
        let entry: Value = serde_json::from_str(line).unwrap_or_default();
        let text = |key: &str| entry[key].as_str().unwrap_or_default();
        self.line(text("job"), text("text").as_bytes())
    }

    fn line(&mut self, job: &str, text: &[u8]) -> Result<(), Failure> {
        let prefix = match &self.only {
            Some(only) if only == job => String::new(),
            Some(_) | None => format!("{job} |"),
        };
        self.out.line(&prefix, text)
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.out.flush()
    }
}
