//! `mainstay run --detach`: another process becomes the keeper, in a session of its own, and this one
//! waits until startup is said.
//!
//! ```text
//!  run --detach ── starts ──► __detached: the keeper
//!       │  ◄── stdin, a socket ── a byte: it has started; its end: it has not
//!       └  ◄── stderr, a pipe ─── what it says until then
//! ```

use super::run::{run, source};
use crate::{
    args::{RunArgs, RunCommandArgs},
    dirs::{TypedDirs, UserEnv},
    failure::{FAILED, Failure},
    term::{Page, print_json},
};
use mainstay_core::text::bytes;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{AddressFamily, SocketFlags, SocketType, socketpair},
};
use serde_json::json;
use std::{
    env, fs,
    io::{self, Write},
    os::{
        fd::OwnedFd,
        unix::process::{CommandExt, ExitStatusExt},
    },
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

/// What it has to say about its start is said by then.
const LAST_WORDS: Duration = Duration::from_millis(100);
/// The same of its end: it is there to be read.
const AFTER_END: Duration = Duration::from_secs(1);

/// What has become of the run that is left behind.
enum Outcome {
    Started,
    Ended(ExitStatus),
}

pub(crate) fn detach(args: &RunCommandArgs) -> Result<i32, Failure> {
    let (socket, mut child) = start(&args.run)?;
    let outcome = follow(&socket, &mut child);
    let outcome = outcome.map_err(|error| Failure::of("cannot follow the start", error))?;
    match outcome {
        Outcome::Started => tell(args, child.id()).map(|()| 0),
        Outcome::Ended(status) => match (status.code(), status.signal()) {
            // It has said why.
            (Some(code), _) => Ok(code),
            (None, signal) => {
                let signal = signal.map(|it| format!(" by signal {it}")).unwrap_or_default();
                let text = format!("the keeper was killed{signal} before the node had started");
                Err(Failure::new(FAILED, text))
            }
        },
    }
}

fn start(args: &RunArgs) -> Result<(OwnedFd, Child), Failure> {
    let failed = |error: io::Error| Failure::of("cannot start the keeper", error);
    let pair = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    let (ours, theirs) = pair.map_err(|error| failed(error.into()))?;
    let mut command = Command::new("/proc/self/exe");
    if let Some(name) = env::args_os().next() {
        command.arg0(name);
    }
    command
        .arg("__detached")
        .args(args.run_dir.iter().flat_map(|dir| ["--run-dir".as_ref(), dir.as_os_str()]));
    command.args(args.state_dir.iter().flat_map(|dir| ["--state-dir".as_ref(), dir.as_os_str()]));
    command.args(source(args)?);
    command.stdin(theirs).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().map_err(failed)?;
    Ok((ours, child))
}

/// Until it has started or ended; what it says meanwhile is shown.
fn follow(socket: &OwnedFd, child: &mut Child) -> io::Result<Outcome> {
    let mut stderr = child.stderr.take().map(OwnedFd::from);
    let started = loop {
        let mut watched = vec![PollFd::new(socket, PollFlags::IN)];
        watched.extend(stderr.iter().map(|it| PollFd::new(it, PollFlags::IN)));
        wait(&mut watched, None)?;
        let (is_told, says) = (is_ready(&watched, 0), is_ready(&watched, 1));
        if says && !stderr.as_ref().map_or(Ok(false), relay)? {
            stderr = None;
        }
        if is_told {
            break rustix::io::read(socket, &mut [0; 1])? > 0;
        }
    };
    let patience = if started { LAST_WORDS } else { AFTER_END };
    while let Some(pipe) = &stderr {
        let mut watched = [PollFd::new(pipe, PollFlags::IN)];
        wait(&mut watched, Some(patience))?;
        if !is_ready(&watched, 0) || !relay(pipe)? {
            break;
        }
    }
    Ok(if started { Outcome::Started } else { Outcome::Ended(child.wait()?) })
}

fn wait(watched: &mut [PollFd<'_>], patience: Option<Duration>) -> io::Result<()> {
    let patience = patience.and_then(|it| Timespec::try_from(it).ok());
    loop {
        match poll(watched, patience.as_ref()) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn is_ready(watched: &[PollFd<'_>], at: usize) -> bool {
    watched.get(at).is_some_and(|it| !it.revents().is_empty())
}

/// Shows what is there; whether there may be more.
fn relay(pipe: &OwnedFd) -> io::Result<bool> {
    let mut room = [0; 4096];
    let count = rustix::io::read(pipe, &mut room)?;
    // One who does not look has nothing to lose.
    let _ = io::stderr().write_all(&room[..count]);
    Ok(count > 0)
}

fn tell(args: &RunCommandArgs, pid: u32) -> Result<(), Failure> {
    let env = UserEnv::of_process()?;
    let typed = TypedDirs { run: args.run.run_dir.as_deref(), state: None };
    let place = env.place(typed, &env.project_of(&args.run));
    let run_dir = place.run.dir();
    if args.json {
        let run_dir = bytes::from_os(run_dir.as_os_str());
        return print_json(&json!({ "pid": pid, "run_dir": run_dir }));
    }
    let mut page = Page::new();
    page.line(format!("the node runs as process {pid}, in {}", run_dir.display()));
    page.show()
}

/// `mainstay __detached`: in the process that becomes the keeper.
pub(crate) fn detached(args: RunArgs) -> Result<i32, Failure> {
    let failed = |error: io::Error| Failure::of("cannot leave the session", error);
    let starter = rustix::stdio::stdin().try_clone_to_owned().map_err(failed)?;
    let null = fs::File::open("/dev/null").map_err(failed)?;
    rustix::stdio::dup2_stdin(null).map_err(|error| failed(error.into()))?;
    match rustix::process::setsid() {
        // It leads one already: this is another run in its place.
        Ok(_) | Err(Errno::PERM) => run(args, Some(starter)),
        Err(error) => Err(failed(error.into())),
    }
}
