//! Horust: one process, and a file for every job; output goes into files that it can rotate.

use std::path::PathBuf;
use std::process::Command;

use rustix::process::{Pid, Signal};

use super::{Peer, Place, Who, Work, installed, write};
use crate::failure::{Failure, Result};
use crate::process::tree;

/// Measured where it is installed. It does not tell its version.
#[derive(Debug)]
pub(crate) struct Horust {
    program: PathBuf,
}

impl Horust {
    pub(crate) fn find() -> Option<Horust> {
        installed("horust").map(|program| Horust { program })
    }
}

impl Peer for Horust {
    fn who(&self) -> Who {
        Who::Horust
    }

    fn prepare(&self, place: &Place, work: &Work) -> Result<()> {
        if work.talker.is_some() {
            return Err(Failure::new("it rotates no logs by size, so nobody may flood it"));
        }
        for (name, command) in work.commands() {
            let log = place.state.join(&name).display().to_string();
            let text = format!(
                "command = {:?}\nstdout = \"{log}.out\"\nstderr = \"{log}.err\"\n\
                 [restart]\nstrategy = \"always\"\nbackoff = \"0s\"\nattempts = 1000000\n",
                command.join(" ")
            );
            write(&place.run.join("services").join(format!("{name}.toml")), &text)?;
        }
        Ok(())
    }

    fn launch(&self, place: &Place, _work: &Work) -> Command {
        let mut command = tree::marked(&self.program, &place.run);
        command.arg("--uds-folder-path").arg(place.run.join("sockets"));
        command.arg("--services-path").arg(place.run.join("services"));
        command
    }

    fn stop(&self, root: Pid) -> Result<()> {
        tree::kill(root, Signal::TERM);
        Ok(())
    }
}
