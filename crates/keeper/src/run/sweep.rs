//! Killing what a dead keeper left behind.
//!
//! The kernel has killed its direct children. What they had started is found by the cgroups that
//! the run directory names, and by the cookie in their environment.

use crate::{process::tree, run::dirs};
use mainstay_sys::{cgroup, proc, signal};
use mainstay_wire::state::ContainerState;
use std::{
    fs,
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

/// Those that the state files of jobs name.
fn leaders(run_dir: &Path) -> Vec<u32> {
    let jobs = fs::read_dir(run_dir.join("jobs")).into_iter().flatten().filter_map(Result::ok);
    jobs.filter_map(|job| fs::read(job.path().join("state")).ok())
        .filter_map(|text| serde_json::from_slice::<ContainerState>(&text).ok()?.pid)
        .collect()
}

/// The leader of the group is gone and others are there. While a group has members nobody else can
/// get its number.
fn is_orphaned(leader: u32) -> bool {
    proc::is_dead(leader) && signal::send_group(leader, 0).is_ok()
}

/// Kills every cgroup, group and cookie holder; where the cgroups were.
fn kill(run_dir: &Path) -> Option<cgroup::Root> {
    let run = dirs::read_run_file(run_dir)?;
    if run.boot != proc::boot_id() {
        return None;
    }
    let root = run.cgroup.map(cgroup::Root::at);
    let leaders = leaders(run_dir);
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
            .filter(|pid| {
                *pid != own && !proc::is_dead(*pid) && tree::cookie(*pid, &run.run).is_some()
            })
            .collect();
        for pid in &holders {
            let _ = signal::send(*pid, tree::KILL);
        }
        // Asked first: one that dies in between is an orphaned group by then.
        let dying = leaders.iter().any(|leader| proc::is_dying(*leader));
        let groups: Vec<u32> = leaders.iter().copied().filter(|it| is_orphaned(*it)).collect();
        for group in &groups {
            let _ = signal::send_group(*group, tree::KILL);
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
