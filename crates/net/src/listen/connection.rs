//! One connection: served until its client leaves, is too slow, or has to go.

use super::{
    Limits, Secured, Stop, accept::Arrival, connections::Progress, handshakes::FailedHandshakes,
    write_timeout::WriteTimeout,
};
use crate::stream::{BoxedStream, Stream};
use futures_util::FutureExt;
use hyper::{
    Request, Response,
    body::{Body, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{error::Error as StdError, future::pending, io, pin::pin, sync::Arc, time::Duration};
use tokio::{
    io::AsyncWriteExt,
    net::{TcpStream, UnixStream},
    sync::watch,
    time::timeout,
};

/// Of a connection, in each direction: thousands may be open.
const BUFFER: usize = 16 << 10;
/// The first byte of a TLS connection.
const HANDSHAKE: u8 = 22;

/// What answers the requests of one connection: an axum router in a `TowerToHyperService`, or any
/// other service of hyper.
pub trait Service:
    hyper::service::Service<
        Request<Incoming>,
        Response = Response<Self::ResponseBody>,
        Error: Into<Box<dyn StdError + Send + Sync>>,
        Future: Send,
    > + Send
    + 'static
{
    type ResponseBody: Body<Data: Send, Error: Into<Box<dyn StdError + Send + Sync>>>
        + Send
        + 'static;
}

impl<S, B> Service for S
where
    S: hyper::service::Service<
            Request<Incoming>,
            Response = Response<B>,
            Error: Into<Box<dyn StdError + Send + Sync>>,
            Future: Send,
        > + Send
        + 'static,
    B: Body<Data: Send, Error: Into<Box<dyn StdError + Send + Sync>>> + Send + 'static,
{
    type ResponseBody = B;
}

/// Who is at the other end.
#[derive(Debug)]
pub struct Caller {
    certified: bool,
    progress: Arc<Progress>,
}

impl Caller {
    /// With a certificate of the authority.
    #[must_use]
    pub fn is_certified(&self) -> bool {
        self.certified
    }

    /// It has asked for something that it may have: it no longer counts as silent.
    pub fn has_asked(&self) {
        self.progress.has_asked();
    }
}

/// A connection as it has come.
#[derive(Debug)]
pub enum Accepted {
    Tcp(TcpStream),
    Unix(UnixStream),
}

pub(super) async fn serve<S: Service>(
    Arrival { accepted, progress, .. }: Arrival<Accepted>,
    tls: Option<(Secured, Arc<FailedHandshakes>)>,
    limits: Limits,
    stop: Stop,
    service: impl Fn(Caller) -> S,
) {
    let (stream, certified): (BoxedStream, bool) = match (accepted, tls) {
        (Accepted::Unix(stream), _) => (written_within(limits.write, stream), false),
        (Accepted::Tcp(stream), None) => {
            let _ = stream.set_nodelay(true);
            (written_within(limits.write, stream), false)
        }
        (Accepted::Tcp(stream), Some((secured, failures))) => {
            let _ = stream.set_nodelay(true);
            let peer = stream.peer_addr().ok();
            let stream = match timeout(limits.header, secured.accept(stream)).await {
                Ok(Ok(Some(stream))) => stream,
                Ok(Err(error)) => return failures.tell(peer, &error),
                // A client that does not get that far is no news.
                Ok(Ok(None)) | Err(_) => return,
            };
            let certified = stream.get_ref().1.peer_certificates().is_some();
            (written_within(limits.write, stream), certified)
        }
    };
    let answering = progress.clone();
    let service = service(Caller { certified, progress });
    let noted = service_fn(move |request| {
        let (answer, progress) = (service.call(request), answering.clone());
        answer.inspect(move |_| progress.is_answered())
    });
    let served = converse(stream, noted, limits, stop);
    match limits.connection {
        None => served.await,
        Some(limit) => drop(timeout(limit, served).await),
    }
}

/// Serves one connection that somebody else has accepted, and knows.
pub async fn serve_stream<S: Service>(stream: BoxedStream, service: S, limits: Limits, stop: Stop) {
    converse(written_within(limits.write, stream), service, limits, stop).await;
}

async fn converse<S: Service>(stream: BoxedStream, service: S, limits: Limits, mut stop: Stop) {
    let mut served = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.header)
            .max_buf_size(BUFFER)
            .keep_alive(limits.keep_alive)
            .serve_connection(TokioIo::new(stream), service)
    );
    let left = tokio::select! {
        // A client that hangs up in the middle is no news.
        _ = served.as_mut() => return,
        _ = stop.ending.wait_for(|over| *over) => None,
        () = closed(&mut stop.closing) => Some(limits.drain),
    };
    served.as_mut().graceful_shutdown();
    match left {
        None => drop(served.await),
        Some(left) => drop(timeout(left, served).await),
    }
}

/// One that is gone altogether is closed, too.
pub(super) async fn closed(closing: &mut Option<watch::Receiver<bool>>) {
    match closing {
        Some(closing) => drop(closing.wait_for(|closed| *closed).await),
        None => pending().await,
    }
}

fn written_within<S: Stream + 'static>(limit: Option<Duration>, stream: S) -> BoxedStream {
    match limit {
        Some(limit) => Box::new(WriteTimeout::on(stream, limit)),
        None => Box::new(stream),
    }
}

impl Secured {
    /// `None`: it spoke plain HTTP and was told not to.
    async fn accept(
        &self,
        mut stream: TcpStream,
    ) -> io::Result<Option<tokio_rustls::server::TlsStream<TcpStream>>> {
        let mut first = [0; 1];
        let plain = stream.peek(&mut first).await? == 1 && first[0] != HANDSHAKE;
        if plain {
            stream.write_all(&self.plain_answer).await?;
            stream.shutdown().await?;
            return Ok(None);
        }
        self.tls.accept(stream).await.map(Some)
    }
}
