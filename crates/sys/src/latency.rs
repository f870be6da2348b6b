//! How soon a thread gets a processor once it has something to do.

use std::mem;

/// Asked for; the kernel's own is some milliseconds.
const SLICE_NS: u64 = 100_000;
const RESET_ON_FORK: u64 = 1;
/// How much nicer a thread is whose work can wait.
const GIVING_WAY: libc::c_int = 10;
/// The nice value of a thread whose work nobody should wait for.
const FIRST: libc::c_int = -10;

/// `struct sched_attr`, as far as every kernel has it.
#[repr(C)]
#[derive(Debug, Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Asks for short slices of time: this thread may then take a processor from one that computes as
/// soon as it wakes up, and gets no more of it in all (Linux 6.12; before, nothing happens). What
/// it starts does not inherit that. A thread that somebody has given another policy or a better
/// nice value is left alone: children would lose those too.
pub fn ask_for_short_slices() {
    let mut attributes = Attributes::default();
    let size = mem::size_of::<Attributes>() as u32;
    // SAFETY: the kernel fills and reads a record of ours whose size it is told; 0 is this thread.
    unsafe {
        let asked =
            libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0 as libc::c_uint);
        let usual = attributes.policy == libc::SCHED_OTHER as u32 && attributes.nice >= 0;
        if asked != 0 || !usual {
            return;
        }
        attributes.size = size;
        attributes.flags |= RESET_ON_FORK;
        attributes.runtime = SLICE_NS;
        libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0 as libc::c_uint);
    }
}

/// Runs this thread before all that compute, if we may (`CAP_SYS_NICE`) and nobody has chosen another
/// nice value for it. Call it after [`ask_for_short_slices`], so that nothing inherits it.
///
/// Without a cgroup for its processor time the kernel weighs sessions against each other, and nice
/// values only within one: then the session counts, where this process leads it.
pub fn go_first() {
    // SAFETY: numbers go in and come out. On Linux 0 is this thread alone.
    let (nice, leads) =
        unsafe { (libc::getpriority(libc::PRIO_PROCESS, 0), libc::getsid(0) == libc::getpid()) };
    if nice != 0 {
        return;
    }
    // SAFETY: as above.
    let may = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, FIRST) } == 0;
    if may && leads {
        // Not every kernel has it.
        let _ = std::fs::write("/proc/self/autogroup", FIRST.to_string());
    }
}

/// Runs this thread below the others of this process: what waits for it can wait, and a processor
/// goes to whoever answers somebody first.
pub fn give_way() {
    // SAFETY: one number goes in. On Linux it is this thread's alone.
    unsafe {
        libc::nice(GIVING_WAY);
    }
}
