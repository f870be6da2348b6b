//! Replacing a file as a whole: whoever reads it sees the old content or the new one.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

/// How much a replacement has to outlive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The process: what is in memory of the kernel is enough.
    Process,
    /// The machine: file and directory are on the disk when it returns.
    Machine,
}

/// Writes a hidden file beside `path`, then renames it. Never through a link: whatever a crash or
/// somebody else left under that name goes first. Gives the new file, positioned at its end.
///
/// # Errors
/// As open(2), write(2) and rename(2); the old content is then still there.
pub fn replace(path: &Path, mode: u32, content: &[u8], durability: Durability) -> io::Result<File> {
    let temporary = temporary(path);
    let written = write(&temporary, mode, content, durability)
        .and_then(|file| fs::rename(&temporary, path).map(|()| file));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    let file = written?;
    if let (Durability::Machine, Some(dir)) = (durability, path.parent()) {
        File::open(dir)?.sync_all()?;
    }
    Ok(file)
}

fn temporary(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".new");
    path.with_file_name(name)
}

fn write(path: &Path, mode: u32, content: &[u8], durability: Durability) -> io::Result<File> {
    let create = || OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let mut file = match create() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            create()?
        }
        created => created?,
    };
    file.write_all(content)?;
    if durability == Durability::Machine {
        file.sync_all()?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_under_the_temporary_name_is_never_written_through() {
        let dir = std::env::temp_dir().join(format!("mainstay-replace-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        let (file, elsewhere) = (dir.join("state"), dir.join("elsewhere"));
        fs::write(&elsewhere, "theirs").expect("written");
        std::os::unix::fs::symlink(&elsewhere, temporary(&file)).expect("a link");
        for durability in [Durability::Process, Durability::Machine] {
            replace(&file, 0o600, b"ours", durability).expect("replaced");
        }
        assert_eq!(fs::read(&file).expect("there"), b"ours");
        assert_eq!(fs::read(&elsewhere).expect("there"), b"theirs");
        assert_eq!(fs::read_dir(&dir).expect("a directory").count(), 2, "nothing is left behind");
        fs::remove_dir_all(&dir).expect("clean up");
    }
}
