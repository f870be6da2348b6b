//! The child between clone and exec. No allocation, no locks, no panics, no library calls that take
//! either: other threads may have held any lock at the moment of the clone.

use super::{Descriptors, Failure, MAX_DESCRIPTORS, Program, Step};
use std::{
    cell::Cell,
    mem,
    os::fd::{AsRawFd, RawFd},
    ptr,
};

const NOFILE: u32 = libc::RLIMIT_NOFILE;

/// The child's side. No allocation, no locks, no panics, no library calls that take either.
pub(super) struct Child<'a> {
    pub(super) program: &'a Program,
    pub(super) argv: *const *const libc::c_char,
    pub(super) env: *const *const libc::c_char,
    pub(super) listen_pid: Option<*mut libc::c_char>,
    pub(super) descriptors: &'a Descriptors<'a>,
    pub(super) failure: Cell<RawFd>,
    pub(super) parent: u32,
}

impl Child<'_> {
    /// # Safety
    /// In the child of a clone without shared memory only.
    pub(super) unsafe fn run(&self, procs: Option<*const libc::c_char>) -> ! {
        // SAFETY: the caller's promise.
        let failure = match unsafe { self.prepare(procs) } {
            Err(failure) => failure,
            // SAFETY: the same.
            Ok(()) => unsafe { self.exec() },
        };
        let bytes = failure.to_bytes();
        // SAFETY: a buffer of ours and its length; _exit runs nothing of the parent's.
        unsafe {
            libc::write(self.failure.get(), bytes.as_ptr().cast(), bytes.len());
            libc::_exit(127)
        }
    }

    unsafe fn prepare(&self, procs: Option<*const libc::c_char>) -> Result<(), Failure> {
        let program = self.program;
        // SAFETY: raw system calls with arguments that were prepared before the clone; the wrappers
        // used here (sigprocmask, setsid, umask, dup2, fcntl) do nothing more.
        unsafe {
            for &signal in &program.ignored {
                crate::signal::set_default(signal);
            }
            let mut none: libc::sigset_t = mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
            let apart = if program.session { libc::setsid() } else { libc::setpgid(0, 0) };
            check(Step::Session, apart.into())?;
            if let Some(path) = procs {
                let fd =
                    check(Step::Group, libc::open(path, libc::O_WRONLY | libc::O_CLOEXEC).into())?;
                check(Step::Group, libc::write(fd, c"0".as_ptr().cast(), 1) as libc::c_long)?;
                libc::close(fd);
            }
            self.place_descriptors()?;
            if program.terminal {
                let taken = libc::ioctl(libc::STDOUT_FILENO, libc::TIOCSCTTY, 0);
                check(Step::Terminal, taken.into())?;
            }
            if let Some(mask) = program.umask {
                libc::umask(mask);
            }
            if let Some(nice) = program.nice {
                check(
                    Step::Nice,
                    libc::syscall(libc::SYS_setpriority, libc::PRIO_PROCESS, 0, nice),
                )?;
            }
            if let Some((soft, hard)) = program.original_nofile {
                set_limit(NOFILE, soft, hard)?;
            }
            for (resource, limit) in &program.rlimits {
                let value = limit.unwrap_or(libc::RLIM_INFINITY);
                set_limit(resource.0, value, value)?;
            }
            if let Some((uid, gid, groups)) = &program.identity {
                check(
                    Step::Groups,
                    libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()),
                )?;
                check(Step::Gid, libc::syscall(libc::SYS_setresgid, *gid, *gid, *gid))?;
                check(Step::Uid, libc::syscall(libc::SYS_setresuid, *uid, *uid, *uid))?;
            }
            if program.die_with_parent {
                // After the last change of credentials, which would clear it.
                check(Step::Parent, libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL).into())?;
                if u32::try_from(libc::getppid()) != Ok(self.parent) {
                    libc::_exit(127);
                }
            }
            if let Some(cwd) = &program.cwd {
                check(Step::Cwd, libc::chdir(cwd.as_ptr()).into())?;
            }
            if let Some(path) = &program.stdin {
                let flags = libc::O_RDONLY | libc::O_NOCTTY | libc::O_CLOEXEC;
                let fd = check(Step::Stdin, libc::open(path.as_ptr(), flags).into())?;
                check(Step::Stdin, libc::dup2(fd, libc::STDIN_FILENO).into())?;
            }
            if let Some(place) = self.listen_pid {
                write_number(place, libc::getpid());
            }
        }
        Ok(())
    }

    /// Moves every source above all targets first, so that none is overwritten before its turn.
    unsafe fn place_descriptors(&self) -> Result<(), Failure> {
        let extra = &self.descriptors.extra;
        let placed = self.descriptors.placed.as_ref();
        let behind = libc::c_int::try_from(3 + extra.len()).unwrap_or(libc::c_int::MAX);
        let first = placed.map_or(behind, |(_, target)| behind.max(target.saturating_add(1)));
        let stdio = self.descriptors.stdio.iter().flatten().zip(0..);
        let all = || {
            let placed = placed.map(|(source, target)| (source, *target));
            stdio.clone().chain(extra.iter().zip(3..)).chain(placed)
        };
        // SAFETY: as below. What tells of failures must not be overwritten either.
        let failure = unsafe { libc::fcntl(self.failure.get(), libc::F_DUPFD_CLOEXEC, first) };
        self.failure.set(check(Step::Descriptors, failure.into())?);
        // Targets are at most a few: their high copies are found again by counting.
        let mut high = [-1; MAX_DESCRIPTORS];
        for ((source, _), place) in all().zip(&mut high) {
            // SAFETY: fcntl on descriptors that the parent lent us.
            let copy = unsafe { libc::fcntl(source.as_raw_fd(), libc::F_DUPFD_CLOEXEC, first) };
            *place = check(Step::Descriptors, copy.into())?;
        }
        for ((_, target), copy) in all().zip(high) {
            // SAFETY: both numbers are ours to use in the child.
            check(Step::Descriptors, unsafe { libc::dup2(copy, target) }.into())?;
        }
        Ok(())
    }

    /// As execvpe(3) searches: go on after "not there", remember "not allowed".
    unsafe fn exec(&self) -> Failure {
        let mut errno = libc::ENOENT;
        for candidate in &self.program.candidates {
            // SAFETY: NUL-terminated strings and null-terminated arrays, prepared by the parent.
            unsafe {
                libc::execve(candidate.as_ptr(), self.argv, self.env);
            }
            match last_errno() {
                libc::ENOENT | libc::ENOTDIR => {}
                libc::EACCES => errno = libc::EACCES,
                other => {
                    errno = other;
                    break;
                }
            }
        }
        Failure { step: Step::Exec, errno }
    }
}

/// Writes digits and the NUL behind them.
///
/// # Safety
/// `place` must have room for [`LISTEN_PID_DIGITS`] and a NUL.
unsafe fn write_number(mut place: *mut libc::c_char, number: libc::pid_t) {
    let mut unit = 1;
    while number / unit >= 10 {
        unit *= 10;
    }
    // SAFETY: a pid_t has at most ten digits; the caller's promise.
    unsafe {
        while unit > 0 {
            *place = b'0' as libc::c_char + (number / unit % 10) as libc::c_char;
            place = place.wrapping_add(1);
            unit /= 10;
        }
        *place = 0;
    }
}

fn check(step: Step, answer: libc::c_long) -> Result<libc::c_int, Failure> {
    if answer < 0 {
        return Err(Failure { step, errno: last_errno() });
    }
    Ok(answer as libc::c_int)
}

fn last_errno() -> i32 {
    // SAFETY: the address of a thread-local integer.
    unsafe { *libc::__errno_location() }
}

fn set_limit(resource: u32, soft: u64, hard: u64) -> Result<(), Failure> {
    let limit = libc::rlimit64 { rlim_cur: soft, rlim_max: hard };
    let nobody: *mut libc::rlimit64 = ptr::null_mut();
    // SAFETY: pid 0 is this process; the kernel reads `limit` only.
    let answer =
        unsafe { libc::syscall(libc::SYS_prlimit64, 0, resource, &raw const limit, nobody) };
    check(Step::Limits, answer).map(|_| ())
}
