//! What was told so far, as far as it matters for what may be told next.

use super::keeper::Keeper;
use mainstay_core::{
    event::{During, Event, Tone},
    exit::Exit,
    job::{Desired, Job, Phase},
};
use std::collections::BTreeSet;

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Account {
    last_exit_told: u64,
    pub ended_untold: BTreeSet<u64>,
    stopping: bool,
    /// Its process has passed.
    healthy: bool,
    /// It has been healthy since it was last judged anew.
    was_healthy: bool,
    /// What people asked for last: that it runs, or that it rests.
    pub wanted: Option<bool>,
}

/// What the ledger wants to know of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Told {
    Exit(u64),
    LostEnd,
    Stopping,
    /// With the incarnation whose end it tells, if it had one.
    Stopped(Option<u64>),
    Healthy,
    Unhealthy,
}

impl Told {
    pub fn of(event: &Event) -> Option<Told> {
        let lost =
            |exit: &Exit| matches!(exit, Exit::Error { error, .. } if error == "its end was lost");
        let end = event.kind.run_end();
        if end.is_some_and(|end| lost(end.exit)) {
            return Some(Told::LostEnd);
        }
        let name = event.kind.name();
        match (name.during()?, name.tone()) {
            (During::Stop, _) => Some(Told::Stopping),
            (During::Gone, _) => Some(Told::Stopped(end.map(|end| end.incarnation))),
            (During::Run, _) if end.is_some() => end.map(|end| Told::Exit(end.incarnation)),
            (During::Run, Tone::Good) => Some(Told::Healthy),
            (During::Run, Tone::Bad) => Some(Told::Unhealthy),
            (During::Run, Tone::Plain) | (During::Wait, _) => None,
        }
    }
}

impl Account {
    /// Says which promise it breaks.
    pub fn note(&mut self, told: Told, alive: bool) -> Option<&'static str> {
        use std::mem::replace;
        let (wrong, text) = match told {
            Told::Exit(incarnation) if incarnation <= self.last_exit_told => {
                (true, "an exit is told twice")
            }
            Told::Exit(incarnation) => {
                self.last_exit_told = incarnation;
                self.healthy = false;
                (!self.ended_untold.remove(&incarnation), "an exit is told that never was")
            }
            Told::LostEnd => (true, "an end is lost"),
            Told::Stopping => (replace(&mut self.stopping, true), "stopping is told twice"),
            Told::Stopped(_) if alive => (true, "stopped is told while a process lives"),
            Told::Stopped(incarnation) => {
                if let Some(incarnation) = incarnation {
                    self.last_exit_told = self.last_exit_told.max(incarnation);
                    self.ended_untold.remove(&incarnation);
                }
                self.healthy = false;
                (!replace(&mut self.stopping, false), "stopped is told without stopping")
            }
            Told::Healthy => {
                self.was_healthy = true;
                (replace(&mut self.healthy, true), "healthy is told twice of a process")
            }
            Told::Unhealthy => {
                self.healthy = false;
                (!self.was_healthy, "unhealthy is told of what was not healthy")
            }
        };
        wrong.then_some(text)
    }

    /// Every end was told, and people got what they asked for last.
    pub fn is_settled(&self, job: &Job, stopping: bool, waits: bool) -> bool {
        let heard = match self.wanted {
            Some(false) => job.desired() == Desired::Rest,
            Some(true) => stopping || waits || job.phase() != Phase::Stopped,
            None => true,
        };
        heard && self.ended_untold.is_empty()
    }
}

/// Desired and observed are the same, or there is something to wait for; and the keeper agrees.
pub(super) fn agree(job: &Job, keeper: &Keeper, at: usize, waits: bool) -> bool {
    let live = keeper.jobs[at].live.as_ref().map(|live| live.incarnation);
    match job.desired() {
        Desired::Run if waits => live.is_none(),
        Desired::Run => job.phase() == Phase::Running && live == Some(job.incarnation()),
        Desired::Rest | Desired::Disabled => {
            let rests = job.phase().is_at_rest();
            rests && live.is_none() && !keeper.jobs[at].open
        }
    }
}
