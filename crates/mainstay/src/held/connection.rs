//! A stream of server-sent events from a control socket.

use mainstay_core::signal::Signal;
use mainstay_wire::{
    sse::{self, SseDecoder},
    state::{ContainerState, ContainerStatus},
};
use serde_json::json;
use std::{
    collections::VecDeque,
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    time::{Duration, Instant},
};

/// How often it is looked whether the time is up.
const GLANCE: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(crate) struct Connection {
    stream: UnixStream,
    decoder: SseDecoder,
    states: VecDeque<ContainerState>,
}

/// How a stream was followed.
#[derive(Debug)]
pub(crate) struct Heard {
    /// The last state that was told.
    pub(crate) last: Option<ContainerState>,
    /// The stream has ended; else the time was up.
    pub(crate) ended: bool,
}

impl Heard {
    /// It was told that it is down, and nothing after that.
    pub(crate) fn end(self) -> Option<ContainerState> {
        self.last.filter(|state| self.ended && state.status == ContainerStatus::Down)
    }
}

impl Connection {
    pub(super) fn new(stream: UnixStream) -> Connection {
        Connection { stream, decoder: SseDecoder::default(), states: VecDeque::new() }
    }

    /// The state that everybody is told who connects; `None`: it has ended before that.
    pub(crate) fn first(&mut self) -> io::Result<Option<ContainerState>> {
        while self.states.is_empty() {
            if !self.read()? {
                return Ok(None);
            }
        }
        Ok(self.states.front().cloned())
    }

    pub(crate) fn stop(&mut self) -> io::Result<()> {
        self.stream.write_all(&sse::encode("stop", ""))
    }

    pub(crate) fn kill(&mut self) -> io::Result<()> {
        self.stream.write_all(&sse::encode("kill", ""))
    }

    pub(crate) fn signal(&mut self, signal: Signal) -> io::Result<()> {
        let data = json!({ "signal": signal.to_string() });
        self.stream.write_all(&sse::encode("signal", &data.to_string()))
    }

    /// Reads until it ends, or until the time is up.
    pub(crate) fn follow(mut self, until: Option<Instant>) -> io::Result<Heard> {
        self.stream.set_read_timeout(Some(GLANCE))?;
        let mut last = None;
        loop {
            last = self.states.drain(..).next_back().or(last);
            match self.read() {
                Ok(true) => {}
                Ok(false) => {
                    let last = self.states.pop_back().or(last);
                    return Ok(Heard { last, ended: true });
                }
                Err(error) if is_quiet(&error) => {}
                Err(error) => return Err(error),
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok(Heard { last, ended: false });
            }
        }
    }

    /// Takes what has come; false at the end.
    fn read(&mut self) -> io::Result<bool> {
        let mut bytes = [0; 4096];
        let count = match self.stream.read(&mut bytes) {
            Ok(count) => count,
            Err(error) => match error.kind() {
                // It went with something of ours unread: an end like any other.
                io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => 0,
                io::ErrorKind::Interrupted => return Ok(true),
                _ => return Err(error),
            },
        };
        let mut events = Vec::new();
        self.decoder.push(&bytes[..count], &mut events).map_err(io::Error::other)?;
        let states = events.iter().filter(|event| event.kind == "state");
        self.states.extend(states.filter_map(|event| serde_json::from_str(&event.data).ok()));
        Ok(count > 0)
    }
}

fn is_quiet(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
