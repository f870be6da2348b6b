//! Killing what a dead keeper left behind.
//!
//! The kernel has killed its direct children. What they had started is found by the cgroups that
//! the run directory names, and by the cookie in their environment.

use crate::{dirs, tree};
use mainstay_sys::{cgroup, proc, signal};
use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

/// Kills what is left of the run that this directory belonged to.
pub(crate) fn kill_all(run_dir: &Path) {
    if let Some(root) = kill(run_dir) {
        root.remove();
    }
}

/// As an agent whose keeper is dead: kills all but itself, and leaves the cgroup that it lives in.
pub fn kill_all_and_leave(run_dir: &Path) {
    if let Some(root) = kill(run_dir) {
        root.leave();
    }
}

/// Kills every cgroup, group and cookie holder; where the cgroups were.
fn kill(run_dir: &Path) -> Option<cgroup::Root> {
    let run = dirs::read_run_file(run_dir)?;
    if run.boot != proc::boot_id() {
        return None;
    }
    let root = run.cgroup.map(cgroup::Root::at);
    let end = Instant::now() + Duration::from_secs(2);
    loop {
        let groups = root.as_ref().map(cgroup::Root::all_jobs).unwrap_or_default();
        let populated: Vec<_> = groups.iter().filter(|group| group.populated()).collect();
        for group in &populated {
            group.kill();
        }
        let own = signal::own_pid();
        let holders: Vec<u32> = proc::all()
            .into_iter()
            .filter(|pid| {
                *pid != own && !proc::is_dead(*pid) && tree::cookie(*pid, &run.run).is_some()
            })
            .collect();
        for pid in &holders {
            let _ = signal::send(*pid, tree::KILL);
        }
        if populated.is_empty() && holders.is_empty() || Instant::now() > end {
            break;
        }
        // Nobody tells us when a process that is not our child has gone.
        thread::sleep(Duration::from_millis(5));
    }
    root
}
