//! The process that renders, from inside: `mainstay __render`, from its limits to an exit code.

use super::{MEMORY, SECONDS, work};
use mainstay_sys::{memory::set_oom_score, signal::set_default};
use rustix::{
    process::{
        DumpableBehavior, Resource, Rlimit, Signal, getrlimit, set_dumpable_behavior,
        set_parent_process_death_signal, setrlimit,
    },
    time::{ClockId, clock_gettime},
};
use std::{
    fs::{self, File},
    io::{self, BufWriter},
    os::fd::AsFd,
};

/// Of a process that ends by itself, and has not done what it was told.
const FAILED: i32 = 1;
/// Of one that has found a mistake of ours.
const PANICKED: i32 = 101;

/// When memory runs out, this process goes before all others.
const FIRST_TO_GO: i32 = 1000;

#[must_use]
pub fn serve() -> i32 {
    // What it would tell may be a secret, and an abort means something else.
    std::panic::set_hook(Box::new(|_| std::process::exit(PANICKED)));
    let served = limit().and_then(|()| {
        let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        work::serve(io::stdin().lock(), BufWriter::new(output), limit_time)
    });
    match served {
        Ok(()) => 0,
        Err(_) => FAILED,
    }
}

/// Before anything is read: what it is given is for nobody else, and no more than this is taken.
fn limit() -> io::Result<()> {
    // Who has no stack left dies of that, and not of an abort, as who has no memory.
    set_default(Signal::SEGV.as_raw());
    // A container may have less than the limit. First: to what cannot be dumped its own /proc is not
    // open either.
    set_oom_score(FIRST_TO_GO);
    limit_to(Resource::As, address_space()?.saturating_add(MEMORY))?;
    limit_to(Resource::Core, 0)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// For the template that is next.
fn limit_time() -> io::Result<()> {
    let used = u64::try_from(clock_gettime(ClockId::ProcessCPUTime).tv_sec).unwrap_or(0);
    let maximum = getrlimit(Resource::Cpu).maximum;
    let current = used.saturating_add(SECONDS).min(maximum.unwrap_or(u64::MAX));
    Ok(setrlimit(Resource::Cpu, Rlimit { current: Some(current), maximum })?)
}

fn limit_to(resource: Resource, most: u64) -> io::Result<()> {
    let most = most.min(getrlimit(resource).maximum.unwrap_or(u64::MAX));
    Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
}

/// What the program takes by itself.
fn address_space() -> io::Result<u64> {
    let statm = fs::read_to_string("/proc/self/statm")?;
    let pages = statm.split(' ').next().and_then(|it| it.parse::<u64>().ok());
    let size = u64::try_from(rustix::param::page_size()).unwrap_or(u64::MAX);
    pages.map(|it| it.saturating_mul(size)).ok_or_else(|| io::ErrorKind::InvalidData.into())
}
