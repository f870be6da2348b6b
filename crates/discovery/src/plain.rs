//! Opens files to read that others may have put there: never waits for one.

use rustix::fs::{Mode, OFlags, open};
use std::{fs::File, io, path::Path};

/// # Errors
/// When there is no such file, it may not be read, or it is not a regular one: a pipe that nobody
/// writes to would be waited for, and a device might never end.
pub(crate) fn open_plain(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}
