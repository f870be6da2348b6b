//! Tasks: short runs with a time limit, whose output comes back with their exit.

use crate::process::{exec_error::ExecContext, tree::Tree};
use mainstay_core::{name::Name, plan::Log};
use mainstay_wire::task::TaskKey;
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// What of its output is kept.
const KEPT: usize = 64 << 10;

#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) id: TaskKey,
    /// The incarnation of a job without which nobody wants to know its outcome.
    pub(crate) ends_with: Option<(Name, u64)>,
    pub(crate) pid: u32,
    pub(crate) tree: Tree,
    pub(crate) failure: Option<OwnedFd>,
    pub(crate) output: CapturedOutput,
    pub(crate) timed_out: bool,
    /// How what it writes is forwarded.
    pub(crate) forward: Option<Box<Log>>,
    /// The job that it is run for.
    pub(crate) job: Option<Name>,
    pub(crate) exec_context: ExecContext,
}

/// What a task has left behind: killed, and looked after until it is gone.
#[derive(Debug)]
pub(crate) struct Leftover {
    /// The number of the task.
    pub(crate) task: u64,
    /// `None`: it was handed over by the last image, which did not say.
    pub(crate) id: Option<TaskKey>,
    pub(crate) pid: u32,
    pub(crate) tree: Tree,
}

/// The output of a short run, as far as it is kept.
#[derive(Debug)]
pub(crate) struct CapturedOutput {
    pub(crate) pipe: Option<OwnedFd>,
    pub(crate) text: Vec<u8>,
    pub(crate) truncated: bool,
}

impl CapturedOutput {
    pub(crate) fn from(pipe: OwnedFd) -> CapturedOutput {
        CapturedOutput { pipe: Some(pipe), text: Vec::new(), truncated: false }
    }

    /// Reads what is there; false when there will be no more.
    pub(crate) fn read(&mut self) -> bool {
        let Some(pipe) = &self.pipe else { return false };
        let mut bytes = [0; 8 << 10];
        match rustix::io::read(pipe, &mut bytes) {
            Ok(0) => false,
            Ok(count) => {
                let room = KEPT - self.text.len();
                self.text.extend_from_slice(&bytes[..count.min(room)]);
                self.truncated |= count > room;
                true
            }
            Err(Errno::AGAIN | Errno::INTR) => true,
            Err(_) => false,
        }
    }

    /// Reads what its pipe holds now, at most what a pipe can hold.
    pub(crate) fn read_rest(&mut self) {
        let left =
            self.pipe.as_ref().and_then(|pipe| rustix::io::ioctl_fionread(pipe).ok()).unwrap_or(0);
        for _ in 0..left.div_ceil(8 << 10) {
            if !self.read() {
                break;
            }
        }
    }

    pub(crate) fn to_text(&self) -> String {
        String::from_utf8_lossy(&self.text).into_owned()
    }
}
