//! A pseudo-terminal for a job: it writes to one end, the writer thread reads the other.
//!
//! We keep the job's end open beside our own for as long as the job lives. Otherwise a job that
//! closes what it was given and opens /dev/tty later would find nobody there.

use rustix::{
    pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt},
    termios::{Winsize, tcgetwinsize, tcsetwinsize},
};
use std::{io, os::fd::OwnedFd};

/// Where nobody has a terminal that it could be like.
const SIZE: Winsize = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };

/// Our end, which never blocks, and the job's.
pub(crate) fn open() -> io::Result<(OwnedFd, OwnedFd)> {
    // Not ours: as PID 1 we lead a session without one, and the first that is opened would be.
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    // Not by its name: /dev/pts may be another one in our mount namespace.
    let slave = ioctl_tiocgptpeer(&master, flags)?;
    tcsetwinsize(&slave, size())?;
    rustix::io::ioctl_fionbio(&master, true)?;
    Ok((master, slave))
}

/// That of the terminal the node was started at, if it was.
fn size() -> Winsize {
    let ours = [rustix::stdio::stdout(), rustix::stdio::stderr(), rustix::stdio::stdin()];
    let found = ours.into_iter().find_map(|fd| tcgetwinsize(fd).ok());
    // Terminals that nobody has told their size have none.
    found.filter(|size| size.ws_row > 0 && size.ws_col > 0).unwrap_or(SIZE)
}
