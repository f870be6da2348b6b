//! Killing what a dead keeper left behind.
//!
//! The kernel has killed its direct children. What they had started is found by the cgroups that
//! the run directory names, by the groups of its leaders, and by the cookie in their environment.

use crate::{cgroup, cookie, proc, signal};
use std::{
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

/// A run whose keeper is dead, as far as its directory tells.
#[derive(Debug)]
pub struct DeadRun {
    pub run: String,
    /// The boot of the machine that it belonged to.
    pub boot: String,
    pub cgroup: Option<PathBuf>,
    /// Leaders of the process groups of its jobs.
    pub leaders: Vec<u32>,
}

impl DeadRun {
    /// Kills what is left of it.
    pub fn kill(&self) {
        if let Some(root) = kill(self) {
            root.remove();
        }
    }

    /// As one of it, its agent: kills all but itself, and leaves the cgroup that it lives in.
    pub fn kill_and_leave(&self) {
        if let Some(root) = kill(self) {
            root.leave();
        }
    }
}

/// The leader of the group is gone and others are there. While a group has members nobody else can
/// get its number.
fn is_orphaned(leader: u32) -> bool {
    proc::is_dead(leader) && signal::send_group(leader, 0).is_ok()
}

/// Kills every cgroup, group and cookie holder; where the cgroups were.
fn kill(run: &DeadRun) -> Option<cgroup::Root> {
    if run.boot != proc::boot_id() {
        return None;
    }
    let root = run.cgroup.clone().map(cgroup::Root::at);
    let leaders = &run.leaders;
    let end = Instant::now() + Duration::from_secs(2);
    loop {
        let groups = root.as_ref().map(cgroup::Root::all).unwrap_or_default();
        let populated: Vec<_> = groups.iter().filter(|group| group.populated()).collect();
        for group in &populated {
            group.kill();
        }
        let own = signal::own_pid();
        let holders: Vec<u32> = proc::all()
            .into_iter()
            .filter(|pid| *pid != own && !proc::is_dead(*pid) && cookie::of_run(*pid, &run.run))
            .collect();
        for pid in &holders {
            let _ = signal::send(*pid, libc::SIGKILL);
        }
        // Asked first: one that dies in between is an orphaned group by then.
        let dying = leaders.iter().any(|leader| proc::is_dying(*leader));
        let groups: Vec<u32> = leaders.iter().copied().filter(|it| is_orphaned(*it)).collect();
        for group in &groups {
            let _ = signal::send_group(*group, libc::SIGKILL);
        }
        let nobody = populated.is_empty() && holders.is_empty() && groups.is_empty() && !dying;
        if nobody || Instant::now() > end {
            break;
        }
        // Nobody tells us when a process that is not our child has gone.
        thread::sleep(Duration::from_millis(5));
    }
    root
}
