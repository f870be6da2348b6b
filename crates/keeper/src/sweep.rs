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

/// Kills every cgroup, group and cookie holder of the run that this directory belongs to.
pub fn kill_all(run_dir: &Path) {
    let Some(run) = dirs::read_run_file(run_dir) else { return };
    if run.boot != proc::boot_id() {
        return;
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
    if let Some(root) = root {
        root.remove();
    }
}
