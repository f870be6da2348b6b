//! What a new agent finds: the journal says what was decided, the keeper says what exists.
//!
//! A decision is journaled before its commands are carried out, and an exit record is acknowledged
//! after the decision that follows from it is journaled. So a command may be missing (and is said
//! again), an exit may be unheard (and its record follows), but nothing the keeper has done is
//! unknown, unless the journal lost its tail. Then the keeper is ahead, and what it holds is
//! adopted; what it neither holds nor has a record of ended without anybody knowing how.
//!
//! | journal | keeper | then |
//! |---|---|---|
//! | may have a process | has it | go on; waits are set again |
//! | may have a process | had it | its exit record follows |
//! | may have a process | had it, and has no record | its end was lost, as if it had failed |
//! | STARTING, unconfirmed | never had it | the spawn was lost: again |
//! | up | never had it | it is lost, as if it had failed |
//! | STOPPING | never had it | the spawn was lost, and need not be: STOPPED |
//! | at rest | keeps its control socket open | told that it rests |
//! | any | has a newer one | adopted |
//! | any | had a newer one | the number is taken; its exit record may follow |

use crate::node::Held;
use std::cmp::Ordering;

/// What the keeper has of a job, seen from the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Takeover {
    keeper: Keeper,
    /// The keeper has no process of it, and no record of an end that would follow.
    silent: bool,
    /// The incarnation that is alive, and its pid.
    live: Option<(u64, u32)>,
    /// Its control socket is open.
    open: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeper {
    /// It has seen a later incarnation.
    Ahead { highest: u64 },
    /// It has seen this incarnation.
    Level,
    /// It has never seen this incarnation.
    Behind,
}

impl Takeover {
    /// `held`: what the keeper has of it, if it ever had anything.
    pub(super) fn new(incarnation: u64, held: Option<&Held>) -> Takeover {
        let live = held.and_then(|held| held.live);
        let highest = held.map_or(0, |held| held.highest);
        let highest = live.map_or(highest, |(incarnation, _)| highest.max(incarnation));
        let keeper = match highest.cmp(&incarnation) {
            Ordering::Greater => Keeper::Ahead { highest },
            Ordering::Equal => Keeper::Level,
            Ordering::Less => Keeper::Behind,
        };
        let silent = live.is_none() && !held.is_some_and(|held| held.pending);
        Takeover { keeper, silent, live, open: held.is_some_and(|held| held.open) }
    }

    pub(super) fn keeper(self) -> Keeper {
        self.keeper
    }

    /// The incarnation that is alive, and its pid.
    pub(super) fn live(self) -> Option<(u64, u32)> {
        self.live
    }

    /// The keeper has no process of it, and no record of an end that would follow.
    pub(super) fn is_silent(self) -> bool {
        self.silent
    }

    pub(super) fn is_open(self) -> bool {
        self.open
    }

    /// A process that the journal knows of is gone without a word.
    pub(super) fn is_over(self) -> bool {
        match self.keeper {
            Keeper::Ahead { .. } | Keeper::Level => self.silent,
            Keeper::Behind => false,
        }
    }
}
