//! Whoever starts what is to be held: as long as it is there, the socket may still come.

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};
use std::os::fd::OwnedFd;

#[derive(Debug)]
pub(crate) struct Starter {
    /// `None`: it was gone when we came.
    process: Option<OwnedFd>,
}

impl Starter {
    pub(crate) fn of(pid: u32) -> Starter {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        Starter { process: pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) }
    }

    pub(super) fn is_gone(&self) -> bool {
        let Some(process) = &self.process else { return true };
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        !matches!(poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&now)), Ok(0))
    }
}
