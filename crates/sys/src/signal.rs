//! Signals: blocked and read from a descriptor; dispositions known, so that children get clean ones.

use rustix::{io::Errno, process::Pid};
use std::{
    io, mem,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    ptr,
};

/// Blocks every signal and gives a descriptor to read them from.
#[derive(Debug)]
pub struct Signals {
    fd: OwnedFd,
}

impl Signals {
    /// # Errors
    /// As signalfd.
    pub fn block_all() -> io::Result<Signals> {
        // SAFETY: `set` is initialised by sigfillset before use; the calls take it by pointer.
        unsafe {
            let mut set: libc::sigset_t = mem::zeroed();
            libc::sigfillset(&raw mut set);
            // What a fault raises must not be blocked: the kernel would kill us without a word.
            for fault in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT] {
                libc::sigdelset(&raw mut set, fault);
            }
            if libc::pthread_sigmask(libc::SIG_SETMASK, &raw const set, ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
            let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Signals { fd: OwnedFd::from_raw_fd(fd) })
        }
    }

    #[must_use]
    pub fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// The next signal that is pending.
    #[must_use]
    pub fn next(&self) -> Option<Received> {
        // SAFETY: reads at most one record into a buffer of exactly its size.
        unsafe {
            let mut info: libc::signalfd_siginfo = mem::zeroed();
            let size = mem::size_of_val(&info);
            let read = libc::read(self.fd.as_raw_fd(), (&raw mut info).cast(), size);
            (usize::try_from(read) == Ok(size)).then(|| Received {
                number: i32::try_from(info.ssi_signo).unwrap_or(0),
                pid: info.ssi_pid,
            })
        }
    }
}

/// A disposition as the kernel has it, with room for every architecture: the handler comes first,
/// and all zero is the default. The C library's own call hides the two signals that it keeps for
/// itself, but an exec hands those on too.
type Disposition = [usize; 8];
/// Of a signal set, in bytes.
const SET: usize = 8;

/// A signal, and who it is about: the sender, or the child that has died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    pub number: i32,
    pub pid: u32,
}

/// The signals that this process ignores: an exec would hand that on.
#[must_use]
pub fn ignored() -> Vec<i32> {
    (1..=64)
        .filter(|&signal| {
            let mut action: Disposition = [0; 8];
            let nothing: *const Disposition = ptr::null();
            // SAFETY: asks only, into a buffer larger than any kernel's record; numbers that the
            // kernel does not know give an error.
            let answer = unsafe {
                libc::syscall(libc::SYS_rt_sigaction, signal, nothing, &raw mut action, SET)
            };
            answer == 0 && action[0] == libc::SIG_IGN
        })
        .collect()
}

/// Sets a disposition back. Fit for a child between clone and exec: one system call.
pub fn set_default(signal: i32) {
    let action: Disposition = [0; 8];
    let nowhere: *mut Disposition = ptr::null_mut();
    // SAFETY: the kernel reads a zeroed record from a buffer that is large enough.
    unsafe {
        libc::syscall(libc::SYS_rt_sigaction, signal, &raw const action, nowhere, SET);
    }
}

/// # Errors
/// As kill(2).
pub fn send(pid: u32, signal: i32) -> Result<(), Errno> {
    kill(target(pid)?, signal)
}

/// To every process of the group; signal 0 asks whether there is one.
///
/// # Errors
/// As kill(2).
pub fn send_group(group: u32, signal: i32) -> Result<(), Errno> {
    kill(-target(group)?, signal)
}

/// 0 and 1 would reach far more than one process.
fn target(pid: u32) -> Result<i32, Errno> {
    i32::try_from(pid).ok().filter(|pid| *pid > 1).ok_or(Errno::SRCH)
}

fn kill(target: i32, signal: i32) -> Result<(), Errno> {
    // SAFETY: no memory is involved.
    if unsafe { libc::kill(target, signal) } == 0 {
        return Ok(());
    }
    Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::INVAL))
}

/// Dies at once, as if somebody had sent SIGKILL.
pub fn kill_self() -> ! {
    // SAFETY: no memory is involved; the process does not come back from it.
    unsafe {
        libc::kill(libc::getpid(), libc::SIGKILL);
    }
    loop {
        std::thread::park();
    }
}

#[must_use]
pub fn own_pid() -> u32 {
    u32::try_from(Pid::as_raw(Some(rustix::process::getpid()))).unwrap_or(0)
}
