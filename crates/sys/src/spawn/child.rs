//! The child between clone and exec. No allocation, no locks, no panics, no library calls that take
//! either: other threads may have held any lock at the moment of the clone. It reads its stack and
//! its [`Image`]: there is no heap.

use super::{
    Entered, Failure, Step,
    image::Image,
    window::{MAX_SENT, Passage, close_between},
};
use std::{mem, os::fd::RawFd, ptr};

#[allow(clippy::unnecessary_cast, reason = "its type is another one in musl")]
const NOFILE: u32 = libc::RLIMIT_NOFILE as u32;

/// The child's side.
pub(super) struct Child<'a> {
    pub(super) image: &'a Image,
    pub(super) inherited: Inherited,
    /// `None`: it has a copy of our table, and all that it inherits is in it.
    pub(super) passage: Option<Passage>,
    pub(super) parent: u32,
}

/// Descriptors by their numbers: where each is, and where it has to be.
pub(super) struct Inherited {
    /// What tells of failures comes first: it stays beside the others.
    pub(super) sources: [RawFd; MAX_SENT],
    /// Ascending.
    pub(super) targets: [RawFd; MAX_SENT],
    /// With the first.
    pub(super) count: usize,
}

impl Child<'_> {
    /// # Safety
    /// In the child of a clone without shared memory only, and before anything else is done there.
    pub(super) unsafe fn run(&mut self, entered: Entered) -> ! {
        // SAFETY: the caller's promise.
        let failure = match unsafe { self.arrive().and_then(|()| self.prepare(entered)) } {
            Err(failure) => failure,
            // SAFETY: the same.
            Ok(()) => unsafe { self.exec() },
        };
        let bytes = failure.to_bytes();
        // SAFETY: a buffer of ours and its length; _exit runs nothing of the parent's.
        unsafe {
            libc::write(self.inherited.sources[0], bytes.as_ptr().cast(), bytes.len());
            libc::_exit(127)
        }
    }

    /// From now on the table of descriptors is its own.
    unsafe fn arrive(&mut self) -> Result<(), Failure> {
        let Some(passage) = self.passage else { return Ok(()) };
        // SAFETY: the caller's promise.
        let count = unsafe { passage.cross(&mut self.inherited.sources) };
        if count == 0 {
            // Nowhere to tell it.
            // SAFETY: runs nothing of the parent's.
            unsafe { libc::_exit(127) }
        }
        if count < self.inherited.count {
            return Err(Failure { step: Step::Descriptors, errno: libc::EMFILE });
        }
        Ok(())
    }

    unsafe fn prepare(&mut self, entered: Entered) -> Result<(), Failure> {
        let image = self.image;
        // SAFETY: raw system calls with arguments that were prepared before the clone; the wrappers
        // used here (sigprocmask, setsid, umask, dup2, fcntl) do nothing more.
        unsafe {
            for &signal in image.ignored.items() {
                crate::signal::set_default(signal);
            }
            let mut none: libc::sigset_t = mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
            let apart = if image.session { libc::setsid() } else { libc::setpgid(0, 0) };
            check(Step::Session, apart.into())?;
            if entered == Entered::ByItself {
                let flags = libc::O_WRONLY | libc::O_CLOEXEC;
                let fd = check(Step::Group, libc::open(image.procs, flags).into())?;
                check(Step::Group, libc::write(fd, c"0".as_ptr().cast(), 1) as libc::c_long)?;
                libc::close(fd);
            }
            if !image.oom_score.is_null() {
                // While it may still raise and lower it. One that stays as it is hurts nobody.
                let flags = libc::O_WRONLY | libc::O_CLOEXEC;
                let fd = libc::open(crate::memory::OOM_SCORE.as_ptr(), flags);
                libc::write(fd, image.oom_score.cast(), libc::strlen(image.oom_score));
                libc::close(fd);
            }
            self.place_descriptors()?;
            if image.terminal {
                let taken = libc::ioctl(libc::STDOUT_FILENO, libc::TIOCSCTTY, 0);
                check(Step::Terminal, taken.into())?;
            }
            if let Some(mask) = image.umask {
                libc::umask(mask);
            }
            if let Some(nice) = image.nice {
                check(
                    Step::Nice,
                    libc::syscall(libc::SYS_setpriority, libc::PRIO_PROCESS, 0, nice),
                )?;
            }
            if let Some((soft, hard)) = image.original_nofile {
                set_limit(NOFILE, soft, hard)?;
            }
            for (resource, limit) in image.rlimits.items() {
                set_limit(*resource, *limit, *limit)?;
            }
            if let Some((uid, gid, groups)) = &image.identity {
                let groups = groups.items();
                check(
                    Step::Groups,
                    libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()),
                )?;
                check(Step::Gid, libc::syscall(libc::SYS_setresgid, *gid, *gid, *gid))?;
                check(Step::Uid, libc::syscall(libc::SYS_setresuid, *uid, *uid, *uid))?;
            }
            if image.die_with_parent {
                // After the last change of credentials, which would clear it.
                check(Step::Parent, libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL).into())?;
                if u32::try_from(libc::getppid()) != Ok(self.parent) {
                    libc::_exit(127);
                }
            }
            if !image.cwd.is_null() {
                check(Step::Cwd, libc::chdir(image.cwd).into())?;
            }
            if !image.stdin.is_null() {
                let flags = libc::O_RDONLY | libc::O_NOCTTY | libc::O_CLOEXEC;
                let fd = check(Step::Stdin, libc::open(image.stdin, flags).into())?;
                check(Step::Stdin, libc::dup2(fd, libc::STDIN_FILENO).into())?;
            }
            if !image.listen_pid.is_null() {
                write_number(image.listen_pid, libc::getpid());
            }
        }
        Ok(())
    }

    /// Sources among the targets are moved above them first, so that none is overwritten before it
    /// is moved. All else is closed: whatever the child waits for from now on, it holds nobody's
    /// descriptors.
    unsafe fn place_descriptors(&mut self) -> Result<(), Failure> {
        let Inherited { sources, targets, count } = &mut self.inherited;
        let targets = targets.get(1..*count).unwrap_or_default();
        let first = targets.last().map_or(3, |last| 3.max(last.saturating_add(1)));
        // Who has crossed the window has nothing else.
        if self.passage.is_none() && !self.image.executes_descriptor {
            close_all_but(sources.get(..*count).unwrap_or_default());
        }
        for source in sources.iter_mut().take(*count).filter(|source| **source < first) {
            // SAFETY: fcntl on descriptors that the parent lent us.
            let copy = unsafe { libc::fcntl(*source, libc::F_DUPFD_CLOEXEC, first) };
            *source = check(Step::Descriptors, copy.into())?;
        }
        for (copy, target) in sources.iter().skip(1).zip(targets) {
            // SAFETY: both numbers are ours to use in the child.
            check(Step::Descriptors, unsafe { libc::dup2(*copy, *target) }.into())?;
        }
        if !self.image.executes_descriptor {
            let mut next = 3;
            for target in targets.iter().copied().filter(|target| *target >= 3) {
                close_between(next, target as libc::c_uint);
                next = target as libc::c_uint + 1;
            }
            let failure = sources[0] as libc::c_uint;
            close_between(next, failure);
            close_between(failure + 1, libc::c_uint::MAX);
        }
        Ok(())
    }

    /// As execvpe(3) searches: go on after "not there", remember "not allowed".
    unsafe fn exec(&self) -> Failure {
        let mut errno = libc::ENOENT;
        // SAFETY: the image is in the child's copy of our memory.
        for candidate in unsafe { self.image.candidates.items() } {
            // SAFETY: NUL-terminated strings and null-terminated arrays, prepared by the parent.
            unsafe {
                libc::execve(*candidate, self.image.argv, self.image.env);
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

/// Closes all but stdio and these: where few descriptors are allowed there is no room beside ours
/// for copies.
fn close_all_but(kept: &[RawFd]) {
    let mut next: libc::c_uint = 3;
    while let Some(nearest) =
        kept.iter().filter_map(|fd| libc::c_uint::try_from(*fd).ok()).filter(|fd| *fd >= next).min()
    {
        close_between(next, nearest);
        next = nearest + 1;
    }
    close_between(next, libc::c_uint::MAX);
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
