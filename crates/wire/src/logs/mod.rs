//! Reading what jobs have written, from the files that the keeper writes.
//!
//! Used by the command, which needs neither agent nor keeper for it, and by the route that does the
//! same for those who are elsewhere.

mod configured;
mod entry;
mod files;
mod follow;

pub use configured::ConfiguredJobs;
pub use entry::{Entry, Joiner};

use files::Files;
use follow::Follower;
use std::{
    collections::BTreeMap,
    fs, io,
    iter::Peekable,
    path::{Path, PathBuf},
};

/// Our own log, shown only to those who ask for it.
pub const OWN: &str = "mainstay";
/// Shown of each job unless more is asked for.
const LINES: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lines {
    All,
    Last(usize),
}

/// Neither a number of lines nor all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("use a number or `all`")]
pub struct LinesError;

impl std::str::FromStr for Lines {
    type Err = LinesError;

    fn from_str(text: &str) -> Result<Lines, LinesError> {
        match text {
            "all" => Ok(Lines::All),
            _ => text.parse().map(Lines::Last).map_err(|_| LinesError),
        }
    }
}

/// The part of the logs that is wanted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted {
    /// Of each job; default: the last 100, with `since` all.
    pub lines: Option<Lines>,
    /// Only what is younger: wall clock, ns.
    pub since: Option<i64>,
}

/// Whose logs are wanted.
#[derive(Debug)]
pub enum LogsOf {
    Named(Vec<String>),
    /// All that there are and will be.
    Everybody,
    /// The same, as far as they are jobs of the configuration.
    Configured(ConfiguredJobs),
}

type Entries = Peekable<Box<dyn Iterator<Item = Entry> + Send>>;

/// What was written before, in the order of its times.
pub struct Backlog(Vec<(String, Entries)>);

/// What is written from then on.
#[derive(Debug)]
pub struct Followers {
    root: PathBuf,
    logs_of: LogsOf,
    of: BTreeMap<String, Follower>,
}

impl std::fmt::Debug for Backlog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// Every job that has a directory in `root`.
///
/// # Errors
/// It cannot be read.
pub fn all(root: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name != OWN)
        .collect();
    names.sort();
    Ok(names)
}

/// Empties the log that lies in this directory: closed files go, and the current one is cut off
/// where it begins, so that whoever writes into it goes on there and loses nothing.
///
/// # Errors
/// Some of it could not be removed.
pub fn clear(dir: &Path) -> io::Result<()> {
    for (_, path) in files::closed(dir)? {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    match fs::OpenOptions::new().write(true).truncate(true).open(dir.join(files::CURRENT)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

impl LogsOf {
    /// Those that have written by now, or were named.
    ///
    /// # Errors
    /// The directory of the logs cannot be read.
    pub fn names(&mut self, root: &Path) -> io::Result<Vec<String>> {
        Ok(match self {
            LogsOf::Named(names) => names.clone(),
            LogsOf::Everybody => all(root)?,
            LogsOf::Configured(jobs) => {
                let mut names = all(root)?;
                jobs.retain(&mut names);
                names
            }
        })
    }
}

/// What they have written, and what they go on writing.
///
/// # Errors
/// It cannot be read.
pub fn open(root: &Path, logs_of: LogsOf, wanted: Wanted) -> io::Result<(Backlog, Followers)> {
    let mut logs_of = logs_of;
    let names = logs_of.names(root)?;
    let lines = wanted.lines.unwrap_or(match wanted.since {
        Some(_) => Lines::All,
        None => Lines::Last(LINES),
    });
    let mut followers = Followers { root: root.to_owned(), logs_of, of: BTreeMap::new() };
    let mut streams = Vec::new();
    for name in names {
        let files = Files::open(root.join(&name), lines)?;
        followers.of.insert(name.clone(), files.follower());
        let entries: Box<dyn Iterator<Item = Entry> + Send> =
            Box::new(files.entries().filter(younger(wanted)));
        streams.push((name, entries.peekable()));
    }
    Ok((Backlog(streams), followers))
}

/// What has no time is shown: nobody knows better.
fn younger(wanted: Wanted) -> impl Fn(&Entry) -> bool + Send {
    let since = wanted.since.map(crate::stamp::rfc3339);
    move |entry| match (&entry.time, &since) {
        (Some(time), Some(since)) => time >= since,
        (None, _) | (_, None) => true,
    }
}

impl Iterator for Backlog {
    type Item = (String, Entry);

    fn next(&mut self) -> Option<(String, Entry)> {
        let next = self.0.iter_mut().enumerate();
        let next = next.filter_map(|(at, (_, entries))| Some((entries.peek()?.time.clone(), at)));
        let (_, at) = next.min()?;
        let (name, entries) = &mut self.0[at];
        Some((name.clone(), entries.next()?))
    }
}

impl Followers {
    /// What was written since the last time; nothing: there is no more for now.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn read(&mut self) -> io::Result<Vec<(String, Entry)>> {
        // Jobs may appear later.
        for name in self.logs_of.names(&self.root)? {
            let dir = self.root.join(&name);
            self.of.entry(name).or_insert_with(|| Follower::from_beginning(dir));
        }
        let mut fresh: Vec<(String, Entry)> = Vec::new();
        for (name, follower) in &mut self.of {
            fresh.extend(follower.read()?.into_iter().map(|entry| (name.clone(), entry)));
        }
        fresh.sort_by(|(_, one), (_, other)| one.time.cmp(&other.time));
        Ok(fresh)
    }
}
