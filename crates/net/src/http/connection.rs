//! One connection, on which one request at a time is made.

use super::HttpError;
use crate::stream::Stream;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode, Uri,
    body::Incoming,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    task::AbortHandle,
};

/// A request with all that a connection needs.
#[must_use]
pub fn request(
    method: Method,
    target: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = target;
    *request.headers_mut() = headers;
    request
}

/// Dropped, it is closed.
#[derive(Debug)]
pub struct Connection {
    address: Arc<str>,
    sender: SendRequest<Full<Bytes>>,
    writing_failed: Arc<AtomicBool>,
    _driver: Driver,
}

/// What moves the bytes.
#[derive(Debug)]
struct Driver(AbortHandle);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Connection {
    /// Over a stream to what a person calls `address`.
    ///
    /// # Errors
    /// When the stream has ended already.
    pub async fn open<S>(stream: S, address: &str) -> Result<Connection, HttpError>
    where
        S: Stream + 'static,
    {
        let writing_failed = Arc::new(AtomicBool::new(false));
        let stream = Noted { stream, writing_failed: writing_failed.clone() };
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await.map_err(|source| {
            HttpError::Exchange { address: address.to_owned(), unsent: true, source }
        })?;
        // Its end is noticed by whoever uses the connection.
        let driver = Driver(tokio::spawn(driver).abort_handle());
        Ok(Connection { address: address.into(), sender, writing_failed, _driver: driver })
    }

    /// # Errors
    /// When the connection ends before the head of the answer.
    pub async fn send(mut self, request: Request<Full<Bytes>>) -> Result<Answer, HttpError> {
        let response = match self.sender.ready().await {
            Ok(()) => self.sender.send_request(request).await,
            Err(source) => {
                let address = self.address.to_string();
                return Err(HttpError::Exchange { address, unsent: true, source });
            }
        };
        let response = response.map_err(|source| HttpError::Exchange {
            address: self.address.to_string(),
            unsent: source.is_canceled() || self.writing_failed.load(Ordering::Relaxed),
            source,
        })?;
        let (head, body) = response.into_parts();
        Ok(Answer { status: head.status, headers: head.headers, body, connection: self })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}

/// The head of an answer, and the connection that its body comes over.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    body: Incoming,
    connection: Connection,
}

impl Answer {
    /// The next piece of the body, if there is more.
    ///
    /// # Errors
    /// When the connection ends before the body.
    pub async fn next(&mut self) -> Result<Option<Bytes>, HttpError> {
        while let Some(frame) = self.body.frame().await {
            let frame = frame.map_err(|error| self.broken_off(error))?;
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// So much of the body and no more.
    ///
    /// # Errors
    /// When the connection ends before that.
    pub async fn beginning(&mut self, most: usize) -> Result<Vec<u8>, HttpError> {
        let mut bytes = Vec::new();
        while bytes.len() < most
            && let Some(data) = self.next().await?
        {
            bytes.extend_from_slice(&data[..data.len().min(most - bytes.len())]);
        }
        Ok(bytes)
    }

    /// All of the body, and the connection for the next request.
    ///
    /// # Errors
    /// When it is longer, or the connection ends before it.
    pub(super) async fn whole(
        self,
        longest: usize,
    ) -> Result<(Response<Bytes>, Connection), HttpError> {
        let Answer { status, headers, body, connection } = self;
        let body = Limited::new(body, longest).collect().await.map_err(|source| {
            HttpError::BrokenOff { address: connection.address.to_string(), source }
        })?;
        let mut response = Response::new(body.to_bytes());
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Ok((response, connection))
    }

    fn broken_off(&self, error: hyper::Error) -> HttpError {
        let address = self.connection.address.to_string();
        HttpError::BrokenOff { address, source: Box::new(error) }
    }
}

/// A stream that remembers that something could not be written.
struct Noted<S> {
    stream: S,
    writing_failed: Arc<AtomicBool>,
}

impl<S> Noted<S> {
    fn note<T>(&self, written: io::Result<T>) -> io::Result<T> {
        written.inspect_err(|_| self.writing_failed.store(true, Ordering::Relaxed))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Noted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Noted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes));
        Poll::Ready(self.note(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, parts));
        Poll::Ready(self.note(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = ready!(Pin::new(&mut self.stream).poll_flush(cx));
        Poll::Ready(self.note(flushed))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
