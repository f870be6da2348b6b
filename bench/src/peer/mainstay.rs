//! Mainstay: a keeper and its agent.

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::{Peer, Place, Who, Work, write};
use crate::failure::{Doing, Failure, Result};
use crate::process::tree;

#[derive(Debug, Clone)]
pub(crate) struct Mainstay {
    pub binary: PathBuf,
}

/// How output is filed: as it comes, or stamped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filed {
    Raw,
    Stamped,
}

/// What stands before the jobs.
fn head(filed: Filed, keep: usize) -> String {
    let file = match filed {
        Filed::Raw => "raw",
        Filed::Stamped => "cri",
    };
    format!(
        "[node]\nexit = \"never\"\n\n[log]\nforward = false\nfile = \"{file}\"\n\
         keep = {{ size = \"10M\", files = {keep} }}\n"
    )
}

impl Mainstay {
    /// A configuration whose jobs are `(name, command, is it restarted)`.
    pub(crate) fn configure<'a>(
        place: &Place,
        filed: Filed,
        keep: usize,
        jobs: impl Iterator<Item = (&'a str, &'a [String], bool)>,
    ) -> Result<()> {
        let mut text = head(filed, keep);
        for (name, command, restarted) in jobs {
            let restart = if restarted { "{ on = \"any\", delay = \"0s\" }" } else { "\"never\"" };
            let _infallible =
                write!(text, "\n[jobs.{name}]\nexec = {command:?}\nrestart = {restart}\n");
        }
        write(&place.run.join("mainstay.toml"), &text)
    }

    pub(crate) fn command(&self, verb: &str, place: &Place) -> Command {
        let mut command = tree::marked(&self.binary, &place.run);
        command.arg(verb).arg("--run-dir").arg(run_dir(place));
        command
    }

    pub(crate) fn agent(root: Pid) -> Option<Pid> {
        let is_agent = |pid: &Pid| tree::command_line(*pid).contains("__agent");
        tree::descendants(root).into_iter().find(is_agent)
    }
}

impl Peer for Mainstay {
    fn who(&self) -> Who {
        Who::Mainstay
    }

    fn prepare(&self, place: &Place, work: &Work) -> Result<()> {
        let mut jobs: Vec<(String, Vec<String>)> = work.commands().collect();
        jobs.extend(work.talker.clone().map(|talker| ("talker".to_owned(), talker)));
        let jobs = jobs.iter().map(|(name, command)| (name.as_str(), command.as_slice(), true));
        Self::configure(place, Filed::Stamped, 3, jobs)
    }

    fn launch(&self, place: &Place, _work: &Work) -> Command {
        let mut command = self.command("run", place);
        command.arg("--state-dir").arg(&place.state).arg("-c").arg(place.run.join("mainstay.toml"));
        command
    }

    fn stop(&self, root: Pid) -> Result<()> {
        tree::kill(root, Signal::TERM);
        Ok(())
    }
}

/// Mainstay with jobs that no other peer could be given.
#[derive(Debug)]
pub(crate) struct Configured {
    pub mainstay: Mainstay,
    /// The jobs, as they stand in the configuration.
    pub text: String,
    /// Of the node, beside what everything has.
    pub variables: Vec<(&'static str, String)>,
}

impl Configured {
    pub(crate) fn new(mainstay: &Mainstay, text: String) -> Configured {
        Configured { mainstay: mainstay.clone(), text, variables: Vec::new() }
    }

    pub(crate) fn rewrite(&self, place: &Place) -> Result<()> {
        let text = head(Filed::Stamped, 3) + &self.text;
        write(&place.run.join("mainstay.toml"), &text)
    }
}

impl Peer for Configured {
    fn who(&self) -> Who {
        Who::Mainstay
    }

    fn prepare(&self, place: &Place, _work: &Work) -> Result<()> {
        self.rewrite(place)
    }

    fn launch(&self, place: &Place, work: &Work) -> Command {
        let mut command = self.mainstay.launch(place, work);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    fn stop(&self, root: Pid) -> Result<()> {
        self.mainstay.stop(root)
    }
}

pub(crate) fn run_dir(place: &Place) -> PathBuf {
    place.run.join("run")
}

pub(crate) fn log_dir(place: &Place, job: &str) -> PathBuf {
    place.state.join("logs").join(job)
}

/// One GET, from connecting to the last byte of the answer; its body.
pub(crate) fn ask(place: &Place, route: &str) -> Result<String> {
    let socket = run_dir(place).join("mainstay.sock");
    let doing = "ask the API";
    let mut stream = UnixStream::connect(&socket).doing(doing)?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).doing(doing)?;
    let request = format!("GET {route} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).doing(doing)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).doing(doing)?;
    let answer = String::from_utf8_lossy(&answer);
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.starts_with("HTTP/1.1 200") => Ok(body.to_owned()),
        _ => {
            let start: String = answer.chars().take(80).collect();
            Err(Failure::new(format!("{doing}: the answer was {start:?}")))
        }
    }
}

/// One connection to a job's control socket, until the keeper has told the first byte of the state.
pub(crate) fn ask_control(place: &Place, job: &str) -> Result<()> {
    let socket = run_dir(place).join("jobs").join(job).join("control");
    let doing = "ask a control socket";
    let mut stream = UnixStream::connect(&socket).doing(doing)?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).doing(doing)?;
    stream.read_exact(&mut [0]).doing(doing)
}
