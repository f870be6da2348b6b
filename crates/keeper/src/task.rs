//! Tasks: short runs with a time limit, whose output comes back with their exit.

use mainstay_core::node::TaskId;
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// What of its output is kept.
const KEPT: usize = 64 << 10;

#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) id: TaskId,
    pub(crate) pid: u32,
    pub(crate) failure: Option<OwnedFd>,
    pub(crate) pipe: Option<OwnedFd>,
    pub(crate) output: Vec<u8>,
    pub(crate) truncated: bool,
    pub(crate) timed_out: bool,
    pub(crate) command: String,
    pub(crate) tried: Vec<std::path::PathBuf>,
}

impl Task {
    /// Reads what is there; false when there will be no more.
    pub(crate) fn read(&mut self) -> bool {
        let Some(pipe) = &self.pipe else { return false };
        let mut bytes = [0; 8 << 10];
        match rustix::io::read(pipe, &mut bytes) {
            Ok(0) => false,
            Ok(count) => {
                let room = KEPT - self.output.len();
                self.output.extend_from_slice(&bytes[..count.min(room)]);
                self.truncated |= count > room;
                true
            }
            Err(Errno::AGAIN | Errno::INTR) => true,
            Err(_) => false,
        }
    }

    /// Reads what its pipe holds now, at most what a pipe can hold.
    pub(crate) fn read_rest(&mut self) {
        let left = self.pipe.as_ref().and_then(|pipe| rustix::io::ioctl_fionread(pipe).ok()).unwrap_or(0);
        for _ in 0..left.div_ceil(8 << 10) {
            if !self.read() {
                break;
            }
        }
    }
}
