//! What the kernel knows about keeper and agent. Whatever it does not tell is left out.

use mainstay_sys::{clock, proc};

#[derive(Debug)]
pub(crate) struct Processes {
    pub(crate) agent: Process,
    pub(crate) keeper: Option<Process>,
}

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) cpu_seconds: Option<f64>,
    pub(crate) resident: Option<u64>,
    pub(crate) open_files: Option<u64>,
    /// For how long it has been there, in seconds.
    pub(crate) age: Option<f64>,
}

impl Processes {
    pub(crate) fn look() -> Processes {
        let keeper = proc::parent(std::process::id());
        Processes { agent: Process::look(std::process::id()), keeper: keeper.map(Process::look) }
    }
}

impl Process {
    fn look(pid: u32) -> Process {
        Process {
            cpu_seconds: proc::cpu_time(pid).map(|ns| ns as f64 / 1e9),
            resident: proc::resident(pid),
            open_files: proc::open_files(pid),
            age: proc::started(pid).map(|at| clock::boottime().saturating_sub(at) as f64 / 1e9),
        }
    }
}

/// The wall clock, in seconds since the epoch.
pub(crate) fn now() -> f64 {
    clock::wall() as f64 / 1e9
}
