//! Upgrade: the keeper becomes a new binary and keeps everything it holds.
//!
//! ```text
//!  ask ─► the new binary looks at a snapshot, as a child (`__check`) ── cannot read it ─► refused
//!            └─ can ─► threads at rest, agent ended, all state into a memfd, exec in place
//!                          └─ the new image restores it ── cannot ─► it executes the old one again
//! ```
//!
//! Same pid, same children; descriptors stay open over the exec under their numbers.

mod error;
pub(crate) mod os_text;
mod snapshot;
mod stages;
mod take_over;

pub use error::TakeOverError;
pub(crate) use stages::{OpenedBinary, Upgrade};
pub(crate) use take_over::{check, give_back, take_over};

#[cfg(feature = "fuzz")]
pub(crate) use take_over::fuzz_read;

use crate::keeper::Keeper;
use error::UpgradeRefusal;
use mainstay_sys::{fd, memory, spawn};
use mainstay_wire::link::{KeeperResponse, ToAgent};
use rustix::fs::MemfdFlags;
use serde::{Deserialize, Serialize};
use snapshot::Handover;
use std::{
    ffi::OsString,
    fs::File,
    io::{self, BufWriter, Seek, SeekFrom},
    os::fd::{AsFd, AsRawFd, OwnedFd},
};

/// `MEMFD,OLD` with the numbers of the state and of the old executable; when the new image has given
/// it back, a third field says why.
pub(crate) const VARIABLE: &str = "MAINSTAY_HANDOVER";
/// Written at once into the memfd: with many jobs all of it would be moved while it grows.
const BUFFER: usize = 64 << 10;

/// Who wants an upgrade and hears how it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum UpgradeRequester {
    #[serde(rename = "Asker")]
    KeeperClient(u64),
    Agent(u64),
}

impl Keeper {
    fn refuse_upgrade(&mut self, requester: UpgradeRequester, refusal: &UpgradeRefusal) {
        let error = refusal.to_string();
        self.log(format!("upgrade refused: {error}"));
        match requester {
            UpgradeRequester::KeeperClient(id) => {
                self.answer(id, &KeeperResponse::Refused { error })
            }
            UpgradeRequester::Agent(id) => self.send(&ToAgent::UpgradeFailed { id, error }),
        }
    }

    /// Becomes the new binary; returns only if that failed, with everything as it was.
    fn become_binary(&self, binary: &OwnedFd, requester: UpgradeRequester) -> io::Error {
        let handover = self.describe_all(requester);
        match write_memfd(&handover) {
            Err(error) => error,
            Ok(memfd) => execute(&handover, &memfd, binary, self.context.oom_score),
        }
    }
}

fn write_memfd(handover: &Handover) -> io::Result<OwnedFd> {
    let file = File::from(rustix::fs::memfd_create("mainstay-handover", MemfdFlags::CLOEXEC)?);
    let mut writer = BufWriter::with_capacity(BUFFER, file);
    serde_json::to_writer(&mut writer, handover)?;
    let mut file = writer.into_inner()?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file.into())
}

fn execute(
    handover: &Handover,
    memfd: &OwnedFd,
    binary: &OwnedFd,
    oom_score: Option<i32>,
) -> io::Error {
    let kept = || handover.descriptors().into_iter().chain([memfd.as_raw_fd()]);
    for number in kept() {
        fd::keep_number_on_exec(number, true);
    }
    let argv: Vec<OsString> = std::env::args_os().collect();
    let mut env = environment();
    env.push((VARIABLE.into(), format!("{},{}", memfd.as_raw_fd(), handover.exe).into()));
    // As it was for us: the next image sees to it itself.
    let before = memory::oom_score().filter(|_| oom_score.is_some_and(memory::set_oom_score));
    let error = spawn::become_descriptor(binary.as_fd(), &argv, &env);
    before.map(memory::set_oom_score);
    for number in kept() {
        fd::keep_number_on_exec(number, false);
    }
    error
}

/// Ours, without what one image tells the next.
pub(crate) fn environment() -> Vec<(OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| name != VARIABLE).collect()
}

/// What a binary says when it could take over: it names the run, which it has from the snapshot.
fn confirmation(run: &str) -> String {
    format!("can take over run {run}")
}
