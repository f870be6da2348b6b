//! Files in the run directory, by their paths.
//!
//! The run directory is ours, closed to others, and in memory wherever that can be had: nothing in
//! it waits. What is done here opens nothing, so that it never waits for who is at the other end of
//! a file either; where the run directory lies on a disk it waits for that disk, and is called by
//! way of [`Disk`](super::disk::Disk).

use std::{fs, io, os::unix::fs::PermissionsExt, path::Path};

/// Removes a file; one that is not there is as good.
///
/// # Errors
/// As unlink(2).
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes a directory with all that is in it.
///
/// # Errors
/// As unlink(2) and rmdir(2).
pub fn remove_tree(path: &Path) -> io::Result<()> {
    fs::remove_dir_all(path)
}

/// # Errors
/// As rename(2).
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

/// # Errors
/// As chmod(2).
pub fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// # Errors
/// As chown(2).
pub fn set_owner(path: &Path, uid: u32, gid: u32) -> io::Result<()> {
    std::os::unix::fs::chown(path, Some(uid), Some(gid))
}
