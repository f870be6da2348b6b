//! On to our own stdout and stderr, or into a file, through a bounded queue for each.
//!
//! A reader that is slow slows the jobs that write (their pipes fill up). A reader that takes
//! nothing for a second is stuck: from then on lines are dropped and counted until it moves again,
//! and no job waits for it. So is a file whose disk is full: it is tried again, from where the last
//! write ended. Our stdout is never made non-blocking: it may be shared with others.
//!
//! The file is opened here, and anew when somebody has moved it away and says so (SIGUSR1). While
//! it cannot be opened it counts as one that takes nothing.

use super::{
    WriterCommand, WriterEvent, lock,
    mailbox::{Mailbox, quiet, wake_reader},
};
use mainstay_sys::{apart::Apart, nonblocking};
use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, eventfd, poll},
    fs::FileType,
    io::Errno,
};
use std::{
    collections::VecDeque,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
    sync::{Condvar, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Past this, jobs that write wait for the reader.
const FULL: usize = 512 << 10;
/// Past this, lines are dropped whatever else holds.
const MOST: usize = 2 << 20;
const STUCK_AFTER: Duration = Duration::from_secs(1);
/// Until a file that takes nothing is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(250);
/// A pipe that polls as writable takes this much without blocking.
const PIECE: usize = 4096;
const LARGE_PIECE: usize = 64 << 10;
/// Of a file that is made, less what the umask takes.
const MODE: u32 = 0o644;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Destination {
    Stdout = 0,
    Stderr = 1,
    File = 2,
}

/// How many there are.
const WAYS: usize = 3;
const FILE: usize = Destination::File as usize;

#[derive(Debug)]
pub(super) struct ForwardQueue {
    inner: Mutex<Inner>,
    wake: OwnedFd,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    queues: [Queue; WAYS],
    dropped: u64,
    /// For which of them.
    writer_waits: [bool; WAYS],
    /// What lines are forwarded into.
    file: Option<PathBuf>,
    /// It is to be opened, or opened anew.
    reopen: bool,
    /// It was said that it cannot be.
    file_failed: bool,
    /// Bytes that were ever taken from us.
    moved: u64,
    rest_wanted: bool,
    at_rest: bool,
    /// Somebody waits until everything is written.
    finishing: bool,
}

#[derive(Debug, Default)]
struct Queue {
    blocks: VecDeque<Vec<u8>>,
    /// Written bytes of the first block.
    offset: usize,
    bytes: usize,
    stuck: bool,
    /// Nobody reads any more.
    closed: bool,
    /// Lines that were dropped, and are not yet told in the output itself.
    untold: u64,
}

/// What has not been written.
#[derive(Debug, Clone, Default)]
pub(crate) struct ForwardState {
    pub(crate) rest: [Vec<u8>; WAYS],
    pub(crate) untold: [u64; WAYS],
    pub(crate) dropped: u64,
}

impl Queue {
    fn push(&mut self, block: Vec<u8>) {
        self.bytes += block.len();
        self.blocks.push_back(block);
    }

    fn next(&self) -> Option<&[u8]> {
        self.blocks.front().map(|block| &block[self.offset..])
    }

    fn advance(&mut self, count: usize) {
        self.offset += count;
        self.bytes = self.bytes.saturating_sub(count);
        if self.blocks.front().is_some_and(|block| self.offset >= block.len()) {
            self.blocks.pop_front();
            self.offset = 0;
        }
    }

    fn close(&mut self) {
        *self = Queue { closed: true, ..Queue::default() };
    }

    /// Nothing to write, or nobody who takes it.
    fn is_drained(&self) -> bool {
        self.blocks.is_empty() || self.stuck || self.closed
    }

    fn rest(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.blocks.iter().flatten().copied().collect();
        bytes.drain(..self.offset.min(bytes.len()));
        bytes
    }
}

impl ForwardQueue {
    pub(super) fn new(state: ForwardState) -> io::Result<ForwardQueue> {
        let mut inner = Inner { dropped: state.dropped, ..Inner::default() };
        for ((queue, block), untold) in inner.queues.iter_mut().zip(state.rest).zip(state.untold) {
            queue.untold = untold;
            if !block.is_empty() {
                queue.push(block);
            }
        }
        let wake = eventfd(1, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(ForwardQueue { inner: Mutex::new(inner), wake, changed: Condvar::new() })
    }

    /// Takes a block of `lines` lines, or counts them as dropped.
    pub(super) fn push(&self, exit: Destination, block: Vec<u8>, lines: u64) {
        let first = {
            let mut inner = lock(&self.inner);
            let exit = match exit {
                // Until whoever means a file hears that there is none any more.
                Destination::File if inner.file.is_none() => Destination::Stdout,
                Destination::Stdout | Destination::Stderr | Destination::File => exit,
            };
            let queue = &mut inner.queues[exit as usize];
            if queue.closed
                || (queue.stuck && queue.bytes >= FULL)
                || queue.bytes + block.len() > MOST
            {
                queue.untold += if queue.closed { 0 } else { lines };
                inner.dropped += lines;
                return;
            }
            let first = queue.blocks.is_empty();
            let untold = std::mem::take(&mut queue.untold);
            if untold > 0 {
                let sign = if exit == Destination::Stdout { " |" } else { ":" };
                let text = format!("mainstay{sign} {untold} lines were not forwarded\n");
                queue.push(text.into_bytes());
            }
            queue.push(block);
            first
        };
        if first {
            wake_reader(self.wake.as_fd());
        }
    }

    /// Whether a job may go on writing. If not, the forwarder says so once there is room.
    pub(super) fn has_room(&self, to: Destination) -> bool {
        let mut inner = lock(&self.inner);
        let queue = &inner.queues[to as usize];
        let room = queue.bytes < FULL || queue.stuck || queue.closed;
        inner.writer_waits[to as usize] |= !room;
        room
    }

    /// Another file to forward into, or none. What waits for the last one still goes there.
    pub(super) fn set_file(&self, file: Option<PathBuf>) {
        let mut inner = lock(&self.inner);
        if inner.file != file {
            inner.reopen |= file.is_some();
            inner.file = file;
        }
        wake_reader(self.wake.as_fd());
    }

    /// Somebody may have moved it away.
    pub(super) fn reopen_file(&self) {
        lock(&self.inner).reopen = true;
        wake_reader(self.wake.as_fd());
    }

    pub(super) fn dropped(&self) -> u64 {
        lock(&self.inner).dropped
    }

    /// Bytes that were ever taken from us.
    pub(super) fn moved(&self) -> u64 {
        lock(&self.inner).moved
    }

    /// The forwarder's life.
    pub(super) fn forward(
        &self,
        commands: &Mailbox<WriterCommand>,
        events: &Mailbox<WriterEvent>,
    ) -> ! {
        let (stdout, stderr) = (rustix::stdio::stdout(), rustix::stdio::stderr());
        let mut ways = [Way::inherited(stdout), Way::inherited(stderr), Way::file()];
        loop {
            quiet(self.wake.as_fd());
            self.rest(|| events.post(WriterEvent::Changed));
            self.open_file(&mut ways[FILE]);
            let waiting = self.waiting();
            let ready = self.wait(waiting, &ways);
            for (index, way) in ways.iter_mut().enumerate() {
                if ready[index] {
                    self.write(index, way);
                } else if !waiting[index] {
                    way.moved = Instant::now();
                }
                let stuck = way.blocked.is_some() || way.moved.elapsed() >= STUCK_AFTER;
                lock(&self.inner).queues[index].stuck = stuck;
            }
            if self.take_room_again() {
                commands.post(WriterCommand::Resume);
            }
            if lock(&self.inner).finishing && self.is_drained() {
                events.post(WriterEvent::Changed);
            }
        }
    }

    /// Opens the file if that is wanted and due. One that cannot be opened is told once, and is
    /// tried again for as long as there is something to write.
    fn open_file(&self, way: &mut Way) {
        let wanted = {
            let inner = lock(&self.inner);
            inner.file.clone().filter(|_| inner.reopen && !way.is_to_wait())
        };
        let Some(path) = wanted else { return };
        let opened = way.open(&path);
        let told = {
            let mut inner = lock(&self.inner);
            // Somebody may have asked for another one meanwhile.
            inner.reopen = opened.is_err() || inner.file.as_ref() != Some(&path);
            std::mem::replace(&mut inner.file_failed, opened.is_err())
        };
        if let Err(error) = opened {
            way.blocked = Some(Instant::now());
            if !told {
                let path = path.display();
                let text = format!("mainstay: cannot open {path}: {error}; it is tried again\n");
                self.push(Destination::Stderr, text.into_bytes(), 1);
            }
        }
    }

    /// Which of them have something to write.
    fn waiting(&self) -> [bool; WAYS] {
        lock(&self.inner).queues.each_ref().map(|queue| queue.next().is_some())
    }

    /// Rests for as long as that is wanted.
    fn rest(&self, tell: impl FnOnce()) {
        let mut inner = lock(&self.inner);
        if !inner.rest_wanted {
            return;
        }
        inner.at_rest = true;
        tell();
        while inner.rest_wanted {
            inner = self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
        inner.at_rest = false;
    }

    fn wait(&self, waiting: [bool; WAYS], ways: &[Way; WAYS]) -> [bool; WAYS] {
        let mut asked = waiting;
        for (asked, way) in asked.iter_mut().zip(ways) {
            *asked &= way.fd().is_some() && !way.is_to_wait();
        }
        let mut fds = vec![PollFd::new(&self.wake, PollFlags::IN)];
        for fd in ways.iter().zip(asked).filter_map(|(way, asked)| way.fd().filter(|_| asked)) {
            fds.push(PollFd::from_borrowed_fd(fd, PollFlags::OUT));
        }
        // Without work there is nothing to be stuck on, and nothing to wake up for.
        let longest = if asked == waiting { STUCK_AFTER } else { TRY_AGAIN };
        let longest = rustix::time::Timespec {
            tv_sec: i64::try_from(longest.as_secs()).unwrap_or(1),
            tv_nsec: longest.subsec_nanos().into(),
        };
        let mut ready = [false; WAYS];
        if poll(&mut fds, waiting.contains(&true).then_some(&longest)).is_err() {
            return ready;
        }
        let mut answers = fds.iter().skip(1).map(|fd| !fd.revents().is_empty());
        for (ready, asked) in ready.iter_mut().zip(asked) {
            *ready = asked && answers.next().unwrap_or(false);
        }
        ready
    }

    fn write(&self, index: usize, way: &mut Way) {
        let piece: Vec<u8> = {
            let inner = lock(&self.inner);
            let Some(next) = inner.queues[index].next() else { return };
            next[..next.len().min(way.piece())].to_vec()
        };
        let answer = way.write(&piece);
        let mut inner = lock(&self.inner);
        match answer {
            Ok(count) => {
                inner.queues[index].advance(count);
                inner.moved += count as u64;
            }
            // Somebody else made it non-blocking, or a signal came: poll again.
            Err(Errno::AGAIN | Errno::INTR) => {}
            // A file that cannot be written now may be later.
            Err(_) if way.blocked.is_some() => {}
            Err(_) => inner.queues[index].close(),
        }
    }

    fn take_room_again(&self) -> bool {
        let mut inner = lock(&self.inner);
        let room = inner
            .queues
            .each_ref()
            .map(|queue| queue.bytes < FULL / 2 || queue.stuck || queue.closed);
        let mut any = false;
        for (waits, room) in inner.writer_waits.iter_mut().zip(room) {
            any |= room && std::mem::take(waits);
        }
        any
    }

    /// Has it told when everything is written that somebody takes.
    pub(super) fn finish(&self) {
        lock(&self.inner).finishing = true;
        wake_reader(self.wake.as_fd());
    }

    pub(super) fn is_drained(&self) -> bool {
        lock(&self.inner).queues.iter().all(Queue::is_drained)
    }

    /// Between two writes, until [`ForwardQueue::go_on`].
    pub(super) fn want_rest(&self) {
        lock(&self.inner).rest_wanted = true;
        wake_reader(self.wake.as_fd());
    }

    pub(super) fn go_on(&self) {
        lock(&self.inner).rest_wanted = false;
        self.changed.notify_all();
    }

    pub(super) fn is_at_rest(&self) -> bool {
        lock(&self.inner).at_rest
    }

    /// What has not been written. A write under way counts as none.
    pub(super) fn state(&self) -> ForwardState {
        let inner = lock(&self.inner);
        ForwardState {
            rest: inner.queues.each_ref().map(Queue::rest),
            untold: inner.queues.each_ref().map(|queue| queue.untold),
            dropped: inner.dropped,
        }
    }
}

/// One of the ways out, as the forwarder knows it.
struct Way {
    fd: WayFd,
    /// Files take what they are given, but may be on a disk that hangs; whoever reads a pipe or a
    /// terminal may be slow.
    disk: Option<Apart>,
    moved: Instant,
    /// When a file took nothing.
    blocked: Option<Instant>,
}

enum WayFd {
    /// Of whoever has started us.
    Inherited(BorrowedFd<'static>),
    /// `None`: it is not open.
    File(Option<OwnedFd>),
}

impl Way {
    fn inherited(fd: BorrowedFd<'static>) -> Way {
        let is_file = rustix::fs::fstat(fd)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        let disk = is_file.then(Apart::new);
        Way { fd: WayFd::Inherited(fd), disk, moved: Instant::now(), blocked: None }
    }

    fn file() -> Way {
        let (fd, disk) = (WayFd::File(None), Some(Apart::new()));
        Way { fd, disk, moved: Instant::now(), blocked: None }
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.fd {
            WayFd::Inherited(fd) => Some(*fd),
            WayFd::File(file) => file.as_ref().map(AsFd::as_fd),
        }
    }

    fn piece(&self) -> usize {
        if self.disk.is_some() { LARGE_PIECE } else { PIECE }
    }

    fn is_to_wait(&self) -> bool {
        self.blocked.is_some_and(|at| at.elapsed() < TRY_AGAIN)
    }

    /// Opens the file, in place of the one that was open. One that cannot be opened is told, and the
    /// one that was open stays.
    fn open(&mut self, path: &Path) -> io::Result<()> {
        let open = || nonblocking::append(path, MODE);
        let opened = match &mut self.disk {
            Some(disk) => disk.run(open),
            None => open(),
        }?;
        self.fd = WayFd::File(Some(opened));
        self.blocked = None;
        Ok(())
    }

    fn write(&mut self, piece: &[u8]) -> Result<usize, Errno> {
        let fd = match &self.fd {
            WayFd::Inherited(fd) => *fd,
            WayFd::File(Some(file)) => file.as_fd(),
            WayFd::File(None) => return Err(Errno::AGAIN),
        };
        let answer = match &mut self.disk {
            Some(disk) => disk.run(|| rustix::io::write(fd, piece)),
            None => rustix::io::write(fd, piece),
        };
        let is_blocked = self.disk.is_some() && !matches!(answer, Ok(1..));
        self.blocked = is_blocked.then(Instant::now);
        if answer.is_ok() && !is_blocked {
            self.moved = Instant::now();
        }
        answer
    }
}
