//! The writer thread: reads every pipe, writes every file.
//!
//! It sleeps where it can be killed. What it does when it is woken may hang in a disk, and is done
//! apart; there it stays for as long as more comes soon.

use super::{
    Channel, CheckLines, Figures, Owner, Stream, WriteEnd, WriterCommand, WriterEvent,
    activity::{Activity, WriterState},
    forwarder::{Destination, ForwardQueue},
    lines::{Header, Piece, split},
    lock,
    log_file::{Gap, LogFile, WriteReport},
    mailbox::Mailbox,
    said::{Said, Who},
};
use mainstay_core::{
    name::Name,
    plan::{FileFormat, ForwardFormat, ForwardTo, Log, NodeLog},
    text::visible,
};
use mainstay_sys::apart::Apart;
use mainstay_wire::link::LOG_MARK;
use rustix::{
    event::epoll::{self, EventData, EventFlags},
    io::Errno,
};
use std::{
    collections::{BTreeMap, HashMap},
    io,
    os::fd::{AsFd, AsRawFd, OwnedFd, RawFd},
    path::PathBuf,
    sync::Arc,
};

const MAIL: u64 = u64::MAX;
/// So long it stays apart for what may come next.
const SOON: rustix::time::Timespec = rustix::time::Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// One read takes at most this much, so that no job keeps the others waiting.
const CHUNK: usize = 256 << 10;
/// A pipe that is found this full gets a larger one.
const NEARLY_FULL: usize = 60 << 10;
const LARGE_PIPE: usize = 1 << 20;
/// More than a terminal can hold: one read takes at most a page.
const TERMINAL_READS: usize = 256;

pub(super) struct Writer {
    logs: PathBuf,
    commands: Arc<Mailbox<WriterCommand>>,
    events: Arc<Mailbox<WriterEvent>>,
    queue: Arc<ForwardQueue>,
    activity: Arc<Activity>,
    figures: Figures,
    pipes: Arc<Pipes>,
    streams: HashMap<u64, Stream>,
    sinks: BTreeMap<Owner, LogFile>,
    /// Wait for room in the queue.
    paused: Vec<u64>,
    chunk: Vec<u8>,
    header: Header,
    to_file: Vec<u8>,
    /// How our own log is forwarded; `None`: as plain lines on stderr.
    own: Option<Log>,
}

/// What the writer sleeps on. The main thread adds the pipes of new processes.
#[derive(Debug)]
pub(super) struct Pipes {
    epoll: OwnedFd,
}

impl AsRawFd for Pipes {
    fn as_raw_fd(&self) -> RawFd {
        self.epoll.as_raw_fd()
    }
}

impl Pipes {
    pub(super) fn add(&self, stream: &Stream) -> Result<(), Errno> {
        let data = EventData::new_u64(stream.key);
        epoll::add(&self.epoll, &*stream.end, data, EventFlags::IN)
    }
}

/// What follows on a piece of work.
enum Flow {
    Go,
    Rest,
    /// It cannot go on.
    End,
}

type ReadyEvents = Vec<epoll::Event>;

impl Writer {
    pub(super) fn new(
        logs: PathBuf,
        (commands, events): (Arc<Mailbox<WriterCommand>>, Arc<Mailbox<WriterEvent>>),
        queue: Arc<ForwardQueue>,
        activity: Arc<Activity>,
        figures: Figures,
    ) -> io::Result<Writer> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, commands.fd(), EventData::new_u64(MAIL), EventFlags::IN)?;
        Ok(Writer {
            logs,
            commands,
            events,
            queue,
            activity,
            figures,
            pipes: Arc::new(Pipes { epoll }),
            streams: HashMap::new(),
            sinks: BTreeMap::new(),
            paused: Vec::new(),
            chunk: Vec::new(),
            header: Header::default(),
            to_file: Vec::new(),
            own: None,
        })
    }

    pub(super) fn pipes(&self) -> Arc<Pipes> {
        self.pipes.clone()
    }

    pub(super) fn run(mut self) {
        let mut apart = Apart::new();
        let mut ready = Vec::with_capacity(64);
        while self.wait(&mut ready, None) {
            self.activity.got_on();
            let flow = apart.run(|| self.work(&mut ready));
            self.activity.idle();
            match flow {
                Flow::Go => {}
                Flow::Rest => self.rest(),
                Flow::End => return,
            }
        }
    }

    /// Waits until something is ready; false when that cannot be known.
    fn wait(&self, ready: &mut ReadyEvents, longest: Option<&rustix::time::Timespec>) -> bool {
        ready.clear();
        let waited = epoll::wait(&self.pipes.epoll, rustix::buffer::spare_capacity(ready), longest);
        matches!(waited, Ok(_) | Err(Errno::INTR))
    }

    fn work(&mut self, ready: &mut ReadyEvents) -> Flow {
        while !ready.is_empty() {
            for event in ready.iter() {
                let key = event.data.u64();
                // A pipe that it has not heard of yet stands among the commands, and so does a wish
                // that it rest: on a slow disk all that can be read would take too long.
                if !self.streams.contains_key(&key) || self.activity.is_rest_wanted() {
                    match self.take_commands() {
                        Flow::Go => {}
                        other => return other,
                    }
                }
                if key != MAIL {
                    self.read(key);
                }
                self.activity.got_on();
            }
            if !self.wait(ready, Some(&SOON)) {
                return Flow::End;
            }
            self.activity.got_on();
        }
        Flow::Go
    }

    /// Shows what it holds to who wants it to rest, and goes on with it afterwards.
    fn rest(&mut self) {
        let (activity, events) = (self.activity.clone(), self.events.clone());
        let hold = || {
            let gaps =
                self.sinks.iter().filter_map(|(owner, sink)| Some((owner.clone(), sink.gap()?)));
            WriterState {
                gaps: gaps.collect(),
                streams: self.streams.drain().map(|it| it.1).collect(),
            }
        };
        let state = activity.rest(hold, || events.post(WriterEvent::Changed));
        let streams = state.map(|state| state.streams).unwrap_or_default();
        self.streams.extend(streams.into_iter().map(|stream| (stream.key, stream)));
    }

    pub(super) fn resume_gap(&mut self, owner: &Owner, gap: Gap) {
        self.sink(owner).resume_gap(gap);
    }

    fn take_commands(&mut self) -> Flow {
        let mut taken = self.commands.take().into_iter();
        while let Some(command) = taken.next() {
            self.activity.got_on();
            match command {
                WriterCommand::Open(stream) => self.open(stream),
                WriterCommand::Close { key, user } => self.close(key, user),
                WriterCommand::Log { text, forwarded } => self.log(&text, forwarded),
                WriterCommand::Change(job, log) => self.change(job, &log),
                WriterCommand::Own(own) => self.own = own,
                WriterCommand::Check(lines) => self.forward_check(&lines),
                WriterCommand::Rotate => self.rotate(),
                WriterCommand::Forget(job) => self.forget(&job),
                WriterCommand::Resume => self.resume(),
                WriterCommand::Rest => {
                    self.commands.put_back(taken);
                    return Flow::Rest;
                }
                WriterCommand::Finish => {
                    self.drain_all();
                    self.activity.finish();
                    self.events.post(WriterEvent::Changed);
                }
            }
        }
        Flow::Go
    }

    pub(super) fn open(&mut self, stream: Stream) {
        self.streams.insert(stream.key, stream);
    }

    /// Reads what the pipe holds now: whoever still holds its other end is not of this job's tree.
    fn close(&mut self, key: u64, user: u32) {
        let Some(stream) = self.streams.get_mut(&key) else { return };
        if let WriteEnd::Terminal(end) = &mut stream.write_end {
            *end = None;
            return self.close_terminal(key);
        }
        let mut left = rustix::io::ioctl_fionread(&*stream.end).unwrap_or(0);
        while left > 0 {
            match self.read_once(key) {
                Some(count) if count > 0 => left = left.saturating_sub(count as u64),
                _ => break,
            }
        }
        self.end(key, user);
    }

    /// With the last other end closed a terminal says when it is empty. What it holds is not told
    /// before it was brought from one end to the other, which a read does.
    fn close_terminal(&mut self, key: u64) {
        for _ in 0..TERMINAL_READS {
            match self.read_once(key) {
                Some(count) if count > 0 => {}
                _ => break,
            }
        }
        self.end(key, 0);
    }

    /// Forgets a stream, unless another one than this writes into it by now.
    fn end(&mut self, key: u64, user: u32) {
        if !self.streams.get(&key).is_some_and(|stream| stream.end.ends(user)) {
            return;
        }
        let Some(mut stream) = self.streams.remove(&key) else { return };
        self.paused.retain(|paused| *paused != key);
        let partial = std::mem::take(&mut stream.partial);
        if !partial.is_empty() {
            let mut batch =
                Batch::new(&mut self.header, &mut self.to_file, &stream, self.own.as_ref());
            batch.add(Piece { text: &partial, whole: true });
            // Its bytes were counted when they were read.
            let batch = batch.done(0);
            self.put(&stream.owner, &stream.log, batch);
        }
    }

    fn drain_all(&mut self) {
        let mut keys: Vec<u64> = self.streams.keys().copied().collect();
        keys.sort_unstable();
        for key in keys {
            if let Some(user) = self.streams.get(&key).map(|stream| stream.end.user()) {
                self.close(key, user);
            }
        }
    }

    fn read(&mut self, key: u64) {
        let Some(stream) = self.streams.get(&key) else { return };
        let to = destination(&stream.log, stream.channel);
        if stream.log.forward && stream.owner != Owner::Own && !self.queue.has_room(to) {
            // Not only without interest: a hang-up would be told again and again.
            let _ = epoll::delete(&self.pipes.epoll, &*stream.end);
            self.paused.push(key);
            return;
        }
        let user = stream.end.user();
        if self.read_once(key) == Some(0) {
            self.end(key, user);
        }
    }

    fn resume(&mut self) {
        for key in std::mem::take(&mut self.paused) {
            if let Some(stream) = self.streams.get(&key) {
                let _ = self.pipes.add(stream);
            }
        }
    }

    /// One read and all that follows from it. `Some(0)` is the end, `None`: nothing there now.
    fn read_once(&mut self, key: u64) -> Option<usize> {
        let stream = self.streams.get_mut(&key)?;
        self.chunk.resize(CHUNK, 0);
        let count = match rustix::io::read(&*stream.end, &mut self.chunk[..]) {
            Ok(count) => count,
            Err(Errno::AGAIN | Errno::INTR) => return None,
            Err(_) => 0,
        };
        if (NEARLY_FULL..LARGE_PIPE / 8).contains(&count) {
            mainstay_sys::fd::grow_pipe(stream.end.as_fd(), LARGE_PIPE);
        }
        let is_own = stream.owner == Owner::Own;
        let chunk = std::mem::take(&mut self.chunk);
        match is_own {
            true => self.take_own_chunk(key, &chunk[..count]),
            false => self.take_chunk(key, &chunk[..count]),
        }
        self.chunk = chunk;
        Some(count)
    }

    /// As [`Writer::take_chunk`], of the agent, whose lines may say how those behind them go out.
    fn take_own_chunk(&mut self, key: u64, mut chunk: &[u8]) {
        while let Some(at) = memchr::memchr(LOG_MARK, chunk) {
            let Some(length) = memchr::memchr(b'\n', &chunk[at..]) else { break };
            self.take_chunk(key, &chunk[..at]);
            if let Ok(log) = serde_json::from_slice::<NodeLog>(&chunk[at + 1..at + length]) {
                self.queue.set_file(log.file);
                self.own = log.own;
            }
            chunk = &chunk[at + length + 1..];
        }
        self.take_chunk(key, chunk);
    }

    fn take_chunk(&mut self, key: u64, chunk: &[u8]) {
        let Some(stream) = self.streams.get_mut(&key) else { return };
        let mut partial = std::mem::take(&mut stream.partial);
        let mut batch = Batch::new(&mut self.header, &mut self.to_file, stream, self.own.as_ref());
        split(&mut partial, chunk, |piece| batch.add(piece));
        let batch = batch.done(chunk.len() as u64);
        stream.partial = partial;
        let (owner, log) = (stream.owner.clone(), stream.log.clone());
        self.put(&owner, &log, batch);
    }

    fn put(&mut self, owner: &Owner, log: &Log, batch: FinishedBatch) {
        if !batch.to_forward.is_empty() {
            self.queue.push(batch.destination, batch.to_forward, batch.lines);
        }
        let mut dropped = 0;
        if !self.to_file.is_empty() {
            let entries = std::mem::take(&mut self.to_file);
            let written = self.sink(owner).write(&entries, &log.keep, log.file, batch.wall);
            self.to_file = entries;
            dropped = written.dropped;
            self.report(owner, log, written);
        }
        if let Owner::Job(name) = owner {
            let mut all = lock(&self.figures);
            let figures = all.entry(name.clone()).or_default();
            figures.lines += batch.lines;
            figures.bytes += batch.bytes;
            figures.dropped += dropped;
        }
    }

    fn sink(&mut self, owner: &Owner) -> &mut LogFile {
        let dir = self.logs.join(owner.as_str());
        self.sinks.entry(owner.clone()).or_insert_with(|| LogFile::new(dir))
    }

    fn report(&mut self, owner: &Owner, log: &Log, written: WriteReport) {
        if let Some(error) = written.error {
            let text = format!("the output of {} cannot be written: {error}", owner.as_str());
            self.log(&text, false);
            if let Owner::Job(job) = owner {
                self.events.post(WriterEvent::Gap { job: job.clone(), lines: written.dropped });
            }
        }
        if let (1.., Owner::Job(job)) = (written.gap_rest, owner) {
            self.events.post(WriterEvent::Gap { job: job.clone(), lines: written.gap_rest });
        }
        if let Owner::Job(job) = owner {
            for file in written.closed {
                let compress = log.keep.compress;
                self.events.post(WriterEvent::Closed { job: job.clone(), file, compress });
            }
        }
    }

    fn log(&mut self, text: &str, forwarded: bool) {
        let log = Log::default();
        let wall = mainstay_sys::clock::wall();
        self.header.set(wall, Channel::Stderr);
        let text = format!("mainstay: {}", visible(text));
        let piece = Piece { text: text.as_bytes(), whole: true };
        if !forwarded {
            let mut line = Vec::new();
            let (format, to) = own_way(self.own.as_ref());
            let said = Said { who: Who::Own, channel: Channel::Stderr, pid: None };
            self.header.to_forward(format, said, piece, &mut line);
            self.queue.push(to, line, 1);
        }
        let mut entry = Vec::new();
        self.header.to_file(log.file, piece, &mut entry);
        // A note that cannot be written has been forwarded; there is nobody else to tell.
        let _ = self.sink(&Owner::Own).write(&entry, &log.keep, log.file, wall);
    }

    fn forward_check(&mut self, lines: &CheckLines) {
        let CheckLines { job, pid, log, text } = lines;
        self.header.set(mainstay_sys::clock::wall(), Channel::Stdout);
        let said =
            Said { who: Who::Check(job.as_str()), channel: Channel::Stdout, pid: Some(*pid) };
        let (mut partial, mut forwarded, mut count) = (Vec::new(), Vec::new(), 0);
        let header = &self.header;
        let mut add = |piece: Piece<'_>| {
            count += u64::from(piece.whole);
            header.to_forward(log.format, said, piece, &mut forwarded);
        };
        split(&mut partial, text, &mut add);
        if !partial.is_empty() {
            add(Piece { text: &partial, whole: true });
        }
        self.queue.push(destination(log, Channel::Stdout), forwarded, count);
    }

    fn rotate(&mut self) {
        let wall = mainstay_sys::clock::wall();
        let mut keeps: BTreeMap<Owner, Log> = BTreeMap::new();
        for stream in self.streams.values() {
            keeps.entry(stream.owner.clone()).or_insert_with(|| stream.log.clone());
        }
        let owners: Vec<Owner> = self.sinks.keys().cloned().collect();
        for owner in owners {
            let log = keeps.remove(&owner).unwrap_or_default();
            let mut written = WriteReport::default();
            self.sink(&owner).rotate(&log.keep, wall, &mut written);
            self.report(&owner, &log, written);
        }
    }

    fn change(&mut self, job: Name, log: &Log) {
        let owner = Owner::Job(job);
        for stream in self.streams.values_mut().filter(|stream| stream.owner == owner) {
            stream.log = log.clone();
        }
        // One that is not forwarded any more has no room to wait for.
        self.resume();
    }

    fn forget(&mut self, job: &Name) {
        self.sinks.remove(&Owner::Job(job.clone()));
        lock(&self.figures).remove(job);
    }
}

/// The pieces of one chunk, in both formats.
struct Batch<'a> {
    header: &'a Header,
    to_file: &'a mut Vec<u8>,
    to_forward: Vec<u8>,
    said: Said<'a>,
    terminal: bool,
    file: FileFormat,
    forward: Option<ForwardFormat>,
    destination: Destination,
    lines: u64,
    wall: i64,
}

struct FinishedBatch {
    to_forward: Vec<u8>,
    destination: Destination,
    lines: u64,
    bytes: u64,
    wall: i64,
}

impl<'a> Batch<'a> {
    fn new(
        header: &'a mut Header,
        to_file: &'a mut Vec<u8>,
        stream: &'a Stream,
        own: Option<&Log>,
    ) -> Batch<'a> {
        let wall = mainstay_sys::clock::wall();
        header.set(wall, stream.channel);
        to_file.clear();
        let (who, (format, destination)) = match &stream.owner {
            Owner::Job(job) => {
                let to = destination(&stream.log, stream.channel);
                (Who::Job(job.as_str()), (stream.log.format, to))
            }
            Owner::Own => (Who::Own, own_way(own)),
        };
        Batch {
            header,
            to_file,
            to_forward: Vec::new(),
            said: Said { who, channel: stream.channel, pid: stream.pid },
            terminal: matches!(stream.write_end, WriteEnd::Terminal(_)),
            file: stream.log.file,
            forward: stream.log.forward.then_some(format),
            destination,
            lines: 0,
            wall,
        }
    }

    fn add(&mut self, mut piece: Piece<'_>) {
        if self.terminal && piece.whole {
            piece.text = piece.text.strip_suffix(b"\r").unwrap_or(piece.text);
        }
        self.lines += u64::from(piece.whole);
        self.header.to_file(self.file, piece, self.to_file);
        if let Some(format) = self.forward {
            self.header.to_forward(format, self.said, piece, &mut self.to_forward);
        }
    }

    fn done(self, bytes: u64) -> FinishedBatch {
        let Batch { to_forward, destination, lines, wall, .. } = self;
        FinishedBatch { to_forward, destination, lines, bytes, wall }
    }
}

/// Where the lines of a job go.
fn destination(log: &Log, channel: Channel) -> Destination {
    match (log.output, channel) {
        (ForwardTo::Stdout, _) | (ForwardTo::Same, Channel::Stdout) => Destination::Stdout,
        (ForwardTo::Stderr, _) | (ForwardTo::Same, Channel::Stderr) => Destination::Stderr,
        (ForwardTo::File, _) => Destination::File,
    }
}

/// How our own log goes out.
fn own_way(own: Option<&Log>) -> (ForwardFormat, Destination) {
    match own {
        Some(log) => (log.format, destination(log, Channel::Stderr)),
        None => (ForwardFormat::Raw, Destination::Stderr),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{ForwardState, ReadEnd};

    #[test]
    fn a_rest_does_not_wait_for_all_that_can_be_read() {
        let (commands, events) =
            (Mailbox::new().expect("a mailbox"), Mailbox::new().expect("another"));
        let (commands, activity) = (Arc::new(commands), Arc::new(Activity::new()));
        let queue = Arc::new(ForwardQueue::new(ForwardState::default()).expect("a queue"));
        let (both, figures) = ((commands.clone(), Arc::new(events)), Figures::default());
        let logs = PathBuf::from("/nowhere");
        let mut writer =
            Writer::new(logs, both, queue, activity.clone(), figures).expect("a writer");
        let (read, write) = rustix::pipe::pipe().expect("a pipe");
        let log = Log { forward: false, ..Log::default() };
        writer.open(Stream {
            key: 1,
            owner: Owner::Job(Name::new("web").expect("a name")),
            channel: Channel::Stdout,
            log,
            pid: None,
            end: Arc::new(ReadEnd::new(read)),
            write_end: WriteEnd::Pipe,
            partial: Vec::new(),
        });
        rustix::io::write(&write, b"a line\n").expect("there is room");
        activity.want_rest();
        commands.post(WriterCommand::Rest);

        let mut ready = vec![epoll::Event { flags: EventFlags::IN, data: EventData::new_u64(1) }];
        assert!(matches!(writer.work(&mut ready), Flow::Rest));
        let left = rustix::io::ioctl_fionread(&*writer.streams[&1].end).expect("a pipe");
        assert_eq!(left, 7, "it is read by whoever goes on");
    }
}
