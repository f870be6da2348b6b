//! The floor: a parent that clones its children in a loop, waits, and clones again. It shares its
//! table of descriptors until the child has one of its own, holds three descriptors a job, knows
//! no configuration, keeps no output, and has nothing to say to anyone.

use std::process::Command;

use rustix::process::{Pid, Signal};

use super::{Peer, Place, Who, Work};
use crate::failure::{Doing, Result};
use crate::process::tree;

#[derive(Debug)]
pub(crate) struct Floor;

impl Peer for Floor {
    fn who(&self) -> Who {
        Who::Floor
    }

    fn prepare(&self, _place: &Place, _work: &Work) -> Result<()> {
        Ok(())
    }

    /// The talk goes through `cat` into a file that is begun anew every 100 MB.
    fn launch(&self, place: &Place, work: &Work) -> Command {
        let own = std::env::current_exe().unwrap_or_else(|_| "mainstay-bench".into());
        let mut floor = vec![own.display().to_string(), "__floor".into(), work.jobs.to_string()];
        floor.extend(work.commands().next().map(|(_, command)| command).unwrap_or_default());
        let mut command = match &work.talker {
            None => tree::marked(&floor[0], &place.run),
            Some(talker) => {
                let generator = format!("{} __lines 1000000", talker[0]);
                let log = place.state.join("log").display().to_string();
                let mut shell = tree::marked("sh", &place.run);
                shell
                    .arg("-c")
                    .arg(format!("while :; do {generator} | cat > {log}; done & exec \"$@\"",));
                shell.arg("sh").arg(&floor[0]);
                shell
            }
        };
        command.args(&floor[1..]);
        command
    }

    fn stop(&self, root: Pid) -> Result<()> {
        let children = tree::descendants(root);
        rustix::process::kill_process(root, Signal::KILL).doing("kill the floor")?;
        for child in children {
            tree::kill(child, Signal::TERM);
        }
        Ok(())
    }
}
