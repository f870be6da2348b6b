//! Nodes of a fleet, whoever makes it: how they are started and looked at; and what is then done to
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rustix::process::{Pid, Signal};

use crate::failure::{Failure, Result};
use crate::peer::Who;
use crate::process::{Instant, tree};

/// Longer than any fleet needs.
const LIMIT: f64 = 120.0;

/// How one kind of fleet is started and looked at.
pub(super) trait Nodes {
    fn who(&self) -> Who;

    fn count(&self) -> usize;

    /// All jobs that there are.
    fn jobs(&self) -> usize;

    fn launch(&self, number: usize) -> Result<Pid>;

    /// How a node sees the fleet. `None`: it does not answer.
    fn seen_by(&self, number: usize) -> Option<View>;
}

/// A fleet as one of its nodes sees it.
#[derive(Debug, Clone, Default)]
pub(super) struct View {
    /// All work is done, and it waits for the next.
    pub(super) rests: bool,
    pub(super) running: BTreeSet<usize>,
    pub(super) master: Option<usize>,
    /// Where each job runs that runs on one node.
    pub(super) homes: BTreeMap<String, usize>,
}

/// Seconds from the end of a node.
#[derive(Debug)]
pub(super) struct Loss {
    /// Until another one says that it is lost.
    pub(super) seen: f64,
    /// Until all that it ran runs on others.
    pub(super) elsewhere: f64,
}

pub(super) struct Fleet<N: Nodes> {
    pub(super) nodes: N,
    pub(super) roots: Vec<Pid>,
    begun: Instant,
}

impl<N: Nodes> Fleet<N> {
    pub(super) fn start(nodes: N) -> Result<Fleet<N>> {
        let mut fleet = Fleet { nodes, roots: Vec::new(), begun: Instant::now() };
        for number in 0..fleet.nodes.count() {
            let root = fleet.nodes.launch(number)?;
            fleet.roots.push(root);
        }
        Ok(fleet)
    }

    pub(super) fn until(&self, what: &str, mut is: impl FnMut() -> bool) -> Result<Instant> {
        let begun = Instant::now();
        while !is() {
            if Instant::now().seconds_since(begun) > LIMIT {
                return Err(Failure::new(format!("a fleet: {what} did not come")));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(Instant::now())
    }

    /// Seconds from the start until all nodes see all nodes and all jobs run.
    pub(super) fn await_all(&self) -> Result<f64> {
        let (count, jobs) = (self.nodes.count(), self.nodes.jobs());
        let is_whole =
            |view: View| view.rests && view.running.len() == count && view.homes.len() == jobs;
        let all = || (0..count).all(|number| self.nodes.seen_by(number).is_some_and(is_whole));
        let at = self.until("all of it running", all)?;
        Ok(at.seconds_since(self.begun))
    }

    pub(super) fn master(&self) -> Result<usize> {
        let view = (0..self.nodes.count()).find_map(|number| self.nodes.seen_by(number));
        let master = view.and_then(|view| view.master);
        master.ok_or_else(|| Failure::new("a fleet without a master"))
    }

    /// One that is not the master and runs something.
    pub(super) fn servant(&self) -> Result<usize> {
        let master = self.master()?;
        let view = self.nodes.seen_by(master).unwrap_or_default();
        let servant = view.homes.values().copied().find(|home| *home != master);
        servant.ok_or_else(|| Failure::new("the master runs everything"))
    }

    /// Kills a node with all that it has, waits for the others, and brings it back.
    pub(super) fn lose(&mut self, victim: usize) -> Result<Loss> {
        let watcher = (victim + 1) % self.nodes.count();
        let before = self.nodes.seen_by(watcher).unwrap_or_default().homes;
        let lost: Vec<String> =
            before.into_iter().filter(|(_, home)| *home == victim).map(|(job, _)| job).collect();
        let mut all = tree::descendants(self.roots[victim]);
        all.push(self.roots[victim]);
        let begun = Instant::now();
        all.iter().for_each(|pid| tree::kill(*pid, Signal::KILL));
        let mut seen = None;
        let elsewhere = self.until("the jobs elsewhere", || {
            let Some(view) = self.nodes.seen_by(watcher) else { return false };
            if seen.is_none() && !view.running.contains(&victim) {
                seen = Some(Instant::now());
            }
            lost.iter().all(|job| view.homes.get(job).is_some_and(|home| *home != victim))
        })?;
        let seen = seen.unwrap_or(elsewhere);
        tree::reap();
        self.roots[victim] = self.nodes.launch(victim)?;
        self.await_all()?;
        Ok(Loss { seen: seen.seconds_since(begun), elsewhere: elsewhere.seconds_since(begun) })
    }
}

impl<N: Nodes> Drop for Fleet<N> {
    fn drop(&mut self) {
        tree::kill_all();
    }
}
