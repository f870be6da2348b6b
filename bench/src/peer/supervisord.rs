//! supervisord: one Python process that captures the output of its jobs into rotated files.

use std::fmt::Write;
use std::process::Command;

use rustix::process::{Pid, Signal};

use super::{Peer, Place, Who, Work, write};
use crate::failure::Result;
use crate::process::tree;

#[derive(Debug)]
pub(crate) struct Supervisord;

impl Supervisord {
    /// `keep` is the number of rotated files; a command that ends is not run again when `once`.
    pub(crate) fn program(
        place: &Place,
        name: &str,
        command: &str,
        keep: usize,
        once: bool,
    ) -> String {
        let restart = if once { "autorestart=false\nstartsecs=0" } else { "autorestart=true" };
        format!(
            "\n[program:{name}]\ncommand={command}\n{restart}\nredirect_stderr=true\n\
             stdout_logfile={}/log/{name}\nstdout_logfile_maxbytes=10000000\n\
             stdout_logfile_backups={keep}\n",
            place.state.display()
        )
    }

    pub(crate) fn configure(place: &Place, programs: &str) -> Result<()> {
        let mut text = String::new();
        let (run, state) = (place.run.display(), place.state.display());
        let _infallible = write!(
            text,
            "[supervisord]\nnodaemon=true\nminfds=8192\nminprocs=200\nlogfile={state}/supervisord.log\n\
             pidfile={run}/supervisord.pid\nchildlogdir={state}/log\nsilent=true\n{programs}"
        );
        write(&place.state.join("log/.keep"), "")?;
        write(&place.run.join("supervisord.conf"), &text)
    }
}

impl Peer for Supervisord {
    fn who(&self) -> Who {
        Who::Supervisord
    }

    fn prepare(&self, place: &Place, work: &Work) -> Result<()> {
        let mut programs: String = work
            .commands()
            .map(|(name, command)| Self::program(place, &name, &command.join(" "), 3, false))
            .collect();
        if let Some(talker) = &work.talker {
            programs += &Self::program(place, "talker", &talker.join(" "), 3, false);
        }
        // One group: supervisord ends groups one after the other, a second or so for each.
        let names: Vec<String> = work.commands().map(|(name, _)| name).collect();
        programs += &format!("\n[group:jobs]\nprograms={}\n", names.join(","));
        Self::configure(place, &programs)
    }

    fn launch(&self, place: &Place, _work: &Work) -> Command {
        let mut command = tree::marked("supervisord", &place.run);
        command.arg("-c").arg(place.run.join("supervisord.conf"));
        command
    }

    fn stop(&self, root: Pid) -> Result<()> {
        tree::kill(root, Signal::TERM);
        Ok(())
    }
}
