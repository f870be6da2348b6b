//! Waits for jobs to appear and to go, without any help from the jobs.
//!
//! A job is a process whose name (`comm`, the file it executed) is the job's: the harness copies
//! `sleep` under a name that nothing else on the machine has.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use rustix::process::Pid;

use super::connector::Connector;
use super::poll::Poll;
use super::{Event, Instant, tree};
use crate::failure::{Failure, Result};

/// When nothing was executed for so long, it is time to look who is there.
const QUIET: Duration = Duration::from_millis(25);

#[derive(Debug)]
pub(crate) struct Watch {
    source: Source,
}

#[derive(Debug)]
enum Source {
    Connector(Connector),
    Poll(Poll),
}

impl Watch {
    pub(crate) fn open() -> Watch {
        let source = match Connector::open() {
            Some(connector) => Source::Connector(connector),
            None => {
                eprintln!("warning: no process events from this kernel; times are polled, +-1 ms");
                Source::Poll(Poll::default())
            }
        };
        Watch { source }
    }

    fn next(&mut self, timeout: Duration) -> Option<Event> {
        match &mut self.source {
            Source::Connector(connector) => connector.next(timeout),
            Source::Poll(poll) => poll.next(timeout),
        }
    }

    /// Forgets what happened until now.
    pub(crate) fn drain(&mut self) {
        while self.next(Duration::ZERO).is_some() {}
    }

    /// Waits until `count` processes called `name` live; says when the first and the last were executed.
    /// Names are looked up when the machine falls quiet, not while it works. Gives up when `root`,
    /// who is to start them, is gone.
    pub(crate) fn wait_for_jobs(
        &mut self,
        root: Pid,
        name: &str,
        count: usize,
        limit: Duration,
    ) -> Result<Jobs> {
        let start = Instant::now();
        let mut executed: HashMap<Pid, Instant> = HashMap::new();
        let mut jobs: HashMap<Pid, Instant> = HashMap::new();
        let mut looked = start;
        loop {
            let now = Instant::now();
            match self.next(QUIET) {
                Some(Event::Exec(pid, at)) => {
                    executed.insert(pid, at);
                    if now.seconds_since(looked) < 0.25 {
                        continue;
                    }
                }
                Some(Event::Exit(pid, _)) => {
                    executed.remove(&pid);
                    jobs.remove(&pid);
                    continue;
                }
                None => {}
            }
            looked = now;
            executed.retain(|pid, at| {
                let found = tree::name(*pid).as_deref() == Some(name);
                if found {
                    jobs.insert(*pid, *at);
                }
                !found
            });
            if jobs.len() >= count {
                let last = jobs.values().max().copied().unwrap_or(start);
                let first = jobs.values().min().copied().unwrap_or(start);
                return Ok(Jobs { first, last, pids: jobs.into_keys().collect() });
            }
            let over = now.seconds_since(start) > limit.as_secs_f64();
            if over || !tree::alive(root) {
                return Err(Failure::new(format!(
                    "{} and saw {} of {count} × {name}{}",
                    if over { format!("waited {limit:?}") } else { "it ended early".into() },
                    jobs.len(),
                    if self.lost() { " (process events were lost)" } else { "" }
                )));
            }
        }
    }

    /// Waits for one more process called `name` to be executed.
    pub(crate) fn wait_for_exec(&mut self, name: &str, limit: Duration) -> Option<(Pid, Instant)> {
        let start = Instant::now();
        while Instant::now().seconds_since(start) < limit.as_secs_f64() {
            if let Some(Event::Exec(pid, at)) = self.next(limit)
                && tree::name(pid).as_deref() == Some(name)
            {
                return Some((pid, at));
            }
        }
        None
    }

    /// Waits until all of `pids` are gone; says when the last one ended.
    pub(crate) fn wait_for_exits(&mut self, pids: &[Pid], limit: Duration) -> Result<Instant> {
        let start = Instant::now();
        let mut last = start;
        let mut left: HashSet<Pid> = pids.iter().copied().collect();
        while !left.is_empty() {
            match self.next(Duration::from_millis(50)) {
                Some(Event::Exit(pid, at)) if left.remove(&pid) => last = last.max(at),
                Some(Event::Exit(..) | Event::Exec(..)) => {}
                None => {
                    tree::reap();
                    left.retain(|pid| tree::alive(*pid));
                }
            }
            if Instant::now().seconds_since(start) > limit.as_secs_f64() {
                return Err(Failure::new(format!(
                    "{} of {} processes were alive after {limit:?}",
                    left.len(),
                    pids.len()
                )));
            }
        }
        Ok(last)
    }

    fn lost(&self) -> bool {
        match &self.source {
            Source::Connector(connector) => connector.lost,
            Source::Poll(_) => false,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Jobs {
    pub first: Instant,
    pub last: Instant,
    pub pids: Vec<Pid>,
}
