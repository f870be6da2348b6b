//! One request and its answer, waited for: the command does one thing at a time.

use super::remote::Remote;
use crate::socket;
use mainstay_net::{
    BoxedStream,
    http::{Answer, Bytes, Connection, HeaderMap, HeaderValue, HttpError, Method, header, request},
};
use serde_json::Value;
use std::{
    io::{self, Read},
    path::Path,
    time::Duration,
};
use tokio::{
    net::UnixStream,
    runtime::{Builder, Runtime},
    time::timeout,
};

/// No time at all is no time limit to the operating system.
const SHORTEST: Duration = Duration::from_millis(1);

/// How to get to whoever is asked.
pub(super) enum Way<'a> {
    Socket { dir: &'a Path, name: &'a str },
    Remote(&'a Remote),
}

pub(super) struct Question<'a> {
    method: Method,
    path: &'a str,
    body: Option<String>,
    last_event: Option<&'a str>,
}

impl<'a> Question<'a> {
    pub(super) fn new(method: Method, path: &'a str) -> Question<'a> {
        Question { method, path, body: None, last_event: None }
    }

    pub(super) fn with(self, body: &Value) -> Question<'a> {
        Question { body: Some(body.to_string()), ..self }
    }

    pub(super) fn after(self, last_event: Option<&'a str>) -> Question<'a> {
        Question { last_event, ..self }
    }
}

/// The head of an answer is there; its body is still to be read.
pub(super) struct Exchange {
    runtime: Runtime,
    answer: Answer,
    address: String,
    patience: Duration,
}

impl Exchange {
    /// Connecting takes `patience` at most, and so do the head and each piece of the body.
    pub(super) fn begin(
        way: &Way<'_>,
        question: &Question<'_>,
        patience: Duration,
    ) -> Result<Exchange, HttpError> {
        let (address, patience) = (way.address(), patience.max(SHORTEST));
        let failed = |source| HttpError::Connect { address: address.clone(), source };
        let runtime = runtime().map_err(failed)?;
        let answer = runtime.block_on(async {
            let stream = way.connect(patience).await?;
            let connection = Connection::open(stream, &address).await?;
            let target = question.path.parse().map_err(|error| failed(io::Error::other(error)))?;
            let body = question.body.clone().map_or_else(Bytes::new, Bytes::from);
            let request = request(question.method.clone(), target, headers(way, question), body);
            within(patience, &address, connection.send(request)).await
        })?;
        Ok(Exchange { runtime, answer, address, patience })
    }

    pub(super) fn status(&self) -> u16 {
        self.answer.status.as_u16()
    }

    /// All of the body.
    pub(super) fn whole(self) -> Result<Vec<u8>, HttpError> {
        self.beginning(usize::MAX)
    }

    /// So much of the body and no more.
    pub(super) fn beginning(self, most: usize) -> Result<Vec<u8>, HttpError> {
        let Exchange { runtime, mut answer, address, patience } = self;
        runtime.block_on(async {
            let mut bytes = Vec::new();
            while bytes.len() < most
                && let Some(data) = within(patience, &address, answer.next()).await?
            {
                bytes.extend_from_slice(&data[..data.len().min(most - bytes.len())]);
            }
            Ok(bytes)
        })
    }

    /// For streams that may be quiet for long.
    pub(super) fn into_body(self) -> Body {
        Body { runtime: self.runtime, answer: self.answer, rest: Bytes::new() }
    }
}

/// A body that is read as it comes.
pub(crate) struct Body {
    runtime: Runtime,
    answer: Answer,
    /// Of the last piece, what has not been read yet.
    rest: Bytes,
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            match self.runtime.block_on(self.answer.next()).map_err(io::Error::other)? {
                Some(data) => self.rest = data,
                None => return Ok(0),
            }
        }
        let length = self.rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&self.rest.split_to(length));
        Ok(length)
    }
}

/// Whether somebody is there who lets us talk.
pub(super) fn can_connect(remote: &Remote, patience: Duration) -> bool {
    let connected = |runtime: Runtime| runtime.block_on(remote.server.connect(Some(patience)));
    runtime().is_ok_and(|runtime| connected(runtime).is_ok())
}

fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_io().enable_time().build()
}

async fn within<T>(
    limit: Duration,
    address: &str,
    work: impl Future<Output = Result<T, HttpError>>,
) -> Result<T, HttpError> {
    let slow = |_| Err(HttpError::Slow { address: address.to_owned(), limit });
    timeout(limit, work).await.unwrap_or_else(slow)
}

impl Way<'_> {
    fn address(&self) -> String {
        match self {
            Way::Socket { dir, name } => dir.join(name).display().to_string(),
            Way::Remote(remote) => remote.url.clone(),
        }
    }

    async fn connect(&self, patience: Duration) -> Result<BoxedStream, HttpError> {
        match self {
            Way::Socket { dir, name } => {
                let opened = socket::connect(dir, name, patience).and_then(|stream| {
                    stream.set_nonblocking(true)?;
                    UnixStream::from_std(stream)
                });
                match opened {
                    Ok(stream) => Ok(Box::new(stream)),
                    Err(source) => Err(HttpError::Connect { address: self.address(), source }),
                }
            }
            Way::Remote(remote) => remote.server.connect(Some(patience)).await,
        }
    }
}

fn headers(way: &Way<'_>, question: &Question<'_>) -> HeaderMap {
    let mut headers = match way {
        Way::Socket { .. } => {
            HeaderMap::from_iter([(header::HOST, HeaderValue::from_static("mainstay"))])
        }
        Way::Remote(remote) => remote.headers.clone(),
    };
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    if question.body.is_some() {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    // An id comes from the node: one that no header can carry was never sent by it.
    if let Some(id) = question.last_event.and_then(|id| HeaderValue::from_str(id).ok()) {
        headers.insert("last-event-id", id);
    }
    headers
}
