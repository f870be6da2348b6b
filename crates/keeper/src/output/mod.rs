//! The output of jobs: from their pipes into files and, if wanted, on to our own stdout.
//!
//! ```text
//!  pipes ──► writer thread ──► logs/<job>/current        a slow disk slows the job, loses nothing
//!                 │
//!                 └──► queue ─► forwarder thread ──► stdout, stderr      a stuck reader costs lines
//! ```
//!
//! The main thread only posts commands and reads what is posted back: it waits for neither thread.
//! Both can be brought to rest with nothing lost: what they hold then goes through an upgrade as
//! [`OutputState`]. A disk that hangs holds up the writer alone, and not the end of the process
//! (`sys::apart`).

mod activity;
mod forwarder;
mod held;
mod lines;
mod log_file;
mod mailbox;
mod reused;
mod said;
mod stream;
mod writer;

use activity::Activity;
pub(crate) use forwarder::ForwardState;
use forwarder::{Destination, ForwardQueue};
pub(crate) use held::HeldOutput;
pub(crate) use log_file::Gap;
use mailbox::Mailbox;
use mainstay_core::{
    name::Name,
    plan::{Log, NodeLog},
};
use mainstay_wire::link::LogFigures;
use reused::LastStreams;
pub(crate) use reused::ReadHalf;
use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    io,
    os::fd::{AsRawFd, BorrowedFd, RawFd},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
pub(crate) use stream::{Channel, Owner, ReadEnd, Stream, WriteEnd};
use writer::{Pipes, Writer};

/// Lines of our own log that wait for a writer that hangs.
const MOST_NOTES: usize = 1000;

#[derive(Debug)]
enum WriterCommand {
    Open(Stream),
    /// This user of a stream is gone: read what is there, then close.
    Close {
        key: u64,
        user: u32,
    },
    /// A line of our own log; and whether it was forwarded already.
    Log {
        text: String,
        forwarded: bool,
    },
    /// Another `log` for what the job writes from now on.
    Change(Name, Log),
    /// Another way for our own log; `None`: plain lines on stderr.
    Own(Option<Log>),
    Check(CheckLines),
    Rotate,
    Forget(Name),
    /// Room in the queue again.
    Resume,
    Rest,
    Finish,
}

/// What a check has written, to be forwarded with the lines of its job.
#[derive(Debug)]
pub(crate) struct CheckLines {
    pub(crate) job: Name,
    pub(crate) pid: u32,
    pub(crate) log: Box<Log>,
    pub(crate) text: Vec<u8>,
}

/// What the threads have to tell.
#[derive(Debug)]
pub(crate) enum WriterEvent {
    Gap {
        job: Name,
        lines: u64,
    },
    Closed {
        job: Name,
        file: PathBuf,
        compress: bool,
    },
    /// One of them has come to rest, or to the end of its work.
    Changed,
}

/// What the threads begin with.
#[derive(Debug, Default)]
pub(crate) struct OutputState {
    pub(crate) figures: BTreeMap<Name, LogFigures>,
    pub(crate) gaps: Vec<(Owner, Gap)>,
    pub(crate) forward: ForwardState,
}

/// How far the writer's priority is below that of the main thread.
const BELOW: i32 = 5;

type Figures = Arc<Mutex<BTreeMap<Name, LogFigures>>>;

pub(crate) struct Output {
    logs: PathBuf,
    commands: Arc<Mailbox<WriterCommand>>,
    pipes: Arc<Pipes>,
    events: Arc<Mailbox<WriterEvent>>,
    queue: Arc<ForwardQueue>,
    activity: Arc<Activity>,
    figures: Figures,
    last: RefCell<LastStreams>,
    /// It was said that the writer hangs.
    told: Cell<bool>,
}

impl Output {
    pub(crate) fn start(logs: PathBuf, state: OutputState) -> io::Result<Output> {
        let commands = Arc::new(Mailbox::new()?);
        let events = Arc::new(Mailbox::new()?);
        let queue = Arc::new(ForwardQueue::new(state.forward)?);
        let activity = Arc::new(Activity::new());
        let figures: Figures = Arc::new(Mutex::new(state.figures));
        let mut writer = Writer::new(
            logs.clone(),
            (commands.clone(), events.clone()),
            queue.clone(),
            activity.clone(),
            figures.clone(),
        )?;
        let pipes = writer.pipes();
        for (owner, gap) in state.gaps {
            writer.resume_gap(&owner, gap);
        }
        let (to_writer, to_main, to_write) = (commands.clone(), events.clone(), queue.clone());
        thread("writer", move || {
            // Below the main thread: a flood of output must not hold up a restart. It can always
            // be lowered.
            let _ = rustix::process::nice(BELOW);
            writer.run()
        })?;
        thread("forwarder", move || to_write.forward(&to_writer, &to_main))?;
        let (last, told) = (RefCell::default(), Cell::default());
        Ok(Output { logs, commands, pipes, events, queue, activity, figures, last, told })
    }

    /// A pipe for what somebody writes, from now on or again.
    pub(crate) fn pipe(
        &self,
        owner: &Owner,
        channel: Channel,
    ) -> io::Result<(ReadHalf, std::os::fd::OwnedFd)> {
        if self.hangs()
            && let Some(again) = self.last.borrow().again(owner, channel)
        {
            return Ok(again);
        }
        let (read, write) = crate::process::launch::pipe()?;
        Ok((ReadHalf::new(read), write))
    }

    /// Whether a terminal can be made for a job: each needs two descriptors, and cannot be used again.
    pub(crate) fn has_taken_terminal(&self, owner: &Owner) -> bool {
        !self.hangs() || !self.last.borrow().has_terminal(owner)
    }

    /// The writer hears of it when there is something to read: most jobs say nothing at first.
    pub(crate) fn open(&self, stream: Stream) {
        let is_known = self.last.borrow_mut().note(&stream);
        match &stream.owner {
            Owner::Job(job) if is_known => {
                let is_same = |waiting: &WriterCommand| matches!(waiting, WriterCommand::Change(name, _) if name == job);
                self.commands.replace(is_same, WriterCommand::Change(job.clone(), stream.log));
            }
            Owner::Own if is_known => {}
            Owner::Job(_) | Owner::Own => {
                // One that cannot be listened to is closed.
                let _ = self.commands.leave(WriterCommand::Open(stream), |command| match command {
                    WriterCommand::Open(stream) => self.pipes.add(stream),
                    _ => Ok(()),
                });
            }
        }
    }

    /// The process of a job is gone, and with it who wrote into this stream.
    pub(crate) fn close(&self, job: &Name, key: u64) {
        let user = self.last.borrow().user(job, key);
        let close = WriterCommand::Close { key, user };
        if self.activity.hangs() {
            let is_same = |waiting: &WriterCommand| matches!(waiting, WriterCommand::Close { key: other, .. } if *other == key);
            self.commands.replace(is_same, close);
        } else {
            self.commands.post(close);
        }
    }

    /// A line of our own log.
    pub(crate) fn log(&self, text: impl Into<String>) {
        let text = text.into();
        // While the writer hangs nobody would hear of it otherwise.
        let forwarded = self.activity.hangs();
        if forwarded {
            let line = format!("mainstay: {text}\n").into_bytes();
            self.queue.push(Destination::Stderr, line, 1);
            if self.commands.look(<[_]>::len) > MOST_NOTES {
                return;
            }
        }
        self.commands.post(WriterCommand::Log { text, forwarded });
    }

    pub(crate) fn change(&self, job: Name, log: Log) {
        self.commands.post(WriterCommand::Change(job, log));
    }

    /// How lines are forwarded from now on, as far as that is not a job's affair.
    pub(crate) fn follow(&self, log: &NodeLog) {
        self.queue.set_file(log.file.clone());
        self.commands.post(WriterCommand::Own(log.own.clone()));
    }

    pub(crate) fn forward_check(&self, lines: CheckLines) {
        // Nobody is to keep what cannot be written: it is in the answer of the check as well.
        if !self.activity.hangs() {
            self.commands.post(WriterCommand::Check(lines));
        }
    }

    /// Closes every log file, and opens anew what lines are forwarded into.
    pub(crate) fn rotate(&self) {
        self.commands.post(WriterCommand::Rotate);
        self.queue.reopen_file();
    }

    pub(crate) fn forget(&self, job: Name) {
        self.last.borrow_mut().forget(&job);
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

    /// Whether the writer is at something that does not come to an end; says so once.
    pub(crate) fn hangs(&self) -> bool {
        let hangs = self.activity.hangs();
        if hangs && !self.told.replace(hangs) {
            let dir = self.logs.display();
            self.log(format!("logs cannot be written: the disk of {dir} does not answer"));
        }
        self.told.set(hangs);
        hangs
    }

    /// Wants both threads to rest; [`WriterEvent::Changed`] tells when one does.
    pub(crate) fn want_rest(&self) {
        self.activity.want_rest();
        self.commands.post(WriterCommand::Rest);
        self.queue.want_rest();
    }

    /// Ends a rest, or calls it off.
    pub(crate) fn go_on(&self) {
        self.activity.go_on();
        self.queue.go_on();
    }

    pub(crate) fn is_writer_at_rest(&self) -> bool {
        self.activity.at_rest(|_| ()).is_some()
    }

    pub(crate) fn is_forwarder_at_rest(&self) -> bool {
        self.queue.is_at_rest()
    }

    /// What the threads hold, if the writer is at rest; with what it has not been able to do yet.
    pub(crate) fn held<Described>(
        &self,
        describe: impl Fn(&Stream, &Log) -> Described,
    ) -> Option<HeldOutput<Described>> {
        self.activity.at_rest(|state| {
            self.commands.look(|waiting| HeldOutput {
                figures: self.figures(),
                forward: self.queue.state(),
                ..HeldOutput::of(state, waiting, describe)
            })
        })
    }

    /// What the writer sleeps on.
    pub(crate) fn pipes_fd(&self) -> RawFd {
        self.pipes.as_raw_fd()
    }

    /// Has everything written out; [`WriterEvent::Changed`] tells when it is.
    pub(crate) fn finish(&self) {
        self.commands.post(WriterCommand::Finish);
        self.queue.finish();
    }

    /// Whether everything is written, as far as somebody takes it.
    pub(crate) fn is_finished(&self) -> bool {
        self.activity.is_finished() && self.queue.is_drained()
    }

    /// Goes up with everything that is written.
    pub(crate) fn progress(&self) -> u64 {
        self.activity.steps() + self.queue.moved()
    }
}

fn thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<()> {
    // Nobody waits for its end: it ends with the process.
    std::thread::Builder::new().name(name.into()).stack_size(256 << 10).spawn(work).map(drop)
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
