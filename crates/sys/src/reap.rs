//! Collecting the dead: our children and, as PID 1 or subreaper, everybody's orphans.

use std::{io, mem, time::Duration};

/// How a child ended, and what it had used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Death {
    pub pid: u32,
    pub how: ExitStatus,
    pub user: Duration,
    pub system: Duration,
    pub max_rss_kib: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    Code(i32),
    Signal(i32),
}

/// A dead child that nobody has reaped yet. It keeps its pid, so its group can still be named.
#[must_use]
pub fn peek() -> Option<u32> {
    // SAFETY: waitid fills `info`; WNOWAIT leaves the child as it is.
    unsafe {
        let mut info: libc::siginfo_t = mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        if libc::waitid(libc::P_ALL, 0, &raw mut info, flags) != 0 {
            return None;
        }
        u32::try_from(info.si_pid()).ok().filter(|pid| *pid > 0)
    }
}

/// Whether this child is dead and not reaped yet.
#[must_use]
pub fn is_dead(pid: u32) -> bool {
    // SAFETY: as above.
    unsafe {
        let mut info: libc::siginfo_t = mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        libc::waitid(libc::P_PID, pid, &raw mut info, flags) == 0 && info.si_pid() != 0
    }
}

/// Reaps one dead child.
///
/// # Errors
/// As wait4(2); a child that is not dead yet is an error too.
pub fn reap(pid: u32) -> io::Result<Death> {
    let target = i32::try_from(pid).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: wait4 fills both out-parameters.
    let (status, usage) = unsafe {
        let mut status = 0;
        let mut usage: libc::rusage = mem::zeroed();
        loop {
            match libc::wait4(target, &raw mut status, libc::WNOHANG, &raw mut usage) {
                0 => return Err(io::Error::from(io::ErrorKind::WouldBlock)),
                found if found == target => break (status, usage),
                _ => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        }
    };
    let how = if libc::WIFSIGNALED(status) {
        ExitStatus::Signal(libc::WTERMSIG(status))
    } else {
        ExitStatus::Code(libc::WEXITSTATUS(status))
    };
    Ok(Death {
        pid,
        how,
        user: duration(usage.ru_utime),
        system: duration(usage.ru_stime),
        max_rss_kib: u64::try_from(usage.ru_maxrss).unwrap_or(0),
    })
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0));
    seconds + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
}
