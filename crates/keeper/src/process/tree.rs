//! The tree of a job: every process that belongs to one incarnation.
//!
//! With a cgroup that is exactly who is in it. Without one it is the process group, plus adopted
//! descendants that carry the cookie (`MAINSTAY_RUN`, `MAINSTAY_JOB`) in their environment.

use mainstay_core::plan::SignalTarget;
use mainstay_sys::{cgroup::Group, cookie, proc, signal};
use mainstay_wire::link::{self, Stray};
use std::collections::HashSet;

pub(crate) const KILL: i32 = 9;

#[derive(Debug, Clone)]
pub(crate) enum Tree {
    Cgroup {
        group: Group,
        /// It was killed as a whole: the next incarnation needs another one.
        spent: bool,
    },
    Group,
}

impl Tree {
    pub(crate) fn new(group: Option<Group>) -> Tree {
        group.map_or(Tree::Group, |group| Tree::Cgroup { group, spent: false })
    }

    pub(crate) fn group(&self) -> Option<&Group> {
        match self {
            Tree::Cgroup { group, .. } => Some(group),
            Tree::Group => None,
        }
    }

    /// Nobody is left: makes room for the next incarnation.
    pub(crate) fn clean(&self) {
        if let Tree::Cgroup { group, spent: true } = self {
            group.remove();
        }
    }

    pub(crate) fn kind(&self) -> link::TreeKind {
        match self {
            Tree::Cgroup { .. } => link::TreeKind::Cgroup,
            Tree::Group => link::TreeKind::Group,
        }
    }

    /// What all of it has used, where somebody counts: nanoseconds.
    pub(crate) fn cpu_time(&self) -> Option<u64> {
        self.group()?.cpu_time()
    }

    /// Signals cannot be refused for lack of anybody to take them: then they did their work.
    pub(crate) fn signal(
        &self,
        leader: u32,
        number: i32,
        target: SignalTarget,
        orphans: impl FnOnce() -> Vec<u32>,
    ) {
        match (target, self) {
            (SignalTarget::Leader, _) => drop(signal::send(leader, number)),
            (SignalTarget::Group, _) => drop(signal::send_group(leader, number)),
            (SignalTarget::Tree, Tree::Cgroup { group, .. }) => {
                for pid in group.procs() {
                    let _ = signal::send(pid, number);
                }
            }
            (SignalTarget::Tree, Tree::Group) => {
                let _ = signal::send_group(leader, number);
                for pid in orphans() {
                    let _ = signal::send(pid, number);
                }
            }
        }
    }

    pub(crate) fn kill(&mut self, leader: u32, orphans: impl FnOnce() -> Vec<u32>) {
        // The group too: a child that is still on its way into the cgroup is in it already.
        let _ = signal::send_group(leader, KILL);
        match self {
            Tree::Cgroup { group, spent } => {
                *spent = true;
                group.kill();
            }
            Tree::Group => {
                for pid in orphans() {
                    let _ = signal::send(pid, KILL);
                }
            }
        }
    }

    /// Whether nobody is left, once the leader itself has been reaped.
    pub(crate) fn gone(&self, leader: u32, orphans: impl FnOnce() -> Vec<u32>) -> bool {
        match self {
            Tree::Cgroup { group, .. } => !group.populated(),
            Tree::Group => signal::send_group(leader, 0).is_err() && orphans().is_empty(),
        }
    }
}

/// Living children of ours that we did not start: adopted orphans.
pub(crate) fn adopted(known: impl Fn(u32) -> bool) -> Vec<u32> {
    let children = proc::own_children();
    children.into_iter().filter(|pid| !known(*pid) && !proc::is_dead(*pid)).collect()
}

/// Adopted orphans that no job accounts for.
pub(crate) fn strays(
    adopted: &[u32],
    run: &str,
    in_cgroups: &HashSet<u32>,
    jobs: impl Fn(&str) -> bool,
) -> Vec<Stray> {
    let unaccounted = adopted.iter().filter(|pid| {
        !in_cgroups.contains(pid) && !cookie::of_job(**pid, run).is_some_and(|job| jobs(&job))
    });
    unaccounted.map(|pid| Stray { pid: *pid, command: proc::command(*pid) }).collect()
}
