//! One connection between two peers: TLS, then who each of them is, then frames.

use crate::{
    mesh::Versions,
    peers::{
        certificate::{Protocol, server_name},
        frame::{self, FrameBytes, FrameError, Hello, LONGEST_FRAME, LONGEST_HELLO, PeerKey, Said},
        outbox::{NextWrite, Outbox},
    },
};
use mainstay_core::name::Name;
use mainstay_net::tls::{MutualStream, MutualTls};
use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, WriteHalf, split},
    net::TcpStream,
    sync::Notify,
    time::timeout,
};

/// For TCP, TLS and the first frames together.
const TO_CONNECT: Duration = Duration::from_secs(5);
/// For a frame that has begun.
const TO_READ: Duration = Duration::from_secs(30);
const TO_WRITE: Duration = Duration::from_secs(15);
/// No more is taken at once, whatever length is announced.
const PIECE: usize = 64 << 10;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectionError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("it did not say who it is within {TO_CONNECT:?}")]
    Late,
    #[error("it did not say who it is")]
    NoHello,
    #[error("its certificate is not that of {0}")]
    NotItself(Name),
    #[error("{expected} was called, and run {found} of {node} has answered", expected = expected.run, found = found.run, node = found.node)]
    Another { expected: PeerKey, found: PeerKey },
    #[error("it does not say what is to be spoken")]
    NoProtocol,
}

type PeerStream = MutualStream<TcpStream>;

/// A connection whose other side is known.
#[derive(Debug)]
pub(crate) struct Met {
    pub(crate) peer: PeerKey,
    /// The version that both speak.
    pub(crate) version: u8,
    pub(crate) protocol: Protocol,
    pub(crate) stream: PeerStream,
}

/// Who this node is, and how it proves that.
#[derive(Debug, Clone)]
pub(crate) struct OwnIdentity {
    pub(crate) me: PeerKey,
    pub(crate) versions: Versions,
    pub(crate) tls: MutualTls,
}

impl OwnIdentity {
    /// Calls one run of a node, or whichever there is.
    pub(crate) async fn call(
        &self,
        node: &Name,
        run: Option<&PeerKey>,
        at: SocketAddr,
        protocol: Protocol,
    ) -> Result<Met, ConnectionError> {
        let met = timeout(TO_CONNECT, async {
            let tcp = TcpStream::connect(at).await?;
            tcp.set_nodelay(true)?;
            let called = self.tls.connect(tcp, &server_name(node), protocol.alpn()).await?;
            self.meet(called).await
        });
        let met = met.await.map_err(|_| ConnectionError::Late)??;
        match run {
            Some(expected) if *expected != met.peer => {
                Err(ConnectionError::Another { expected: expected.clone(), found: met.peer })
            }
            Some(_) | None => Ok(met),
        }
    }

    /// Somebody has called.
    pub(crate) async fn answer(&self, tcp: TcpStream) -> Result<Met, ConnectionError> {
        let met = timeout(TO_CONNECT, async {
            tcp.set_nodelay(true)?;
            self.meet(self.tls.accept(tcp).await?).await
        });
        met.await.map_err(|_| ConnectionError::Late)?
    }

    /// Both say who they are.
    async fn meet(&self, mut met: PeerStream) -> Result<Met, ConnectionError> {
        let spoken = met.protocol.as_deref();
        let protocol = Protocol::ALL.into_iter().find(|it| Some(it.alpn()) == spoken);
        let protocol = protocol.ok_or(ConnectionError::NoProtocol)?;
        let stream = &mut met.stream;
        stream.write_all(&frame::hello(&self.me, self.versions)).await?;
        stream.flush().await?;
        let bytes = read_frame(stream, LONGEST_HELLO).await?;
        let hello: Hello = match frame::read_hello(&bytes)? {
            Said::Hello(hello) => hello,
            Said::Facts { .. }
            | Said::Pull
            | Said::Sent(_)
            | Said::Unknown
            | Said::NotUnderstood(_) => {
                return Err(ConnectionError::NoHello);
            }
        };
        if !met.is_with(&server_name(&hello.peer.node)) {
            return Err(ConnectionError::NotItself(hello.peer.node));
        }
        let version = hello.version(self.versions)?;
        Ok(Met { peer: hello.peer, version, protocol, stream: met })
    }
}

async fn read_frame(
    stream: &mut (impl AsyncRead + Unpin),
    longest: usize,
) -> Result<Vec<u8>, ConnectionError> {
    let mut begin = [0; 4];
    stream.read_exact(&mut begin).await?;
    let length = frame::length(begin, longest)?;
    let mut bytes = Vec::with_capacity(length.min(PIECE));
    let whole = async {
        let mut rest = stream.take(length as u64);
        while rest.read_buf(&mut bytes).await? > 0 {}
        Ok::<(), io::Error>(())
    };
    timeout(TO_READ, whole).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    match bytes.len() == length {
        true => Ok(bytes),
        false => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
    }
}

/// What is to go over a connection, and the news that there is something.
#[derive(Debug, Default)]
pub(crate) struct SharedOutbox {
    outbox: Mutex<Outbox>,
    added: Notify,
}

impl SharedOutbox {
    pub(crate) fn edit(&self, change: impl FnOnce(&mut Outbox)) {
        change(&mut self.outbox.lock().unwrap_or_else(PoisonError::into_inner));
        self.added.notify_one();
    }

    /// `None`: nothing is to follow.
    async fn next(&self) -> Option<FrameBytes> {
        loop {
            match self.outbox.lock().unwrap_or_else(PoisonError::into_inner).next() {
                NextWrite::Frame(frame) => return Some(frame),
                NextWrite::End => return None,
                NextWrite::Wait => {}
            }
            self.added.notified().await;
        }
    }
}

/// Carries frames both ways until one side has had enough. Says why it is over.
pub(crate) async fn run_frames<F: Future<Output = ()>>(
    stream: PeerStream,
    versions: Versions,
    outbox: Arc<SharedOutbox>,
    received: impl Fn(Said) -> F,
) -> ConnectionError {
    let (mut reader, writer) = split(stream.stream);
    let read = async {
        loop {
            let bytes = match read_frame(&mut reader, LONGEST_FRAME).await {
                Ok(bytes) => bytes,
                Err(error) => return error,
            };
            match frame::read(&bytes, versions) {
                Ok(said) => received(said).await,
                Err(error) => return error.into(),
            }
        }
    };
    tokio::select! {
        error = read => error,
        error = write(writer, &outbox) => error.into(),
    }
}

async fn write<S: AsyncRead + AsyncWrite>(
    mut stream: WriteHalf<S>,
    outbox: &SharedOutbox,
) -> io::Error {
    loop {
        let Some(frame) = outbox.next().await else {
            // The other side reads all of it, sees the end and closes: then all is heard.
            return match stream.shutdown().await {
                Ok(()) => std::future::pending().await,
                Err(error) => error,
            };
        };
        let written = timeout(TO_WRITE, async {
            stream.write_all(&frame).await?;
            stream.flush().await
        });
        match written.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return error,
            Err(_) => return io::ErrorKind::TimedOut.into(),
        }
    }
}
