//! File descriptors that come from outside or go through an exec.

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use std::{
    io,
    os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
    sync::Mutex,
};

/// By number. There may be thousands, and output waits for some of them.
static TAKEN: Mutex<Vec<bool>> = Mutex::new(Vec::new());

/// Takes a descriptor that this process was started with, closed on exec from now on.
/// Each number can be taken once.
///
/// # Errors
/// When it is not open or was taken before.
pub fn take(fd: RawFd) -> io::Result<OwnedFd> {
    let mut taken = TAKEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let place = usize::try_from(fd).map_err(|_| io::ErrorKind::InvalidInput)?;
    if taken.get(place) == Some(&true) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: fcntl on any number is harmless; it says whether the descriptor is open.
    if unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // It is open: no number is larger than there can be descriptors.
    let length = taken.len().max(place + 1);
    taken.resize(length, false);
    taken[place] = true;
    // SAFETY: it is open, and nobody else in this process owns it: it was inherited, and the table
    // above lets each number through once.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// As [`keep_on_exec`], for a descriptor known by its number; one that is not open is passed over.
pub fn keep_number_on_exec(number: RawFd, keep: bool) {
    let flags = if keep { 0 } else { libc::FD_CLOEXEC };
    // SAFETY: changes a flag only.
    unsafe {
        libc::fcntl(number, libc::F_SETFD, flags);
    }
}

/// Decides whether a descriptor is still open after an exec.
///
/// # Errors
/// As fcntl.
pub fn keep_on_exec(fd: impl AsFd, keep: bool) -> io::Result<()> {
    let mut flags = fcntl_getfd(&fd)?;
    flags.set(FdFlags::CLOEXEC, !keep);
    Ok(fcntl_setfd(&fd, flags)?)
}

/// Marks everything but stdio as closed on exec, whatever we were started with.
pub fn close_all_on_exec() {
    const CLOSE_RANGE_CLOEXEC: libc::c_uint = 4;
    // SAFETY: changes flags only. On kernels without it (before 5.11) inherited descriptors stay.
    unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3 as libc::c_uint,
            libc::c_uint::MAX,
            CLOSE_RANGE_CLOEXEC,
        );
    }
}

/// What `fd` can hold before a writer blocks; raises a pipe's size where we may.
pub fn grow_pipe(fd: BorrowedFd<'_>, size: usize) {
    // Not allowed beyond a per-user limit: then it stays as it is.
    let _ = rustix::pipe::fcntl_setpipe_size(fd, size);
}
