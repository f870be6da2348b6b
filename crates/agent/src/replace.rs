//! Replacing a file as a whole: a reader sees the old content or the new one.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

/// Writes beside `path`, then renames. No fsync: the run directory does not outlive a boot.
/// Gives the new file back, positioned at its end.
pub(crate) fn replace(path: &Path, mode: u32, content: &[u8]) -> io::Result<File> {
    let temporary = path.with_extension("new");
    let written = write(&temporary, mode, content)
        .and_then(|file| fs::rename(&temporary, path).map(|()| file));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn write(path: &Path, mode: u32, content: &[u8]) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(content)?;
    Ok(file)
}
