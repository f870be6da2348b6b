//! The output of jobs: from their pipes into files and, if wanted, on to our own stdout.
//!
//! ```text
//!  pipes ──► writer thread ──► logs/<job>/current        a slow disk slows the job, loses nothing
//!                 │
//!                 └──► queue ─► forwarder thread ──► stdout, stderr      a stuck reader costs lines
//! ```
//!
//! The main thread only commands commands and reads what is posted back. Both threads can be stopped
//! with nothing lost: what they hold comes back as [`OutputState`] and goes through an upgrade.

mod forwarder;
mod lines;
mod log_file;
mod mailbox;
mod writer;

use forwarder::ForwardQueue;
pub(crate) use log_file::Gap;
use mailbox::Mailbox;
use mainstay_core::{name::Name, plan::Log};
use mainstay_wire::link::LogFigures;
use std::{
    collections::BTreeMap,
    io,
    os::fd::{BorrowedFd, OwnedFd},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::Duration,
};
use writer::{Pipes, Writer};

/// Whose output it is: a job's, or our own (keeper and agent).
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub(crate) enum Owner {
    Job(Name),
    Own,
}

impl Owner {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Owner::Job(name) => name.as_str(),
            Owner::Own => "mainstay",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Channel {
    Stdout,
    Stderr,
}

impl Channel {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Channel::Stdout => "stdout",
            Channel::Stderr => "stderr",
        }
    }
}

/// What the job writes to.
#[derive(Debug)]
pub(crate) enum WriteEnd {
    Pipe,
    /// Its lines end with `\r\n`. We keep its end open until the job is gone.
    Terminal(Option<OwnedFd>),
}

/// The read end of one pipe or terminal, and what becomes of what comes out of it.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) key: u64,
    pub(crate) owner: Owner,
    pub(crate) channel: Channel,
    pub(crate) log: Log,
    pub(crate) fd: OwnedFd,
    pub(crate) write_end: WriteEnd,
    /// The beginning of a line whose end has not come yet.
    pub(crate) partial: Vec<u8>,
}

#[derive(Debug)]
enum WriterCommand {
    Open(Stream),
    /// The process is gone: read what is there, then close.
    Close(u64),
    Log(String),
    /// Another `log` for what the job writes from now on.
    Change(Name, Log),
    Rotate,
    Forget(Name),
    /// Room in the queue again.
    Resume,
    Stop {
        drain: bool,
    },
}

/// What the writer has to tell.
#[derive(Debug)]
pub(crate) enum WriterEvent {
    Gap { job: Name, lines: u64 },
    Closed { job: Name, file: PathBuf, compress: bool },
}

/// What the threads held when they were stopped.
#[derive(Debug, Default)]
pub(crate) struct OutputState {
    pub(crate) streams: Vec<Stream>,
    pub(crate) figures: BTreeMap<Name, LogFigures>,
    pub(crate) gaps: Vec<(Owner, Gap)>,
    /// What nobody has read yet.
    pub(crate) events: Vec<WriterEvent>,
    pub(crate) forward: [Vec<u8>; 2],
    pub(crate) forward_dropped: u64,
}

type Figures = Arc<Mutex<BTreeMap<Name, LogFigures>>>;

pub(crate) struct Output {
    commands: Arc<Mailbox<WriterCommand>>,
    pipes: Arc<Pipes>,
    events: Arc<Mailbox<WriterEvent>>,
    queue: Arc<ForwardQueue>,
    figures: Figures,
    writer: JoinHandle<Writer>,
    forwarder: JoinHandle<()>,
}

impl Output {
    pub(crate) fn start(logs: PathBuf, rest: OutputState) -> io::Result<Output> {
        let commands = Arc::new(Mailbox::new()?);
        let events = Arc::new(Mailbox::new()?);
        let queue = Arc::new(ForwardQueue::new(rest.forward, rest.forward_dropped)?);
        let figures: Figures = Arc::new(Mutex::new(rest.figures));
        let mut writer =
            Writer::new(logs, commands.clone(), events.clone(), queue.clone(), figures.clone())?;
        let pipes = writer.pipes();
        for stream in rest.streams {
            if pipes.add(&stream).is_ok() {
                writer.open(stream);
            }
        }
        for (owner, gap) in rest.gaps {
            writer.resume_gap(&owner, gap);
        }
        let (waker, to_write) = (commands.clone(), queue.clone());
        Ok(Output {
            writer: thread("writer", move || writer.run())?,
            forwarder: thread("forwarder", move || {
                to_write.forward(|| waker.post(WriterCommand::Resume))
            })?,
            commands,
            pipes,
            events,
            queue,
            figures,
        })
    }

    /// The writer hears of it when there is something to read: most jobs say nothing at first.
    pub(crate) fn open(&self, stream: Stream) {
        // One that cannot be listened to is closed.
        let _ = self.commands.leave(WriterCommand::Open(stream), |command| match command {
            WriterCommand::Open(stream) => self.pipes.add(stream),
            _ => Ok(()),
        });
    }

    pub(crate) fn close(&self, key: u64) {
        self.commands.post(WriterCommand::Close(key));
    }

    /// A line of our own log.
    pub(crate) fn log(&self, text: impl Into<String>) {
        self.commands.post(WriterCommand::Log(text.into()));
    }

    pub(crate) fn change(&self, job: Name, log: Log) {
        self.commands.post(WriterCommand::Change(job, log));
    }

    pub(crate) fn rotate(&self) {
        self.commands.post(WriterCommand::Rotate);
    }

    pub(crate) fn forget(&self, job: Name) {
        self.commands.post(WriterCommand::Forget(job));
    }

    /// Readable when [`Output::events`] has something.
    pub(crate) fn events_fd(&self) -> BorrowedFd<'_> {
        self.events.fd()
    }

    pub(crate) fn events(&self) -> Vec<WriterEvent> {
        self.events.take()
    }

    pub(crate) fn figures(&self) -> BTreeMap<Name, LogFigures> {
        lock(&self.figures).clone()
    }

    pub(crate) fn forward_dropped(&self) -> u64 {
        self.queue.dropped()
    }

    /// Stops both threads and gives back what they held, lines in the middle included.
    pub(crate) fn stop(self) -> OutputState {
        self.commands.post(WriterCommand::Stop { drain: false });
        let writer = self.writer.join();
        // A reader that is stuck in spite of poll cannot be waited for: an exec ends the thread.
        self.queue.stop(Duration::from_millis(200));
        let (forward, forward_dropped) = self.queue.take();
        let (streams, gaps) = writer.map(Writer::into_rest).unwrap_or_default();
        let figures = std::mem::take(&mut *lock(&self.figures));
        OutputState { streams, figures, gaps, events: self.events.take(), forward, forward_dropped }
    }

    /// Writes out everything; gives a reader that takes nothing a bounded time.
    pub(crate) fn finish(self) {
        self.commands.post(WriterCommand::Stop { drain: true });
        let _ = self.writer.join();
        self.queue.drain(Duration::from_secs(2));
        self.queue.stop(Duration::from_millis(200));
        drop(self.forwarder);
    }
}

fn thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    std::thread::Builder::new().name(name.into()).stack_size(256 << 10).spawn(work)
}

/// A thread that panicked while holding it left plain data behind: it is still good.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Chunks as the writer thread takes them, and the rest as at the end of a stream.
#[cfg(feature = "fuzz")]
pub(crate) fn fuzz_log(chunks: &[&[u8]]) -> Vec<u8> {
    use mainstay_core::plan::FileFormat::Cri;
    let (mut header, mut partial, mut file) = (lines::Header::default(), Vec::new(), Vec::new());
    header.set(0, Channel::Stdout);
    for chunk in chunks {
        lines::split(&mut partial, chunk, |piece| header.to_file(Cri, piece, &mut file));
    }
    if !partial.is_empty() {
        header.to_file(Cri, lines::Piece { text: &partial, whole: true }, &mut file);
    }
    file
}
