//! Whether a node is in a run directory. Nothing is locked to find out: that would be in the way of
//! a run that begins.

use crate::keeper;
use mainstay_wire::run_dir::RunFile;
use std::{fs, os::unix::fs::MetadataExt, path::Path};

const LOCK: &str = "lock";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    Running,
    /// It was killed, or the machine was.
    Dead,
    /// It has ended in order.
    Ended,
}

impl Presence {
    /// `None`: no node has ever been there.
    pub(crate) fn of(run_dir: &Path) -> Option<Presence> {
        let lock = fs::symlink_metadata(run_dir.join(LOCK)).ok()?;
        if keeper::is_there(run_dir) {
            return Some(Presence::Running);
        }
        let Some(run) = RunFile::read(run_dir) else { return Some(Presence::Ended) };
        // One that begins or ends does not answer.
        match is_locked(run.pid, lock.ino()) {
            true => Some(Presence::Running),
            false => Some(Presence::Dead),
        }
    }
}

/// Whether a process holds a lock on a file: `1: FLOCK  ADVISORY  WRITE 4711 00:1a:42 0 EOF`.
fn is_locked(pid: u32, file: u64) -> bool {
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let (pid, file) = (pid.to_string(), file.to_string());
    locks.lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = fields.get(5).and_then(|it| it.rsplit(':').next());
        fields.get(1) == Some(&"FLOCK")
            && fields.get(4) == Some(&pid.as_str())
            && number == Some(file.as_str())
    })
}
