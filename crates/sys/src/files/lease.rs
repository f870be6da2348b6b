//! Whether somebody has a file open for writing.

use std::{
    io,
    os::fd::{AsFd, AsRawFd},
};

/// Which signal tells of a lease; the same on all machines that Linux runs on.
const F_SETSIG: libc::c_int = 10;

/// What the kernel says of writers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writers {
    Nobody,
    Somebody,
    /// The file is not ours, or its file system does not tell.
    Unknown,
}

/// Asks for a lease, which a file with a writer does not get, and gives it back at once.
///
/// # Errors
/// As fcntl(2).
pub fn writers(file: impl AsFd) -> io::Result<Writers> {
    let fd = file.as_fd().as_raw_fd();
    // Who opens the file for writing meanwhile makes the kernel tell us. By itself it would do so
    // with a signal that ends the process; this one does nothing.
    // SAFETY: both calls take plain numbers and touch no memory.
    let leased = unsafe {
        libc::fcntl(fd, F_SETSIG, libc::SIGURG) == 0
            && libc::fcntl(fd, libc::F_SETLEASE, libc::F_RDLCK) == 0
    };
    if leased {
        // SAFETY: as above.
        unsafe { libc::fcntl(fd, libc::F_SETLEASE, libc::F_UNLCK) };
        return Ok(Writers::Nobody);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN) => Ok(Writers::Somebody),
        Some(libc::EACCES | libc::EINVAL | libc::EOPNOTSUPP | libc::ENOSYS | libc::EPERM) => {
            Ok(Writers::Unknown)
        }
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs::{self, File},
        io::Write,
    };

    #[test]
    fn a_writer_is_seen_until_he_closes_the_file_and_may_come_at_any_time() {
        let path = std::env::temp_dir().join(format!("mainstay-lease-{}", std::process::id()));
        let mut writer = File::create(&path).expect("made");
        writer.write_all(b"half").expect("written");
        let reader = File::open(&path).expect("there");
        if writers(&reader).expect("told") == Writers::Unknown {
            return;
        }
        assert_eq!(writers(&reader).expect("told"), Writers::Somebody);
        drop(writer);
        assert_eq!(writers(&reader).expect("told"), Writers::Nobody);
        let again = File::options().append(true).open(&path).expect("nothing holds it");
        assert_eq!(writers(&reader).expect("told"), Writers::Somebody);
        drop(again);
        fs::remove_file(&path).expect("clean up");
    }
}
