//! The agent's end of the link: whole messages in, frames out, and never a wait for the keeper.

use mainstay_wire::{
    frame::{self, FrameDecoder, FrameError, Message},
    link::{ToAgent, ToKeeper},
};
use std::{io, os::fd::OwnedFd, os::unix::net};
use tokio::{io::Interest, net::UnixStream};

#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("the keeper has closed the link")]
    Closed,
    #[error("the link to the keeper failed")]
    Io(#[source] io::Error),
    #[error("the keeper said something that this agent does not understand")]
    Frame(#[from] FrameError),
}

#[derive(Debug)]
pub struct Link {
    stream: UnixStream,
    decoder: FrameDecoder,
    /// Frames that the socket had no room for.
    out: Vec<u8>,
}

impl Link {
    /// # Errors
    /// When it is not a socket.
    pub fn new(fd: OwnedFd) -> io::Result<Link> {
        let stream = net::UnixStream::from(fd);
        stream.set_nonblocking(true)?;
        Ok(Link {
            stream: UnixStream::from_std(stream)?,
            decoder: FrameDecoder::default(),
            out: Vec::new(),
        })
    }

    /// The next message; meanwhile sends what could not be sent before. May be dropped at any time.
    ///
    /// # Errors
    /// The link is of no use any more.
    pub async fn receive(&mut self) -> Result<ToAgent, LinkError> {
        loop {
            match self.decoder.next_message()? {
                Some(Message::Known(message)) => return Ok(message),
                Some(Message::Unknown(name)) => {
                    tracing::warn!("the keeper says '{name}', which this version does not know");
                    continue;
                }
                None => {}
            }
            let interest = match self.out.is_empty() {
                true => Interest::READABLE,
                false => Interest::READABLE | Interest::WRITABLE,
            };
            let ready = self.stream.ready(interest).await.map_err(LinkError::Io)?;
            if ready.is_writable() {
                self.flush()?;
            }
            if ready.is_readable() {
                self.read()?;
            }
        }
    }

    fn read(&mut self) -> Result<(), LinkError> {
        let mut bytes = [0; 16 << 10];
        match self.stream.try_read(&mut bytes) {
            Ok(0) => Err(LinkError::Closed),
            Ok(length) => {
                self.decoder.push(&bytes[..length]);
                Ok(())
            }
            Err(error) => ignore_wait(error),
        }
    }

    /// Puts a message in line; [`Link::flush`] sends it.
    ///
    /// # Errors
    /// When it is longer than a frame may be: nothing was put in line.
    pub fn push(&mut self, message: &ToKeeper) -> Result<(), FrameError> {
        self.out.extend(frame::encode(message)?);
        Ok(())
    }

    /// Sends as much as the socket takes now.
    ///
    /// # Errors
    /// The link is of no use any more.
    pub fn flush(&mut self) -> Result<(), LinkError> {
        let mut sent = 0;
        let result = loop {
            if sent == self.out.len() {
                break Ok(());
            }
            match self.stream.try_write(&self.out[sent..]) {
                Ok(length) => sent += length,
                Err(error) => break ignore_wait(error),
            }
        };
        self.out.drain(..sent);
        if self.out.is_empty() && self.out.capacity() > 64 << 10 {
            self.out = Vec::new();
        }
        result
    }

    /// Waits until everything is sent.
    ///
    /// # Errors
    /// The link is of no use any more.
    pub async fn drain(&mut self) -> Result<(), LinkError> {
        loop {
            self.flush()?;
            if self.out.is_empty() {
                return Ok(());
            }
            self.stream.writable().await.map_err(LinkError::Io)?;
        }
    }
}

fn ignore_wait(error: io::Error) -> Result<(), LinkError> {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(()),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Err(LinkError::Closed),
        _ => Err(LinkError::Io(error)),
    }
}
