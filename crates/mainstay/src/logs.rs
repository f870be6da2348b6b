//! `mainstay logs`: reads the files directly, so it needs neither agent nor keeper.

mod entry;
mod files;
mod follow;

use crate::{
    args::{Lines, LogsArgs},
    dirs,
    failure::Failure,
    term::{Tint, stdout_color, tinted},
};
use entry::Entry;
use files::Files;
use follow::Follower;
use mainstay_wire::stamp::rfc3339;
use serde_json::json;
use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write},
    iter::Peekable,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

/// A line that was written is shown after so long.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Our own log, shown only to those who ask for it.
const OWN: &str = "mainstay";
/// Shown of each job unless more is asked for.
const LINES: usize = 100;

pub(crate) fn logs(args: &LogsArgs) -> Result<i32, Failure> {
    let run_dir = dirs::run_dir(args.node.run_dir.as_deref())?;
    let root = dirs::existing_state_dir(args.state_dir.as_deref(), &run_dir)?.join("logs");
    let names = match args.jobs.is_empty() {
        true => all(&root)?,
        false => args.jobs.clone(),
    };
    if !args.follow && names.is_empty() {
        return Err(Failure::failed(format!("no job has written anything to {}", root.display())));
    }
    let mut printer = Printer::new(args.jobs.len() != 1, args.json.json);
    let mut streams = Vec::new();
    let mut followers = BTreeMap::new();
    for name in &names {
        let files = open(&root, name, args)?;
        followers.insert(name.clone(), files.follower());
        streams.push((name.clone(), files.entries().filter(younger(args)).peekable()));
    }
    merge(streams, &mut printer)?;
    if args.follow {
        follow(&root, args.jobs.is_empty(), followers, &mut printer)?;
    }
    Ok(0)
}

/// What has no time is shown: nobody knows better.
fn younger(args: &LogsArgs) -> impl Fn(&Entry) -> bool + use<> {
    let since = args.since.and_then(|since| i64::try_from(since.as_nanosecond()).ok()).map(rfc3339);
    move |entry| match (&entry.time, &since) {
        (Some(time), Some(since)) => time >= since,
        (None, _) | (_, None) => true,
    }
}

/// Every job that has a directory here.
fn all(root: &Path) -> Result<Vec<String>, Failure> {
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Failure::of(format!("cannot read {}", root.display()), error)),
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name != OWN)
        .collect();
    names.sort();
    Ok(names)
}

fn open(root: &Path, name: &str, args: &LogsArgs) -> Result<Files, Failure> {
    let dir = root.join(name);
    let known = !name.contains('/') && (dir.is_dir() || args.follow);
    if !known {
        return Err(Failure::failed(format!(
            "'{name}' has written nothing: there is no {}",
            dir.display()
        )));
    }
    let lines = args.lines.unwrap_or(match args.since {
        Some(_) => Lines::All,
        None => Lines::Last(LINES),
    });
    read_failed(&dir, Files::open(dir.clone(), lines))
}

fn read_failed<T>(dir: &Path, read: io::Result<T>) -> Result<T, Failure> {
    read.map_err(|error| Failure::of(format!("cannot read the logs in {}", dir.display()), error))
}

/// Prints entries of several jobs in the order of their times.
fn merge<I: Iterator<Item = Entry>>(
    mut streams: Vec<(String, Peekable<I>)>,
    printer: &mut Printer,
) -> Result<(), Failure> {
    loop {
        let next = streams
            .iter_mut()
            .enumerate()
            .filter_map(|(at, (_, entries))| Some((entries.peek()?.time.clone(), at)))
            .min();
        let Some((_, at)) = next else { return printer.flush() };
        let (name, entries) = &mut streams[at];
        if let Some(entry) = entries.next() {
            printer.show(name, &entry)?;
        }
    }
}

fn follow(
    root: &Path,
    everything: bool,
    mut followers: BTreeMap<String, Follower>,
    printer: &mut Printer,
) -> Result<(), Failure> {
    loop {
        if everything {
            for name in all(root)? {
                let dir: PathBuf = root.join(&name);
                followers.entry(name).or_insert_with(|| Follower::from_beginning(dir));
            }
        }
        let mut fresh: Vec<(String, Entry)> = Vec::new();
        for (name, follower) in &mut followers {
            let entries = read_failed(root, follower.read())?;
            fresh.extend(entries.into_iter().map(|entry| (name.clone(), entry)));
        }
        fresh.sort_by(|(_, one), (_, other)| one.time.cmp(&other.time));
        for (name, entry) in &fresh {
            printer.show(name, entry)?;
        }
        printer.flush()?;
        if fresh.is_empty() {
            thread::sleep(LOOK_AGAIN);
        }
    }
}

struct Printer {
    out: io::BufWriter<io::Stdout>,
    named: bool,
    json: bool,
    color: bool,
}

impl Printer {
    fn new(named: bool, json: bool) -> Printer {
        Printer { out: io::BufWriter::new(io::stdout()), named, json, color: stdout_color() }
    }

    fn show(&mut self, job: &str, entry: &Entry) -> Result<(), Failure> {
        let written = if self.json {
            let line = json!({
                "time": entry.time,
                "job": job,
                "stream": entry.stream,
                "text": String::from_utf8_lossy(&entry.text),
            });
            writeln!(self.out, "{line}")
        } else {
            let prefix = match self.named {
                true => format!("{} ", tinted(&format!("{job} |"), Tint::Cyan, self.color)),
                false => String::new(),
            };
            self.out
                .write_all(prefix.as_bytes())
                .and_then(|()| self.out.write_all(&entry.text))
                .and_then(|()| self.out.write_all(b"\n"))
        };
        told(written)
    }

    fn flush(&mut self) -> Result<(), Failure> {
        told(self.out.flush())
    }
}

/// A reader that went away has seen what it wanted.
fn told(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(Failure::of("cannot write to stdout", error)),
        Ok(()) => Ok(()),
    }
}
