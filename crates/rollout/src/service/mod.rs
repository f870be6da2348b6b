//! Telling services, and asking how they are: units of systemd, by D-Bus or by signal files.
//!
//! ```text
//!  tell ─► Units (D-Bus: subscribe, queue, wait for that job, read what came of it)
//!            └─ no right to ─► SignalFiles (a path unit sees it, its helper does it; D-Bus tells the end)
//!  inspect ─► properties of the unit, children of its main process
//! ```
//!
//! A service that does not run is never started, but for the other instance of a flip-flop.

mod counts;
mod dbus;
mod names;
mod signal_files;
mod units;

pub use counts::{BadCounts, request_count};
pub use names::{instance_unit, unit_name};
pub use signal_files::{SignalFiles, Verb};
pub use units::{UnitError, UnitFacts, Units};

use mainstay_sys::proc;
use std::collections::BTreeSet;

/// The children of a main process, for the check `change-child-pid`.
#[must_use]
pub fn children(main_pid: u32) -> BTreeSet<u32> {
    proc::children(main_pid).into_iter().filter(|pid| !proc::is_dead(*pid)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn children_of_a_process_are_a_set_that_changes_with_them() {
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 1000 & sleep 1000 & wait; kill %1 %2"])
            .spawn()
            .expect("a shell");
        let two = mainstay_tests::until("two children", || {
            Some(children(shell.id())).filter(|it| it.len() == 2)
        });
        let one = *two.iter().next().expect("two");
        let pid = rustix::process::Pid::from_raw(one.cast_signed()).expect("a pid");
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("ours");
        mainstay_tests::until("one is gone", || (children(shell.id()).len() == 1).then_some(()));
        for pid in children(shell.id()) {
            let pid = rustix::process::Pid::from_raw(pid.cast_signed()).expect("a pid");
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("ours");
        }
        let _ = shell.kill();
        let _ = shell.wait();
        assert!(children(shell.id()).is_empty());
    }
}
