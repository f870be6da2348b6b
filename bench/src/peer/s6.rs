//! s6: one s6-svscan, and an s6-supervise for every job.

use std::process::Command;

use rustix::process::{Pid, Signal};

use super::{Peer, Place, Who, Work, write_script};
use crate::failure::Result;
use crate::process::tree;

#[derive(Debug)]
pub(crate) struct S6;

impl Peer for S6 {
    fn who(&self) -> Who {
        Who::S6
    }

    fn prepare(&self, place: &Place, work: &Work) -> Result<()> {
        for (name, command) in work.commands() {
            write_script(&place.run.join("scan").join(name).join("run"), &command.join(" "))?;
        }
        if let Some(talker) = &work.talker {
            let service = place.run.join("scan/talker");
            let log = format!("s6-log n3 s10000000 T {}", place.state.join("log").display());
            write_script(&service.join("run"), &talker.join(" "))?;
            write_script(&service.join("log/run"), &log)?;
        }
        Ok(())
    }

    fn launch(&self, place: &Place, work: &Work) -> Command {
        let mut command = tree::marked("s6-svscan", &place.run);
        command.arg("-c").arg((work.jobs + 10).to_string()).arg(place.run.join("scan"));
        command
    }

    fn stop(&self, root: Pid) -> Result<()> {
        tree::kill(root, Signal::TERM);
        Ok(())
    }
}
