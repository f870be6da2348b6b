//! The points at which a test lets the process die: one after each step that is on the disk.
//!
//! In a debug build `MAINSTAY_CRASH_AT=rollout:3` kills the agent (SIGKILL) at the third of them, and
//! `rollout-node:3` its keeper first, provided that the file named by `MAINSTAY_CRASH_ONCE`, if any,
//! could be removed: so one of them dies and the next one lives. In a release build none of it exists.

#[cfg(all(not(test), debug_assertions))]
pub(crate) use from_env::point;

/// A step is on the disk.
#[cfg(all(not(test), not(debug_assertions)))]
pub(crate) fn point() -> std::io::Result<()> {
    Ok(())
}

#[cfg(all(not(test), debug_assertions))]
mod from_env {
    use rustix::process::{Signal, getpid, getppid, kill_process};
    use std::{
        env, fs, io,
        sync::{
            OnceLock,
            atomic::{AtomicU64, Ordering},
        },
    };

    /// At which point, and whether the keeper dies as well.
    static WANTED: OnceLock<Option<(u64, bool)>> = OnceLock::new();
    static PASSED: AtomicU64 = AtomicU64::new(0);

    /// A step is on the disk.
    pub(crate) fn point() -> io::Result<()> {
        let passed = PASSED.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some((at, with_keeper)) = WANTED.get_or_init(wanted)
            && *at == passed
            && env::var_os("MAINSTAY_CRASH_ONCE").is_none_or(|it| fs::remove_file(it).is_ok())
        {
            if *with_keeper && let Some(keeper) = getppid() {
                kill_process(keeper, Signal::KILL)?;
            }
            kill_process(getpid(), Signal::KILL)?;
        }
        Ok(())
    }

    fn wanted() -> Option<(u64, bool)> {
        let text = env::var("MAINSTAY_CRASH_AT").ok()?;
        let (name, count) = text.split_once(':')?;
        let with_keeper = match name {
            "rollout" => false,
            "rollout-node" => true,
            _ => return None,
        };
        Some((count.parse().ok()?, with_keeper))
    }
}

#[cfg(test)]
pub(crate) use planted::{point, survive, until};

#[cfg(test)]
mod planted {
    use std::{cell::Cell, io};

    thread_local! {
        /// Points that are still passed.
        static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
    }

    /// Once dead, it does nothing more.
    pub(crate) fn point() -> io::Result<()> {
        LEFT.with(|left| match left.get() {
            0 => Err(io::Error::other("the process has died")),
            usize::MAX => Ok(()),
            more => {
                left.set(more - 1);
                Ok(())
            }
        })
    }

    /// Passes so many points, and dies at the next.
    pub(crate) fn until(points: usize) {
        LEFT.with(|left| left.set(points));
    }

    /// Whether it lives; from now on it does.
    pub(crate) fn survive() -> bool {
        LEFT.with(|left| left.replace(usize::MAX)) != 0
    }
}
