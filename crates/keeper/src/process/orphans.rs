//! Adopted orphans that carry the cookie of a job: a part of its tree where it has no cgroup.
//!
//! The kernel lists children one by one, which takes milliseconds where there are thousands. So
//! those who died together are looked after together, and an order to many jobs looks once.

use crate::{
    keeper::Keeper,
    process::tree::{self, Tree},
};
use mainstay_core::name::Name;
use mainstay_sys::{clock, cookie};

/// So long (ns) what was seen is good enough. Less than it takes until a tree is looked at again,
/// so that who is asked for then has been looked for since the death of their leader.
const FRESH: u64 = 10_000_000;

#[derive(Debug, Default)]
pub(crate) struct Orphans {
    /// When they were looked for (CLOCK_BOOTTIME, ns).
    at: u64,
    /// With the names of their jobs.
    found: Vec<(u32, String)>,
}

impl Orphans {
    fn of(&self, job: &Name) -> Vec<u32> {
        let own = self.found.iter().filter(|(_, name)| name == job.as_str());
        own.map(|(pid, _)| *pid).collect()
    }
}

impl Keeper {
    /// Looks for them now.
    pub(crate) fn look_for_orphans(&mut self) {
        let adopted = tree::adopted(|pid| self.children.contains_key(&pid));
        let named = |pid: u32| Some((pid, cookie::of_job(pid, &self.context.run)?));
        let found = adopted.into_iter().filter_map(named).collect();
        self.orphans = Orphans { at: clock::boottime(), found };
    }

    /// The tree of the job is its group and whoever of it was adopted.
    pub(crate) fn may_have_orphans(&self, id: u64) -> bool {
        let process = self.jobs.get(&id).and_then(|job| job.process.as_ref());
        process.is_some_and(|process| matches!(process.tree, Tree::Group))
    }

    /// Those of a job, as they were a moment ago.
    pub(crate) fn orphans_of(&mut self, id: u64) -> Vec<u32> {
        if !self.may_have_orphans(id) {
            return Vec::new();
        }
        if clock::boottime().saturating_sub(self.orphans.at) > FRESH {
            self.look_for_orphans();
        }
        self.jobs.get(&id).map_or_else(Vec::new, |job| self.orphans.of(&job.name))
    }
}
