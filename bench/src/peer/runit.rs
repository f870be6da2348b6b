//! runit: one runsvdir, and a runsv for every job.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use rustix::process::{Pid, Signal};

use super::{Peer, Place, Who, Work, write, write_script};
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

    fn prepare(&self, place: &Place, work: &Work) -> Result<()> {
        for (name, command) in work.commands() {
            write_script(&place.run.join("service").join(name).join("run"), &command.join(" "))?;
        }
        if let Some(talker) = &work.talker {
            let service = place.run.join("service/talker");
            write(&place.state.join("log/config"), "s10000000\nn3\n")?;
            write_script(&service.join("run"), &talker.join(" "))?;
            let log = format!("svlogd -ttt {}", place.state.join("log").display());
            write_script(&service.join("log/run"), &log)?;
        }
        age(&place.run.join("service"))
    }

    fn launch(&self, place: &Place, _work: &Work) -> Command {
        let mut command = tree::marked("runsvdir", &place.run);
        command.arg(place.run.join("service"));
        command
    }

    /// HUP: runsvdir passes TERM on to every runsv and leaves; they end their jobs.
    fn stop(&self, root: Pid) -> Result<()> {
        tree::kill(root, Signal::HUP);
        Ok(())
    }
}
