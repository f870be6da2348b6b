//! One connection, on which one request at a time is made.

use super::HttpError;
use crate::{
    judged_writes::{JudgeWrites, JudgedWrites},
    stream::Stream,
};
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
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};
use tokio::task::AbortHandle;

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
        let stream = JudgedWrites::new(stream, NoteFailure(writing_failed.clone()));
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

/// Remembers that something could not be written.
#[derive(Debug)]
struct NoteFailure(Arc<AtomicBool>);

impl JudgeWrites for NoteFailure {
    fn written<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        _: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(Err(_)) = written {
            self.0.store(true, Ordering::Relaxed);
        }
        written
    }

    /// All that was to be written is.
    fn shut(&mut self, shut: Poll<io::Result<()>>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        shut
    }
}
