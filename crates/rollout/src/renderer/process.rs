//! The process that renders, from outside: started, told, heard, and over in time.
//!
//! Its pipes are waited for until it has been silent for too long, or all of it takes too long; then it
//! is killed. One that cannot even be killed, as its disk does not answer, is left behind and reaped
//! later.

use super::ARGUMENT;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    process::{Pid, PidfdFlags, pidfd_open},
};
use std::{
    io::{self, BufReader, Read, Write},
    os::fd::AsFd,
    path::Path,
    process::{Child, ChildStdout, Command, ExitStatus, Stdio},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Those that could not be killed, and how many may be there.
static LEFT_BEHIND: Mutex<Vec<Child>> = Mutex::new(Vec::new());
const MOST_LEFT_BEHIND: usize = 4;
/// How soon a process is gone that was killed.
const KILLED_IN: Duration = Duration::from_secs(1);

/// How long it may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    pub(super) silence: Duration,
    pub(super) all: Duration,
}

pub(super) struct Process {
    child: Killed,
    /// Ends with `TimedOut` when its time is over.
    pub(super) output: BufReader<Waited<ChildStdout>>,
    patience: Patience,
}

/// Killed and reaped, whatever comes.
struct Killed(Option<Child>);

/// A pipe that does not wait for ever.
pub(super) struct Waited<T> {
    pipe: T,
    silence: Duration,
    end: Instant,
}

impl Process {
    /// Starts one, and tells it all of its work.
    pub(super) fn start(program: &Path, work: &[u8], patience: Patience) -> io::Result<Process> {
        let mut left = LEFT_BEHIND.lock().unwrap_or_else(PoisonError::into_inner);
        left.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        if left.len() >= MOST_LEFT_BEHIND {
            let why = format!("{MOST_LEFT_BEHIND} processes before hang, and cannot be killed");
            return Err(io::Error::other(why));
        }
        drop(left);
        let mut child = Command::new(program)
            .arg(ARGUMENT)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let child = Killed(Some(child));
        let (Some(input), Some(output)) = (input, output) else {
            return Err(io::Error::other("it has no pipes"));
        };
        let end = Instant::now() + patience.all;
        let output = BufReader::new(Waited::new(output, patience.silence, end)?);
        // It reads all before it answers.
        match Waited::new(input, patience.silence, end)?.write_all(work) {
            // It has died: why is found when it is heard.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            told => told?,
        }
        Ok(Process { child, output, patience })
    }

    /// Why it has ended; `None`: it does not end.
    pub(super) fn status(mut self) -> io::Result<Option<ExitStatus>> {
        match &mut self.child.0 {
            Some(child) => wait(child, self.patience.silence),
            None => Ok(None),
        }
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let Some(mut child) = self.0.take() else { return };
        // It fails of one that is reaped.
        let _ = child.kill();
        if matches!(wait(&mut child, KILLED_IN), Ok(None)) {
            LEFT_BEHIND.lock().unwrap_or_else(PoisonError::into_inner).push(child);
        }
    }
}

fn wait(child: &mut Child, longest: Duration) -> io::Result<Option<ExitStatus>> {
    if let Some(status) = child.try_wait()? {
        return Ok(Some(status));
    }
    let end = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    wait_for(&end, PollFlags::IN, Instant::now() + longest)?;
    child.try_wait()
}

/// Until it is ready, or the time has come.
fn wait_for(fd: &impl AsFd, what: PollFlags, until: Instant) -> io::Result<bool> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(fd, what)], Some(&left)) {
            Ok(count) => return Ok(count > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

impl<T: AsFd> Waited<T> {
    fn new(pipe: T, silence: Duration, end: Instant) -> io::Result<Waited<T>> {
        fcntl_setfl(&pipe, fcntl_getfl(&pipe)? | OFlags::NONBLOCK)?;
        Ok(Waited { pipe, silence, end })
    }

    fn when(
        &mut self,
        ready: PollFlags,
        mut transfer: impl FnMut(&mut T) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let until = self.end.min(Instant::now() + self.silence);
        loop {
            match transfer(&mut self.pipe) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                transferred => return transferred,
            }
            if !wait_for(&self.pipe, ready, until)? {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }
}

impl<T: AsFd + Read> Read for Waited<T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.when(PollFlags::IN, |pipe| pipe.read(buffer))
    }
}

impl<T: AsFd + Write> Write for Waited<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.when(PollFlags::OUT, |pipe| pipe.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
