//! Cookies: variables by which a process that has got away is known as one of a run.

use crate::proc;

pub const RUN: &str = "MAINSTAY_RUN";
pub const JOB: &str = "MAINSTAY_JOB";
/// Tells what a task has started from what its job has.
pub const TASK: &str = "MAINSTAY_TASK";

fn is_of(pid: u32, run: &str) -> bool {
    proc::environ(pid, RUN).is_some_and(|found| found == run)
}

/// Whether a process was started in this run.
#[must_use]
pub fn of_run(pid: u32, run: &str) -> bool {
    is_of(pid, run) && [JOB, TASK].iter().any(|name| proc::environ(pid, name).is_some())
}

/// The job whose cookie a process of this run carries.
#[must_use]
pub fn of_job(pid: u32, run: &str) -> Option<String> {
    is_of(pid, run).then(|| proc::environ(pid, JOB))?
}

/// The task whose cookie a process of this run carries.
#[must_use]
pub fn of_task(pid: u32, run: &str) -> Option<u64> {
    is_of(pid, run).then(|| proc::environ(pid, TASK))??.parse().ok()
}
