//! supervisord: one Python process that captures the output of its jobs into rotated files.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Signal};

use super::{Peer, Who, Work, write};
use crate::failure::Result;
use crate::process::tree;

#[derive(Debug)]
pub(crate) struct Supervisord;

impl Supervisord {
    /// `keep` is the number of rotated files; a command that ends is not run again when `once`.
    pub(crate) fn program(
        dir: &Path,
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
            dir.display()
        )
    }

    pub(crate) fn configure(dir: &Path, programs: &str) -> Result<()> {
        let mut text = String::new();
        let at = dir.display();
        let _infallible = write!(
            text,
            "[supervisord]\nnodaemon=true\nminfds=8192\nminprocs=200\nlogfile={at}/supervisord.log\n\
             pidfile={at}/supervisord.pid\nchildlogdir={at}/log\nsilent=true\n{programs}"
        );
        write(&dir.join("log/.keep"), "")?;
        write(&dir.join("supervisord.conf"), &text)
    }
}

impl Peer for Supervisord {
    fn who(&self) -> Who {
        Who::Supervisord
    }

    fn prepare(&self, dir: &Path, work: &Work) -> Result<()> {
        let mut programs: String = work
            .commands()
            .map(|(name, command)| Self::program(dir, &name, &command.join(" "), 3, false))
            .collect();
        if let Some(talker) = &work.talker {
            programs += &Self::program(dir, "talker", &talker.join(" "), 3, false);
        }
        // One group: supervisord ends groups one after the other, a second or so for each.
        let names: Vec<String> = work.commands().map(|(name, _)| name).collect();
        programs += &format!("\n[group:jobs]\nprograms={}\n", names.join(","));
        Self::configure(dir, &programs)
    }

    fn launch(&self, dir: &Path, _work: &Work) -> Command {
        let mut command = tree::marked("supervisord", dir);
        command.arg("-c").arg(dir.join("supervisord.conf"));
        command
    }

    fn stop(&self, _dir: &Path, root: Pid) -> Result<()> {
        tree::kill(root, Signal::TERM);
        Ok(())
    }
}
