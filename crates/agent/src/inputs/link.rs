//! The agent's end of the link: whole messages in, frames out, and never a wait for the keeper.

use mainstay_wire::{
    frame::{self, FrameDecoder, FrameError, Message},
    link::{ToAgent, ToKeeper},
};
use std::{
    io,
    os::{fd::OwnedFd, unix::net::UnixStream},
    time::Duration,
};
use tokio::{net::unix::pipe::Receiver, time::sleep};

/// When a full socket is tried again. The keeper needs as long for some of what it holds.
const AGAIN: Duration = Duration::from_millis(1);

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
    /// A socket, watched as the end of a pipe is: for what can be read, and not for room. Each time
    /// that the keeper has read something there is more of it, and whoever waits for that is woken
    /// for nothing.
    stream: Receiver,
    decoder: FrameDecoder,
    /// Frames that the socket had no room for.
    out: Vec<u8>,
}

impl Link {
    /// # Errors
    /// When it is not a socket.
    pub fn new(fd: OwnedFd) -> io::Result<Link> {
        let stream = UnixStream::from(fd);
        stream.set_nonblocking(true)?;
        Ok(Link {
            stream: Receiver::from_owned_fd_unchecked(stream.into())?,
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
            tokio::select! {
                read = read(&self.stream, &mut self.decoder) => read?,
                () = sleep(AGAIN), if !self.out.is_empty() => {}
            }
            self.flush()?;
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
            match rustix::io::write(&self.stream, &self.out[sent..]) {
                Ok(length) => sent += length,
                Err(error) => break ignore_wait(error.into()),
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
            sleep(AGAIN).await;
        }
    }
}

/// Takes in what there is to read. May be dropped at any time.
async fn read(stream: &Receiver, decoder: &mut FrameDecoder) -> Result<(), LinkError> {
    stream.readable().await.map_err(LinkError::Io)?;
    let mut bytes = [0; 16 << 10];
    match stream.try_read(&mut bytes) {
        Ok(0) => Err(LinkError::Closed),
        Ok(length) => {
            decoder.push(&bytes[..length]);
            Ok(())
        }
        Err(error) => ignore_wait(error),
    }
}

fn ignore_wait(error: io::Error) -> Result<(), LinkError> {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(()),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Err(LinkError::Closed),
        _ => Err(LinkError::Io(error)),
    }
}
