//! runit: one runsvdir, and a runsv for every job.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use rustix::process::{Pid, Signal};

use super::{Peer, Who, Work, write, write_script};
use crate::failure::{Doing, Result};
use crate::process::tree;

#[derive(Debug)]
pub(crate) struct Runit;

/// runsvdir waits for a directory that was changed within this second to settle.
fn age(dir: &Path) -> Result<()> {
    let before = SystemTime::now() - Duration::from_secs(60);
    File::open(dir)
        .and_then(|dir| dir.set_modified(before))
        .doing(format_args!("set the time of {}", dir.display()))
}

impl Peer for Runit {
    fn who(&self) -> Who {
        Who::Runit
    }

    fn prepare(&self, dir: &Path, work: &Work) -> Result<()> {
        for (name, command) in work.commands() {
            write_script(&dir.join("service").join(name).join("run"), &command.join(" "))?;
        }
        if let Some(talker) = &work.talker {
            let service = dir.join("service/talker");
            write(&dir.join("log/config"), "s10000000\nn3\n")?;
            write_script(&service.join("run"), &talker.join(" "))?;
            let log = format!("svlogd -ttt {}", dir.join("log").display());
            write_script(&service.join("log/run"), &log)?;
        }
        age(&dir.join("service"))
    }

    fn launch(&self, dir: &Path, _work: &Work) -> Command {
        let mut command = tree::marked("runsvdir", dir);
        command.arg(dir.join("service"));
        command
    }

    /// HUP: runsvdir passes TERM on to every runsv and leaves; they end their jobs.
    fn stop(&self, _dir: &Path, root: Pid) -> Result<()> {
        tree::kill(root, Signal::HUP);
        Ok(())
    }
}
