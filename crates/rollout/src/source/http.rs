//! A URL as a source, and the AppConfig Agent, which is one on this machine.
//!
//! TLS is verified, a redirect is refused, a body that breaks off is no document.

use super::{SourceError, fetcher::Fetched};
use crate::profile::{self, Document, LARGEST};
use mainstay_core::{plan::ProfileFormat, tls::Tls};
use mainstay_net::{
    files,
    http::{
        Bytes, Connection, HeaderMap, HeaderValue, HttpError, Method, Server, StatusCode, Uri,
        header, request,
    },
    percent,
    tls::ClientTls,
};
use mainstay_pool::WATCHED;
use std::{
    path::{Path, PathBuf},
    str,
    time::Duration,
};
use tokio::time::timeout;

/// For connecting, the request and the whole answer.
const LIMIT: Duration = Duration::from_secs(10);
const AGENT: &str = "http://127.0.0.1:2772";
/// What the agent calls a version.
const AGENT_LABEL: &str = "configuration-version";

#[derive(Debug)]
pub(super) struct HttpSource {
    url: String,
    token_file: Option<PathBuf>,
    ca: Option<PathBuf>,
    format: Option<ProfileFormat>,
    /// Of the last answer.
    etag: Option<HeaderValue>,
    /// The header with the label of a version.
    label: Option<&'static str>,
}

impl HttpSource {
    pub(super) fn new(
        url: &str,
        token_file: Option<&Path>,
        ca: Option<&Path>,
        format: Option<ProfileFormat>,
    ) -> HttpSource {
        HttpSource {
            url: url.to_owned(),
            token_file: token_file.map(Path::to_owned),
            ca: ca.map(Path::to_owned),
            format,
            etag: None,
            label: None,
        }
    }

    /// Application, environment and profile, as the agent names them.
    pub(super) fn agent(
        names: [&str; 3],
        url: Option<&str>,
        format: Option<ProfileFormat>,
    ) -> HttpSource {
        let [application, environment, profile] = names.map(percent::segment);
        let base = url.unwrap_or(AGENT).trim_end_matches('/');
        let path = format!(
            "{base}/applications/{application}/environments/{environment}/configurations/{profile}"
        );
        HttpSource { label: Some(AGENT_LABEL), ..HttpSource::new(&path, None, None, format) }
    }

    pub(super) async fn fetch(&mut self, fresh: bool) -> Result<Fetched, SourceError> {
        let (server, target, mut headers) = self.server()?;
        if let Some(path) = self.token_file.clone() {
            let token = WATCHED.run(move || files::read_private(&path)).await??;
            headers.insert(
                header::AUTHORIZATION,
                bearer(&token).ok_or_else(|| SourceError::Secret {
                    name: "token_file".to_owned(),
                    why: "it is no token that can be sent".to_owned(),
                    busy: false,
                })?,
            );
        }
        if let (Some(etag), false) = (&self.etag, fresh) {
            headers.insert(header::IF_NONE_MATCH, etag.clone());
        }
        let asked = exchange(&server, target, headers);
        let slow = || HttpError::Slow { address: server.address().to_owned(), limit: LIMIT };
        let (status, headers, bytes) = timeout(LIMIT, asked).await.map_err(|_| slow())??;
        self.take(server.address(), status, &headers, bytes)
    }

    pub(super) fn forget(&mut self) {
        self.etag = None;
    }

    fn server(&self) -> Result<(Server, Uri, HeaderMap), SourceError> {
        let bad = || SourceError::Url(self.url.clone());
        let uri: Uri = self.url.parse().map_err(|_| bad())?;
        let (Some(host), Some(authority)) = (uri.host(), uri.authority()) else {
            return Err(bad());
        };
        if authority.as_str().contains('@') {
            return Err(bad());
        }
        let secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            Some(_) | None => return Err(bad()),
        };
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let tls = match secure {
            false => None,
            true => {
                let settings = Tls { ca_file: self.ca.clone(), ..Tls::default() };
                Some(ClientTls::new(&settings, host, "ca")?)
            }
        };
        let mut headers = HeaderMap::new();
        let host_header = HeaderValue::from_str(authority.as_str()).map_err(|_| bad())?;
        headers.insert(header::HOST, host_header);
        let target = uri.path_and_query().map_or("/", |it| it.as_str());
        let target = target.parse().map_err(|_| bad())?;
        Ok((Server::tcp(host, port).with_tls(tls), target, headers))
    }

    fn take(
        &mut self,
        address: &str,
        status: StatusCode,
        headers: &HeaderMap,
        bytes: Vec<u8>,
    ) -> Result<Fetched, SourceError> {
        let address = address.to_owned();
        if status == StatusCode::NOT_MODIFIED && self.etag.is_some() {
            return Ok(Fetched::Unchanged);
        }
        if status != StatusCode::OK {
            let why = match status.is_redirection() {
                true => ", and nothing is followed",
                false => "",
            };
            let busy = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
            return Err(SourceError::Status { address, status: status.as_u16(), why, busy });
        }
        let is_chunked = headers.contains_key(header::TRANSFER_ENCODING);
        if !is_chunked && !headers.contains_key(header::CONTENT_LENGTH) {
            return Err(SourceError::Endless { address });
        }
        let text = |name: &str| headers.get(name).and_then(|it| it.to_str().ok());
        let format = match (self.format, text("content-type")) {
            (Some(format), _) => format,
            (None, Some(header)) => profile::format_of_header(header)?,
            (None, None) => return Err(SourceError::NoType { address }),
        };
        let label = self.label.and_then(text).map(str::to_owned);
        self.etag = headers.get(header::ETAG).cloned();
        Ok(Fetched::Document(Document { format, bytes, label }))
    }
}

async fn exchange(
    server: &Server,
    target: Uri,
    headers: HeaderMap,
) -> Result<(StatusCode, HeaderMap, Vec<u8>), HttpError> {
    let stream = server.connect(None).await?;
    let connection = Connection::open(stream, server.address()).await?;
    let mut answer = connection.send(request(Method::GET, target, headers, Bytes::new())).await?;
    // One that is larger is refused by whoever reads it.
    let bytes = answer.beginning(LARGEST + 1).await?;
    Ok((answer.status, answer.headers, bytes))
}

fn bearer(token: &[u8]) -> Option<HeaderValue> {
    let token = str::from_utf8(token).ok()?.trim();
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
    value.set_sensitive(true);
    (!token.is_empty()).then_some(value)
}
