//! What a placed job has said, wherever it runs, for those on other nodes who wait for it.
//!
//! A copy tells with the facts of its node what the job has said in its life ([`JobSaid`]). Of the
//! nodes that are gone the others tell it, for as long as there is no later copy ([`Departed`]). So
//! a condition is met by state that is said again, and not by a message that can be lost.
//!
//! | of several copies | that one counts |
//! |---|---|
//! | some run | of those, the one that was ordered last |
//! | none does | the one that was ordered last: its last life |
//!
//! `stopping` and `stopped` are no part of it: those are heard where the job runs, and nowhere else.

use super::{CopyState, Fleet, JobCopy, NodeFacts, Number, OrderKind, PeerState, RunId, Shared};
use crate::{
    clock::Mono,
    event::{EventName, History},
    name::Name,
    plan::Awaited,
};
use serde::{Deserialize, Serialize};
use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

/// What a job has said in its life.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobSaid {
    /// What latches ask for.
    #[serde(skip_serializing_if = "History::is_empty")]
    latches: History,
    /// For triggers.
    #[serde(skip_serializing_if = "LastEvents::is_empty")]
    last: LastEvents,
    /// Its process has passed its checks: it can be followed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    up: bool,
}

/// The number of the last event of each kind, as its node counts them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct LastEvents(Vec<(u32, u64)>);

/// A copy on another node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteCopy {
    /// The node, and its run; `None`: that node is gone.
    pub home: Option<(Name, RunId)>,
    pub state: CopyState,
    pub said: JobSaid,
}

/// The last copies of nodes that are gone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Departed(Shared<BTreeMap<Name, DepartedCopy>>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct DepartedCopy {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    order: Option<Number>,
    #[serde(default)]
    latches: History,
}

impl LastEvents {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn note(&mut self, event: Awaited, seq: u64) {
        let Some(bit) = event.name().filter(|it| !it.ends()).and_then(EventName::bit) else {
            return;
        };
        match self.0.iter_mut().find(|(it, _)| *it == bit) {
            Some(last) => last.1 = seq,
            None => self.0.push((bit, seq)),
        }
    }

    pub(crate) fn highest(&self) -> u64 {
        self.0.iter().map(|(_, seq)| *seq).max().unwrap_or(0)
    }

    /// Whether this one was said after that number.
    pub(crate) fn has_after(&self, event: Awaited, seq: u64) -> bool {
        let bit = event.name().and_then(EventName::bit);
        self.0.iter().any(|(it, last)| Some(*it) == bit && *last > seq)
    }
}

impl JobSaid {
    pub(crate) fn new(mut latches: History, last: LastEvents, up: bool) -> JobSaid {
        latches.forget_end();
        JobSaid { latches, last, up }
    }

    #[must_use]
    pub fn is_up(&self) -> bool {
        self.up
    }

    #[must_use]
    pub fn has(&self, event: Awaited) -> bool {
        self.latches.has(event)
    }

    pub(crate) fn last(&self) -> &LastEvents {
        &self.last
    }

    pub(crate) fn latches(&self) -> History {
        self.latches
    }
}

impl JobCopy {
    /// What the job has said in its life. Of a node that does not tell, what follows from its state.
    #[must_use]
    pub fn said(&self) -> JobSaid {
        self.said.as_deref().cloned().unwrap_or_else(|| {
            let up = self.state == CopyState::Running && !self.awaits_health;
            let mut latches = History::default();
            if up {
                latches.note(Awaited::UP);
            }
            JobSaid::new(latches, LastEvents::default(), up)
        })
    }

    /// There is something of it, or was.
    pub(super) fn counts(&self) -> bool {
        self.incarnation > 0 || self.state.is_active()
    }

    fn rank(&self) -> (bool, Option<&Number>) {
        (self.state.is_active(), self.order.as_ref())
    }
}

impl Departed {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A node is gone: these are its last facts.
    pub(super) fn add(&mut self, facts: &NodeFacts) {
        for (job, copy) in facts.jobs.iter().filter(|(_, copy)| copy.counts()) {
            let (order, latches) = (copy.order.clone(), copy.said().latches);
            self.take(job, DepartedCopy { order, latches });
        }
    }

    pub(super) fn merge(&mut self, other: &Departed) {
        if !self.0.is(&other.0) {
            other.0.iter().for_each(|(job, copy)| self.take(job, copy.clone()));
            self.0.share(&other.0);
        }
    }

    /// Where both are equal they become one.
    pub(super) fn share(&mut self, with: &Departed) {
        self.0.share(&with.0);
    }

    fn take(&mut self, job: &Name, copy: DepartedCopy) {
        if self.0.get(job).is_none_or(|mine| copy.order > mine.order) {
            self.0.edit().insert(job.clone(), copy);
        }
    }

    /// What it has said in the life that goes on elsewhere.
    pub(super) fn said(&self, job: &Name) -> JobSaid {
        let latches = self.0.get(job).map(|it| it.latches).unwrap_or_default();
        JobSaid::new(latches, LastEvents::default(), false)
    }
}

impl Fleet {
    /// It has met all those that the others take part with: what it does not know of is not there.
    #[must_use]
    pub fn has_met_all(&self) -> bool {
        self.met_all
    }

    pub(super) fn meet_all(&mut self, now: Mono) {
        let meets = self.resuming_until.is_some() || self.meets_until(now).is_some();
        if self.met_all || !self.in_sync || meets {
            return;
        }
        self.look_for_unmet();
        self.met_all = self.unmet.is_none();
    }

    /// Somebody whom another one takes part with, and this node has not met or has lost.
    pub(super) fn look_for_unmet(&mut self) {
        let is_missing = |node: &Name| match self.peers.state(node) {
            PeerState::Running | PeerState::Isolated => false,
            PeerState::Unknown | PeerState::Checking | PeerState::Silent => *node != self.me.name,
        };
        // As long as the same one is missing there is no need to look at all.
        let still = |(by, node): &(Name, Name)| {
            self.peers.facts(by).is_some_and(|it| it.peers.contains(node)) && is_missing(node)
        };
        if self.unmet.as_ref().is_some_and(still) {
            return;
        }
        self.unmet = self.peers.running().find_map(|(by, facts)| {
            let node = facts.peers.iter().find(|it| is_missing(it))?;
            Some((by.clone(), node.clone()))
        });
    }

    /// A placed job that has its copy on another node, or had it last; `None`: what there is of it is
    /// here.
    #[must_use]
    pub fn elsewhere(&self, job: &Name) -> Option<RemoteCopy> {
        let own = self.jobs.get(job).filter(|copy| copy.counts()).map(JobCopy::rank);
        let copies = self.copies_of_others(job);
        let best = copies.max_by_key(|(node, _, copy)| (copy.rank(), Reverse(*node)));
        let rank = best.as_ref().map(|(_, _, copy)| copy.rank());
        let departed = self.departed.0.get(job).map(|it| (false, it.order.as_ref()));
        let highest = own.max(rank).max(departed);
        let nowhere = |said| RemoteCopy { home: None, state: CopyState::Stopped, said };
        // A user's request takes back what was said before it launches anything.
        let (runs, last) = highest.unwrap_or_default();
        if !runs && self.is_launched_after(job, last) {
            return Some(nowhere(JobSaid::default()));
        }
        match best {
            _ if highest.is_none() || highest == own => None,
            Some((node, run, copy)) if highest == rank => {
                let home = Some((node.clone(), run.clone()));
                Some(RemoteCopy { home, state: copy.state, said: copy.said() })
            }
            Some(_) | None => Some(nowhere(self.departed.said(job))),
        }
    }

    fn copies_of_others<'a>(
        &'a self,
        job: &'a Name,
    ) -> impl Iterator<Item = (&'a Name, &'a RunId, &'a JobCopy)> {
        let copies = self.peers.running().filter_map(move |(node, facts): (_, &Arc<NodeFacts>)| {
            Some((node, &facts.run, facts.jobs.get(job)?))
        });
        copies.filter(|(_, _, copy)| copy.counts())
    }

    /// The master has ordered it anew, and the copy that shows it is not known yet.
    fn is_launched_after(&self, job: &Name, last: Option<&Number>) -> bool {
        let orders = self.followed_work().into_iter().flat_map(|work| work.orders.of(job));
        orders.into_iter().any(|(_, order)| match order.what {
            OrderKind::Start { fails_over: false, .. } => Some(&order.number) > last,
            OrderKind::Start { fails_over: true, .. } | OrderKind::Stop => false,
        })
    }

    /// What there is a later copy of needs no memory.
    pub(super) fn forget_departed(&mut self) {
        if self.departed.is_empty() {
            return;
        }
        let has_later = |(job, it): &(&Name, &DepartedCopy)| {
            let later = |copy: &JobCopy| {
                copy.state.is_active() || (copy.order.is_some() && copy.order >= it.order)
            };
            let own = self.jobs.get(*job).is_some_and(later);
            own || self.copies_of_others(job).any(|(_, _, copy)| later(copy))
        };
        let known = self.departed.0.iter().filter(has_later);
        let known: Vec<Name> = known.map(|(job, _)| job.clone()).collect();
        for job in known {
            self.departed.0.edit().remove(&job);
        }
    }
}
