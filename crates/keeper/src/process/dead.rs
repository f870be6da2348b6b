//! Who of our children has died.
//!
//! Signals of children that die together merge: one tells of one of them. The kernel finds the others
//! by looking at every child that there is, which takes the longer the more there are. So whom a
//! signal names is reaped at once, and the others are looked for a moment later, when what follows
//! from his death is done; unless there are others for sure, or somebody waits for them.

use crate::{event_loop::deadline::Deadline, keeper::Keeper};
use mainstay_sys::reap;
use std::time::Duration;

/// Longer than a restart takes, and nothing that anybody would notice.
const SOON: Duration = Duration::from_millis(3);

#[derive(Debug, Default)]
pub(crate) struct Dead {
    /// They are going to be looked for.
    pending: bool,
    /// There were such when they were looked for last: many die together.
    merge: bool,
}

impl Keeper {
    /// Children have died: these, and whose signals have merged with theirs.
    pub(crate) fn reap_all(&mut self, named: &[u32]) {
        let mut strangers = false;
        for &pid in named {
            match self.children.contains_key(&pid) {
                true if reap::is_dead(pid) => self.child_died(pid),
                true => {}
                // An orphan that we adopted.
                false => strangers = true,
            }
        }
        self.flush_agent();
        if strangers || self.dead.merge || self.waits_for_dead() {
            self.look_for_dead();
        } else if !std::mem::replace(&mut self.dead.pending, true) {
            self.deadlines.after(SOON, Deadline::Dead);
        }
    }

    /// Looks for all of them.
    pub(crate) fn look_for_dead(&mut self) {
        let mut found = false;
        while let Some(pid) = reap::peek() {
            self.child_died(pid);
            found = true;
        }
        self.dead = Dead { pending: false, merge: found };
        self.recheck_all();
        self.clear_leftovers();
    }

    /// The same, if that is still to be done.
    pub(crate) fn look_for_pending_dead(&mut self) {
        if self.dead.pending {
            self.look_for_dead();
        }
    }

    /// Something goes on when the last of them is gone.
    fn waits_for_dead(&mut self) -> bool {
        let node_waits = self.node().is_none_or(|node| {
            node.stopping_alone || node.ending.is_some() || node.upgrade.is_some()
        });
        // Without cgroups whom we adopt belongs to the tree of a job.
        let adopts = self.context.cgroup.is_none();
        adopts || node_waits || !self.clearing.is_empty() || !self.leftovers.is_empty()
    }
}
