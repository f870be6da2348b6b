//! How a reign begins.
//!
//! A node that becomes master does nothing before all that take part follow it, or have had the time
//! to: in that time a second one that has claimed at the same moment yields. Until it begins it says
//! no work, and whoever follows it says the last that it knows: so it goes on where the one before
//! was, also if it has joined late or its own agent was replaced.

use super::{Fleet, Master, Work};
use crate::clock::Mono;
use std::{sync::Arc, time::Duration};

/// All that take part follow a new master in this time.
const GATHER: Duration = Duration::from_secs(1);

impl Fleet {
    /// Whether this node has become master and does not act yet.
    pub(super) fn gathers(&mut self, now: Mono) -> bool {
        let Some(since) = self.gathers_since else { return false };
        let all = self.peers.running().all(|(_, facts)| facts.term == self.term);
        if !all && now.since(since) < GATHER {
            return true;
        }
        self.gathers_since = None;
        // By now it has heard what the others know.
        let begin = |term| Master::new(term, self.last_work.as_deref(), now);
        self.master = self.term.clone().map(begin);
        false
    }

    pub(super) fn gathers_until(&self) -> Option<Mono> {
        self.gathers_since.map(|since| since.after(GATHER))
    }

    /// What a master has in hand; or what the one before had, for a master that says nothing of it.
    pub(super) fn work_to_say(&mut self, now: Mono) -> Option<Arc<Work>> {
        match &mut self.master {
            Some(_) if self.gathers_since.is_some() => None,
            Some(master) => Some(master.work(now)),
            None => {
                let facts = self.peers.facts(&self.term.as_ref()?.master)?;
                self.last_work.clone().filter(|_| facts.work.is_none())
            }
        }
    }
}
