//! pm2: one Node process that captures the output of its jobs into files, which it does not rotate.

use std::path::PathBuf;
use std::process::Command;

use rustix::process::{Pid, Signal};
use serde_json::{Value, json};

use super::{Peer, Place, Who, Work, installed, write};
use crate::failure::{Failure, Result};
use crate::process::tree;

/// Measured where it is installed.
#[derive(Debug)]
pub(crate) struct Pm2 {
    program: PathBuf,
}

impl Pm2 {
    pub(crate) fn find() -> Option<Pm2> {
        installed("pm2-runtime").map(|program| Pm2 { program })
    }

    pub(crate) fn version(&self) -> Option<String> {
        let output = Command::new(&self.program).arg("--version").output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        text.lines().last().map(|line| line.trim().to_owned())
    }
}

impl Peer for Pm2 {
    fn who(&self) -> Who {
        Who::Pm2
    }

    fn prepare(&self, place: &Place, work: &Work) -> Result<()> {
        if work.talker.is_some() {
            return Err(Failure::new("it rotates no logs, so nobody may flood it"));
        }
        let job = |(name, command): (String, Vec<String>)| {
            json!({
                "name": name,
                "script": command[0],
                "args": &command[1..],
                "interpreter": "none",
                "exec_mode": "fork",
                "restart_delay": 0,
                "max_restarts": 1_000_000,
                "out_file": place.state.join(format!("{name}.out")),
                "error_file": place.state.join(format!("{name}.err")),
            })
        };
        let apps: Vec<Value> = work.commands().map(job).collect();
        write(&place.run.join("jobs.config.json"), &json!({ "apps": apps }).to_string())
    }

    fn launch(&self, place: &Place, _work: &Work) -> Command {
        let mut command = tree::marked(&self.program, &place.run);
        command.env("PM2_HOME", place.run.join("pm2")).arg("start");
        command.arg(place.run.join("jobs.config.json"));
        command
    }

    fn stop(&self, root: Pid) -> Result<()> {
        tree::kill(root, Signal::TERM);
        Ok(())
    }
}
