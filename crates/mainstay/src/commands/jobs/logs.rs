//! `mainstay logs`: reads the files directly, so it needs neither agent nor keeper. Only for a node
//! elsewhere is its agent asked.

use crate::{args::LogsArgs, client::Client, dirs, failure::Failure, term::JobLines};
use mainstay_net::percent::segment;
use mainstay_wire::{
    api::LogLine,
    logs::{self, Entry, Lines, Wanted},
    stamp::rfc3339,
};
use serde_json::Value;
use std::{
    io::{self, BufRead},
    path::Path,
    thread,
    time::Duration,
};

/// A line that was written is shown after so long.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

pub(crate) fn logs(args: &LogsArgs) -> Result<i32, Failure> {
    let client = Client::of(&args.node)?;
    match client.run_dir() {
        Some(run_dir) => local(args, run_dir),
        None => remote(args, &client),
    }
}

fn local(args: &LogsArgs, run_dir: &Path) -> Result<i32, Failure> {
    let named = args.node.dir.run_dir.is_some();
    let root = dirs::existing_state_dir(args.state_dir.as_deref(), run_dir, named)?.join("logs");
    let mut names = Vec::new();
    for name in &args.jobs {
        names.extend(meant(&root, name, args.follow)?);
    }
    let everything = names.is_empty();
    if !args.follow && everything && read_failed(&root, logs::all(&root))?.is_empty() {
        return Err(Failure::failed(format!("no job has written anything to {}", root.display())));
    }
    let wanted = Wanted { lines: args.lines, since: args.since };
    let (backlog, mut followers) = read_failed(&root, logs::open(&root, &names, wanted))?;
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

/// The job of this name; else the instances of it, as far as they have written anything.
fn meant(root: &Path, name: &str, follow: bool) -> Result<Vec<String>, Failure> {
    let dir = root.join(name);
    if !name.contains('/') && dir.is_dir() {
        return Ok(vec![name.to_owned()]);
    }
    let is_instance = |other: &String| {
        let number = other.strip_prefix(name).and_then(|rest| rest.strip_prefix('-'));
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let mut instances = read_failed(root, logs::all(root))?;
    instances.retain(is_instance);
    match instances.is_empty() {
        false => Ok(instances),
        true if follow && !name.contains('/') => Ok(vec![name.to_owned()]),
        true => Err(Failure::failed(format!(
            "'{name}' has written nothing: there is no {}",
            dir.display()
        ))),
    }
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
