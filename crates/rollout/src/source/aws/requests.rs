//! The SDK's requests, over the client that all others use: names, TLS and sizes are as everywhere.
//!
//! Each has a connection of its own. They are rare, and one that the server has closed meanwhile
//! would leave open whether it has seen a token that is good for one call.

use crate::source::{
    SourceError,
    request::{Ask, server_of},
};
use aws_smithy_runtime_api::client::{
    http::{
        HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
    },
    orchestrator::{HttpRequest, HttpResponse},
    result::ConnectorError,
    runtime_components::RuntimeComponents,
};
use mainstay_net::http::{Bytes, HttpError, Response, Server, Uri};
use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::timeout;

/// By scheme and authority, so that certificates are read once.
type Servers = Arc<Mutex<BTreeMap<String, Arc<Server>>>>;

#[derive(Debug, Clone, Default)]
pub(super) struct Requests {
    servers: Servers,
}

/// With the limits of one kind of request.
#[derive(Debug, Clone)]
struct Connector {
    servers: Servers,
    connect: Option<Duration>,
    read: Option<Duration>,
}

impl HttpClient for Requests {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        _: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(Connector {
            servers: self.servers.clone(),
            connect: settings.connect_timeout(),
            read: settings.read_timeout(),
        })
    }
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let connector = self.clone();
        HttpConnectorFuture::new(async move { connector.answer(request).await })
    }
}

impl Connector {
    async fn answer(self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let request = request.try_into_http1x().map_err(|it| ConnectorError::user(it.into()))?;
        let (head, body) = request.into_parts();
        let body = body.bytes().map(Bytes::copy_from_slice);
        let body = body.ok_or_else(|| ConnectorError::user("a body that is a stream".into()))?;
        let server = self.server(&head.uri).map_err(unaskable)?;
        let ask = Ask::of(&head.uri, head.method, head.headers, body).map_err(unaskable)?;
        let answer = ask.put(&server, self.connect);
        let (status, headers, bytes) = match self.longest() {
            Some(limit) => timeout(limit, answer).await.unwrap_or_else(|_| {
                Err(HttpError::Slow { address: server.address().to_owned(), limit })
            }),
            None => answer.await,
        }
        .map_err(unanswered)?;
        let mut response = Response::new(bytes.into());
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        HttpResponse::try_from(response).map_err(|it| ConnectorError::other(it.into(), None))
    }

    /// The SDK has a limit for the whole as well.
    fn longest(&self) -> Option<Duration> {
        Some(self.read? + self.connect.unwrap_or_default())
    }

    fn server(&self, uri: &Uri) -> Result<Arc<Server>, SourceError> {
        let key = format!("{:?} {:?}", uri.scheme(), uri.authority());
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = servers.get(&key) {
            return Ok(server.clone());
        }
        let server = Arc::new(server_of(uri, None, "SSL_CERT_FILE")?);
        servers.insert(key, server.clone());
        Ok(server)
    }
}

fn unaskable(error: SourceError) -> ConnectorError {
    ConnectorError::user(error.into())
}

fn unanswered(error: HttpError) -> ConnectorError {
    match error.io_kind() {
        Some(io::ErrorKind::TimedOut) => ConnectorError::timeout(error.into()),
        Some(_) => ConnectorError::io(error.into()),
        None => ConnectorError::other(error.into(), None),
    }
}
