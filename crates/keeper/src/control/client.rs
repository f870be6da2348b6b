//! The clients of control sockets: server-sent events both ways.
//!
//! Out: `state` on connect, on change, and every three seconds. Only the newest state that a
//! client has not read is kept, so a slow one skips states in between and never the last. In:
//! `stop`, `kill`, `signal`; what we do not know is passed over, what we cannot read closes that
//! connection and no other, after what was said before it.

use mainstay_core::signal::Signal;
use mainstay_wire::{
    link::ControlRequest,
    sse::{self, SseEvent},
};
use rustix::io::Errno;
use serde::Deserialize;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Clients of one socket.
pub(crate) const MAX_CLIENTS: usize = 64;
/// Clients in all, so that they cannot take the descriptors that jobs need.
pub(crate) const MAX_CLIENTS_IN_ALL: usize = 1024;

#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) fd: OwnedFd,
    pub(crate) job: u64,
    pub(crate) decoder: sse::SseDecoder,
    /// On its way, and how much of it the client has.
    sending: Vec<u8>,
    sent: usize,
    newest: Option<Vec<u8>>,
    /// It writes no more, but may still read.
    pub(crate) deaf: bool,
    /// Gets what is left, then is closed.
    pub(crate) leaving: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Flushed {
    All,
    Some,
    Gone,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ClientInput {
    Requests(Vec<ControlRequest>),
    /// It will say nothing more; what it asked last.
    End(Vec<ControlRequest>),
    /// It cannot be followed any further; what it asked before.
    Nonsense(Vec<ControlRequest>),
}

#[derive(Deserialize)]
struct SignalData {
    signal: Signal,
}

impl Client {
    pub(crate) fn new(fd: OwnedFd, job: u64) -> Client {
        Client {
            fd,
            job,
            decoder: sse::SseDecoder::default(),
            sending: Vec::new(),
            sent: 0,
            newest: None,
            deaf: false,
            leaving: false,
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// What it has not got yet: the rest of a frame, and the frame after it.
    pub(crate) fn unsent(&self) -> (&[u8], Option<&[u8]>) {
        (&self.sending[self.sent..], self.newest.as_deref())
    }

    pub(crate) fn resume(
        &mut self,
        decoder: sse::SseDecoder,
        unsent: Vec<u8>,
        newest: Option<Vec<u8>>,
    ) {
        (self.decoder, self.sending, self.newest) = (decoder, unsent, newest);
    }

    /// `state` is JSON.
    pub(crate) fn offer(&mut self, state: &str) -> Flushed {
        self.newest = Some(sse::encode("state", state));
        self.flush()
    }

    pub(crate) fn flush(&mut self) -> Flushed {
        loop {
            if self.sent == self.sending.len() {
                self.sent = 0;
                self.sending = self.newest.take().unwrap_or_default();
                if self.sending.is_empty() {
                    return Flushed::All;
                }
            }
            match rustix::io::write(&self.fd, &self.sending[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(Errno::AGAIN) => return Flushed::Some,
                Err(Errno::INTR) => {}
                Err(_) => return Flushed::Gone,
            }
        }
    }

    /// What one that is gone has left to be read.
    pub(crate) fn drain(&mut self) -> Vec<ControlRequest> {
        const READS: usize = 16;
        let mut all = Vec::new();
        for _ in 0..READS {
            match self.read() {
                ClientInput::Requests(requests) => all.extend(requests),
                ClientInput::End(requests) | ClientInput::Nonsense(requests) => {
                    all.extend(requests);
                    break;
                }
            }
        }
        all
    }

    /// Reads once: whoever talks without end has to wait like everybody.
    pub(crate) fn read(&mut self) -> ClientInput {
        let mut bytes = [0; 4096];
        let mut events = Vec::new();
        let (followed, end) = match rustix::io::read(&self.fd, &mut bytes) {
            Ok(0) => (Ok(()), true),
            Ok(count) => (self.decoder.push(&bytes[..count], &mut events), false),
            Err(Errno::AGAIN | Errno::INTR) => (Ok(()), false),
            Err(_) => return ClientInput::Nonsense(Vec::new()),
        };
        let mut requests = Vec::new();
        for event in &events {
            match request(event) {
                Ok(request) => requests.extend(request),
                Err(_) => return ClientInput::Nonsense(requests),
            }
        }
        match (followed, end) {
            (Err(_), _) => ClientInput::Nonsense(requests),
            (Ok(()), false) => ClientInput::Requests(requests),
            (Ok(()), true) => ClientInput::End(requests),
        }
    }
}

fn request(event: &SseEvent) -> Result<Option<ControlRequest>, serde_json::Error> {
    if !event.data.is_empty() {
        serde_json::from_str::<serde::de::IgnoredAny>(&event.data)?;
    }
    Ok(match event.kind.as_str() {
        "stop" => Some(ControlRequest::Stop),
        "kill" => Some(ControlRequest::Kill),
        "signal" => {
            Some(ControlRequest::Signal(serde_json::from_str::<SignalData>(&event.data)?.signal))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair, sockopt};

    #[test]
    fn a_client_that_reads_late_gets_whole_frames_and_the_last_of_them() {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK, None)
                .expect("a pair");
        sockopt::set_socket_send_buffer_size(&ours, 4096).expect("a socket");
        let mut client = Client::new(ours, 1);
        let long = "x".repeat(500);
        let mut stuck = 0;
        for number in 0..200 {
            let flushed = client.offer(&format!("{{\"number\":{number},\"text\":\"{long}\"}}"));
            assert_ne!(flushed, Flushed::Gone);
            stuck += u32::from(flushed == Flushed::Some);
        }
        assert!(stuck > 100, "its buffer is full long before the last");
        let mut decoder = sse::SseDecoder::default();
        let mut events = Vec::new();
        let mut bytes = [0; 1024];
        loop {
            match rustix::io::read(&theirs, &mut bytes) {
                Ok(count) => decoder.push(&bytes[..count], &mut events).expect("whole frames"),
                Err(Errno::AGAIN) if client.unsent().0.is_empty() => break,
                Err(Errno::AGAIN) => drop(client.flush()),
                Err(error) => panic!("{error}"),
            }
        }
        let last = events.last().expect("some");
        assert!(last.data.starts_with("{\"number\":199,"), "{}", last.data);
        assert!(events.len() < 150, "those in between were passed over");
    }
}
