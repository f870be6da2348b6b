//! Requests over a few connections that are kept open between them.
//!
//! A request waits for a permit, then has its time limit; so a frozen server holds up as many as
//! there are permits, and costs no more than their connections. Whatever ends badly takes its
//! connection along.

use super::connect::Server;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    Method, Request, StatusCode,
    body::Bytes,
    client::conn::http1::{self, SendRequest},
    header::{self, HeaderMap, HeaderName, HeaderValue},
};
use hyper_util::rt::TokioIo;
use mainstay_core::discovery::Consul;
use std::{
    error::Error,
    fmt::Write,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio::{sync::Semaphore, time::timeout};

/// The longest answer that is read.
const LONGEST: usize = 8 << 20;
/// So long a connection is kept although nobody uses it.
const IDLE: Duration = Duration::from_secs(20);

static TOKEN: HeaderName = HeaderName::from_static("x-consul-token");
static INDEX: HeaderName = HeaderName::from_static("x-consul-index");

type Connection = SendRequest<Full<Bytes>>;

#[derive(Debug)]
pub(super) struct Client {
    /// Or why there is none.
    prepared: Result<Prepared, String>,
    permits: Semaphore,
    /// With the time at which each was last used, the latest last.
    idle: Mutex<Vec<(Instant, Connection)>>,
}

#[derive(Debug)]
struct Prepared {
    server: Server,
    headers: HeaderMap,
}

#[derive(Debug)]
pub(super) struct Ask<'a> {
    pub(super) method: Method,
    pub(super) path: &'a str,
    pub(super) body: Vec<u8>,
    /// From when it has its permit.
    pub(super) limit: Duration,
    /// Whether it still means the same when it is put to a server that has been restarted.
    pub(super) lasting: bool,
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) index: Option<u64>,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Why a request has no answer.
enum Lost {
    /// The server had closed the connection while it was idle: another one may do.
    Stale,
    Failed(String),
}

impl Client {
    pub(super) fn new(consul: &Consul, most: usize) -> Client {
        Client {
            prepared: Prepared::new(consul),
            permits: Semaphore::new(most),
            idle: Mutex::new(Vec::new()),
        }
    }

    pub(super) async fn ask(&self, ask: Ask<'_>) -> Result<Answer, String> {
        let prepared = self.prepared.as_ref().map_err(Clone::clone)?;
        let _permit = self.permits.acquire().await.map_err(|error| error.to_string())?;
        match timeout(ask.limit, self.exchange(prepared, &ask)).await {
            Ok(answer) => answer,
            Err(_) => {
                Err(format!("no answer from {} within {:?}", prepared.server.address, ask.limit))
            }
        }
    }

    async fn exchange(&self, prepared: &Prepared, ask: &Ask<'_>) -> Result<Answer, String> {
        if let Some(connection) = self.take_idle() {
            match self.send(prepared, connection, ask, ask.lasting).await {
                Ok(answer) => return Ok(answer),
                Err(Lost::Failed(error)) => return Err(error),
                // The others are likely to be as old.
                Err(Lost::Stale) => self.idle().clear(),
            }
        }
        let stream = prepared.server.connect().await?;
        let (connection, driver) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| prepared.broken(&error))?;
        // Ends when the connection is dropped or lost, which its user notices.
        tokio::spawn(driver);
        match self.send(prepared, connection, ask, false).await {
            Ok(answer) => Ok(answer),
            Err(Lost::Failed(error)) => Err(error),
            Err(Lost::Stale) => {
                Err(format!("{} has closed the connection", prepared.server.address))
            }
        }
    }

    async fn send(
        &self,
        prepared: &Prepared,
        mut connection: Connection,
        ask: &Ask<'_>,
        may_be_stale: bool,
    ) -> Result<Answer, Lost> {
        let lost = |error: hyper::Error| match may_be_stale {
            true => Lost::Stale,
            false => Lost::Failed(prepared.broken(&error)),
        };
        connection.ready().await.map_err(lost)?;
        let response = connection.send_request(prepared.request(ask)?).await.map_err(lost)?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, LONGEST).collect().await.map_err(|error| {
            Lost::Failed(format!("the answer of {} breaks off: {error}", prepared.server.address))
        })?;
        let index = head.headers.get(&INDEX);
        let index = index.and_then(|index| index.to_str().ok()?.parse().ok());
        self.keep_idle(connection);
        Ok(Answer { status: head.status, index, body: body.to_bytes().to_vec() })
    }

    /// The one that was used last, so that those that are too many grow old.
    fn take_idle(&self) -> Option<Connection> {
        Some(self.idle().pop()?.1)
    }

    fn keep_idle(&self, connection: Connection) {
        let mut idle = self.idle();
        idle.push((Instant::now(), connection));
        idle.retain(|(used, connection)| used.elapsed() < IDLE && !connection.is_closed());
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<(Instant, Connection)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Prepared {
    fn new(consul: &Consul) -> Result<Prepared, String> {
        let server = Server::new(consul)?;
        let mut headers = HeaderMap::new();
        let host = HeaderValue::from_str(server.authority())
            .map_err(|_| format!("'{}' cannot be asked for in a request", server.address))?;
        headers.insert(header::HOST, host);
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(token) = &consul.token {
            let mut token = HeaderValue::from_str(token.reveal())
                .map_err(|_| "the token has characters that no token has".to_owned())?;
            token.set_sensitive(true);
            headers.insert(TOKEN.clone(), token);
        }
        Ok(Prepared { server, headers })
    }

    fn request(&self, ask: &Ask<'_>) -> Result<Request<Full<Bytes>>, Lost> {
        let mut request = Request::new(Full::new(Bytes::from(ask.body.clone())));
        *request.method_mut() = ask.method.clone();
        *request.uri_mut() = ask
            .path
            .parse()
            .map_err(|error| Lost::Failed(format!("'{}' cannot be asked: {error}", ask.path)))?;
        *request.headers_mut() = self.headers.clone();
        Ok(request)
    }

    /// With what is behind it: a server that wants a certificate of ours says so only there.
    fn broken(&self, error: &hyper::Error) -> String {
        let mut said = format!("the exchange with {} failed: {error}", self.server.address);
        let mut behind = error.source();
        while let Some(error) = behind {
            let _ = write!(said, ": {error}");
            behind = error.source();
        }
        if said.contains("alert") && said.contains("Certificate") {
            said.push_str("; if it wants a certificate of ours, name it with tls.cert and tls.key");
        }
        said
    }
}
