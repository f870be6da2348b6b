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

/// The first process of a tree, which names the group.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Leader {
    /// Not reaped: the pid is its own, whether it lives or not.
    Held(u32),
    /// The pid may be somebody else's by now.
    Reaped(u32),
}

impl Leader {
    fn signal_group(self, number: i32) {
        match self {
            // One that was cloned a moment ago has no group yet, and would miss it.
            Leader::Held(pid) if signal::send_group(pid, number).is_err() => {
                let _ = signal::send(pid, number);
            }
            Leader::Held(_) => {}
            Leader::Reaped(pid) => {
                let _ = signal::send_group(pid, number);
            }
        }
    }
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

    /// Signals cannot be refused for lack of anybody to take them: then they did their work. The
    /// leader has not been reaped.
    pub(crate) fn signal(
        &self,
        leader: u32,
        number: i32,
        target: SignalTarget,
        orphans: impl FnOnce() -> Vec<u32>,
    ) {
        match (target, self) {
            (SignalTarget::Leader, _) => drop(signal::send(leader, number)),
            (SignalTarget::Group, _) => Leader::Held(leader).signal_group(number),
            (SignalTarget::Tree, Tree::Cgroup { group, .. }) => {
                let procs = group.procs();
                if procs.is_empty() {
                    // Still on its way into the cgroup.
                    Leader::Held(leader).signal_group(number);
                }
                for pid in procs {
                    let _ = signal::send(pid, number);
                }
            }
            (SignalTarget::Tree, Tree::Group) => {
                Leader::Held(leader).signal_group(number);
                for pid in orphans() {
                    let _ = signal::send(pid, number);
                }
            }
        }
    }

    pub(crate) fn kill(&mut self, leader: Leader, orphans: impl FnOnce() -> Vec<u32>) {
        // The group too: a child that is still on its way into the cgroup is in it already.
        leader.signal_group(KILL);
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

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_sys::{
        reap::{ExitStatus, reap},
        spawn::Bare,
    };
    use std::{
        thread,
        time::{Duration, Instant},
    };

    /// As a child is between its clone and its session: in the group of whoever cloned it.
    fn without_group() -> u32 {
        let sleep = ["/bin/sleep", "1000"].map(str::to_owned);
        Bare::new(&sleep, 3).and_then(|bare| bare.start()).expect("sleep can be started")
    }

    /// How it ends, in good time.
    fn end_of(pid: u32) -> ExitStatus {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            if let Ok(death) = reap(pid) {
                return death.how;
            }
            assert!(Instant::now() < deadline, "it runs on");
            thread::yield_now();
        }
    }

    #[test]
    fn a_stop_signal_reaches_a_process_that_has_no_group_yet() {
        for target in [SignalTarget::Leader, SignalTarget::Group, SignalTarget::Tree] {
            let pid = without_group();
            Tree::Group.signal(pid, 15, target, Vec::new);
            assert_eq!(end_of(pid), ExitStatus::Signal(15), "{target:?}");
        }
    }

    #[test]
    fn so_does_a_kill() {
        let pid = without_group();
        Tree::Group.kill(Leader::Held(pid), Vec::new);
        assert_eq!(end_of(pid), ExitStatus::Signal(KILL));
    }

    #[test]
    fn whoever_has_the_pid_of_a_reaped_leader_is_not_touched() {
        let pid = without_group();
        Tree::Group.kill(Leader::Reaped(pid), Vec::new);
        signal::send(pid, 15).expect("it is there");
        assert_eq!(end_of(pid), ExitStatus::Signal(15));
    }
}
