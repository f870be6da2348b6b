//! On to our own stdout and stderr, through a bounded queue.
//!
//! A reader that is slow slows the jobs that write (their pipes fill up). A reader that takes
//! nothing for a second is stuck: from then on lines are dropped and counted until it moves again,
//! and no job waits for it. Our stdout is never made non-blocking: it may be shared with others.

use super::{
    lock,
    mailbox::{quiet, wake_reader},
};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use std::{
    collections::VecDeque,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{Condvar, Mutex},
    time::{Duration, Instant},
};

/// Past this, jobs that write wait for the reader.
const FULL: usize = 512 << 10;
/// Past this, lines are dropped whatever else holds.
const MOST: usize = 2 << 20;
const STUCK_AFTER: Duration = Duration::from_secs(1);
/// A pipe that polls as writable takes this much without blocking.
const PIECE: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Destination {
    Stdout = 0,
    Stderr = 1,
}

#[derive(Debug)]
pub(super) struct ForwardQueue {
    inner: Mutex<Inner>,
    wake: OwnedFd,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    queues: [Queue; 2],
    dropped: u64,
    /// Dropped and not yet told in the output itself.
    untold: u64,
    writer_waits: bool,
    stopping: bool,
    stopped: bool,
}

#[derive(Debug, Default)]
struct Queue {
    blocks: VecDeque<Vec<u8>>,
    /// WriteReport bytes of the first block.
    offset: usize,
    bytes: usize,
    stuck: bool,
    /// Nobody reads any more.
    closed: bool,
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
}

impl ForwardQueue {
    pub(super) fn new(rest: [Vec<u8>; 2], dropped: u64) -> io::Result<ForwardQueue> {
        let mut inner = Inner { dropped, ..Inner::default() };
        for (queue, block) in inner.queues.iter_mut().zip(rest) {
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
            let untold = inner.untold;
            let queue = &mut inner.queues[exit as usize];
            if queue.closed
                || (queue.stuck && queue.bytes >= FULL)
                || queue.bytes + block.len() > MOST
            {
                let closed = queue.closed;
                inner.dropped += lines;
                inner.untold += if closed { 0 } else { lines };
                return;
            }
            let first = queue.blocks.is_empty();
            if untold > 0 && exit == Destination::Stdout {
                queue.push(format!("mainstay | {untold} lines were not forwarded\n").into_bytes());
                inner.untold = 0;
            }
            inner.queues[exit as usize].push(block);
            first
        };
        if first {
            wake_reader(self.wake.as_fd());
        }
    }

    /// Whether a job may go on writing. If not, the forwarder says so once there is room.
    pub(super) fn has_room(&self) -> bool {
        let mut inner = lock(&self.inner);
        let queue = &inner.queues[Destination::Stdout as usize];
        let room = queue.bytes < FULL || queue.stuck || queue.closed;
        inner.writer_waits |= !room;
        room
    }

    pub(super) fn dropped(&self) -> u64 {
        lock(&self.inner).dropped
    }

    /// The forwarder's life.
    pub(super) fn forward(&self, room_again: impl Fn()) {
        let mut moved = [Instant::now(); 2];
        let large = [rustix::stdio::stdout(), rustix::stdio::stderr()].map(takes_large_pieces);
        loop {
            let waiting = self.waiting();
            let Some(waiting) = waiting else { break };
            let ready = self.wait(waiting);
            for (index, ready) in ready.into_iter().enumerate() {
                if ready {
                    moved[index] = Instant::now();
                    self.write(index, if large[index] { 64 << 10 } else { PIECE });
                } else if !waiting[index] {
                    moved[index] = Instant::now();
                }
                self.note_stuck(index, moved[index].elapsed() >= STUCK_AFTER);
            }
            if self.take_room_again() {
                room_again();
            }
        }
        let mut inner = lock(&self.inner);
        inner.stopped = true;
        self.changed.notify_all();
    }

    /// Which of the two have something to write; `None`: stop.
    fn waiting(&self) -> Option<[bool; 2]> {
        quiet(self.wake.as_fd());
        let inner = lock(&self.inner);
        (!inner.stopping).then(|| [0, 1].map(|index: usize| inner.queues[index].next().is_some()))
    }

    fn wait(&self, waiting: [bool; 2]) -> [bool; 2] {
        let (stdout, stderr) = (rustix::stdio::stdout(), rustix::stdio::stderr());
        let interest = |wanted: bool| if wanted { PollFlags::OUT } else { PollFlags::empty() };
        let mut fds = vec![PollFd::new(&self.wake, PollFlags::IN)];
        for (fd, wanted) in [(&stdout, waiting[0]), (&stderr, waiting[1])] {
            if wanted {
                fds.push(PollFd::new(fd, interest(wanted)));
            }
        }
        // Without work there is nothing to be stuck on, and nothing to wake up for.
        let timeout = rustix::time::Timespec { tv_sec: 1, tv_nsec: 0 };
        let timeout = waiting.contains(&true).then_some(&timeout);
        let mut ready = [false; 2];
        if poll(&mut fds, timeout).is_err() {
            return ready;
        }
        let mut answers = fds.iter().skip(1).map(|fd| !fd.revents().is_empty());
        for index in [0, 1] {
            ready[index] = waiting[index] && answers.next().unwrap_or(false);
        }
        ready
    }

    fn write(&self, index: usize, most: usize) {
        let piece: Vec<u8> = {
            let inner = lock(&self.inner);
            let Some(next) = inner.queues[index].next() else { return };
            next[..next.len().min(most)].to_vec()
        };
        let (stdout, stderr) = (rustix::stdio::stdout(), rustix::stdio::stderr());
        let answer = rustix::io::write(if index == 0 { stdout } else { stderr }, &piece);
        let mut inner = lock(&self.inner);
        match answer {
            Ok(count) => inner.queues[index].advance(count),
            // Somebody else made it non-blocking, or a signal came: poll again.
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(_) => inner.queues[index].close(),
        }
        self.changed.notify_all();
    }

    fn note_stuck(&self, index: usize, stuck: bool) {
        lock(&self.inner).queues[index].stuck = stuck;
    }

    fn take_room_again(&self) -> bool {
        let mut inner = lock(&self.inner);
        let queue = &inner.queues[Destination::Stdout as usize];
        let room = queue.bytes < FULL / 2 || queue.stuck || queue.closed;
        room && std::mem::take(&mut inner.writer_waits)
    }

    /// Waits until everything is written, as long as the reader takes something.
    pub(super) fn drain(&self, most: Duration) {
        let end = Instant::now() + most;
        let mut inner = lock(&self.inner);
        while inner.queues.iter().any(|queue| !queue.blocks.is_empty() && !queue.stuck) {
            let Some(left) = end.checked_duration_since(Instant::now()) else { return };
            let Ok((next, _)) = self.changed.wait_timeout(inner, left) else { return };
            inner = next;
        }
    }

    pub(super) fn stop(&self, most: Duration) {
        let mut inner = lock(&self.inner);
        inner.stopping = true;
        wake_reader(self.wake.as_fd());
        if !inner.stopped {
            let _ = self.changed.wait_timeout_while(inner, most, |inner| !inner.stopped);
        }
    }

    /// What has not been written.
    pub(super) fn take(&self) -> ([Vec<u8>; 2], u64) {
        let mut inner = lock(&self.inner);
        let dropped = inner.dropped;
        let rest = std::mem::take(&mut inner.queues).map(|queue| {
            let mut bytes: Vec<u8> = queue.blocks.into_iter().flatten().collect();
            bytes.drain(..queue.offset.min(bytes.len()));
            bytes
        });
        (rest, dropped)
    }
}

/// Files take what they are given; whoever reads a pipe or a terminal may be slow.
fn takes_large_pieces(fd: BorrowedFd<'_>) -> bool {
    rustix::fs::fstat(fd).is_ok_and(|stat| {
        rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::RegularFile
    })
}
